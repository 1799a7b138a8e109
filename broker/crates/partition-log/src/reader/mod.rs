//! Reading a log. A reader is a cheap handle on what the owner publishes; any number of threads read at once, and none
//! waits for the owner (Kafka: LocalLog.read).

mod fetch;
mod lookup;

use std::sync::Arc;

use base::{LeaderEpoch, Offset};
use bytes::Bytes;

use crate::disk::DiskFile;
use crate::epochs::{EpochEnd, Epochs};
use crate::errors::{IoContext, ReadError};
use crate::names::FileKind;
use crate::shared::{LogPosition, Shared};
use crate::txn_index::{self, AbortedTxn};

pub use lookup::TimestampOffset;

/// How far a read may go (Kafka: FetchIsolation).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Everything that was appended: followers and the owner's own replay.
    LogEnd,
    /// What all in-sync replicas have: consumers.
    HighWatermark,
    /// What all in-sync replicas have and no open transaction may still undo: consumers of committed records.
    LastStableOffset,
}

/// Whether a read may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It may: for threads that are there to wait.
    Wait,
    /// It may not: `ReadError::WouldBlock` when something is not in memory.
    NoWait,
}

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// First offset wanted.
    pub offset: Offset,
    /// Most bytes wanted.
    pub max_bytes: usize,
    /// The first batch comes even if it is larger, so that a reader with small limits gets on (KIP-74).
    pub min_one_batch: bool,
    /// How far the read may go.
    pub bound: Bound,
}

/// The offsets that an answer to a reader states, taken before the records were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOffsets {
    /// First readable offset.
    pub log_start_offset: Offset,
    /// Offset below which every in-sync replica has everything.
    pub high_watermark: Offset,
    /// First offset that readers of committed records do not see.
    pub last_stable_offset: Offset,
    /// Offset after the last record.
    pub log_end_offset: Offset,
}

/// Records that were read.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// Whole batches; the first may begin before the offset asked for. Empty when there is nothing below the bound, or
    /// when the first batch is larger than wanted.
    pub records: Bytes,
    /// Where the first batch begins, or where the log ends; `None` when that was not looked for. A reader that waits
    /// for more asks `bytes_from` with it.
    pub position: Option<LogPosition>,
    /// The log's offsets.
    pub offsets: LogOffsets,
}

/// A part of a segment's file. It stays readable when the segment is removed from the log.
#[derive(Debug, Clone)]
pub struct FileRange {
    /// The segment's file.
    pub file: Arc<dyn DiskFile>,
    /// Where it begins, in bytes.
    pub position: u64,
    /// Its bytes.
    pub len_bytes: u64,
}

/// Whole batches, either in memory or still in their file, from where they can go to a socket without a copy.
#[derive(Debug, Clone)]
pub enum Records {
    /// The bytes.
    Memory(Bytes),
    /// Where the bytes are.
    File(FileRange),
}

impl Default for Records {
    fn default() -> Self {
        Records::Memory(Bytes::new())
    }
}

impl Records {
    /// Bytes of all batches.
    pub fn len(&self) -> usize {
        match self {
            Records::Memory(bytes) => bytes.len(),
            Records::File(range) => range.len_bytes as usize,
        }
    }

    /// True when there is no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Records for an answer to a reader.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Whole batches, as in [`ReadResult`].
    pub records: Records,
    /// Offset after the last of them; the offset asked for when there is none.
    pub next_offset: Offset,
    /// As in [`ReadResult`].
    pub position: Option<LogPosition>,
    /// The log's offsets.
    pub offsets: LogOffsets,
}

/// A handle for reading one log.
#[derive(Debug, Clone)]
pub struct LogReader {
    shared: Arc<Shared>,
}

impl LogReader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        LogReader { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// First readable offset.
    pub fn log_start_offset(&self) -> Offset {
        self.shared.log_start_offset()
    }

    /// Offset after the last record.
    pub fn log_end_offset(&self) -> Offset {
        self.shared.log_end_offset()
    }

    /// Offset below which every in-sync replica has everything.
    pub fn high_watermark(&self) -> Offset {
        self.shared.high_watermark()
    }

    /// First offset that readers of committed records do not see.
    pub fn last_stable_offset(&self) -> Offset {
        self.shared.last_stable_offset()
    }

    /// Everything below was synced.
    pub fn recovery_point(&self) -> Offset {
        self.shared.recovery_point()
    }

    /// The offset where reads with this bound end.
    pub fn bound(&self, bound: Bound) -> Offset {
        match bound {
            Bound::LogEnd => self.log_end_offset(),
            Bound::HighWatermark => self.high_watermark(),
            Bound::LastStableOffset => self.last_stable_offset(),
        }
    }

    /// All offsets that an answer states.
    pub fn offsets(&self) -> LogOffsets {
        // The end is read last: it is not below the others.
        let last_stable_offset = self.last_stable_offset();
        let high_watermark = self.high_watermark();
        LogOffsets {
            log_start_offset: self.log_start_offset(),
            high_watermark,
            last_stable_offset: last_stable_offset.min(high_watermark),
            log_end_offset: self.log_end_offset(),
        }
    }

    /// True when the log was closed or deleted: nothing more will come.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.load().size_bytes()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.shared.segments.load().0.len()
    }

    /// The end of the log with its place.
    pub fn end_position(&self) -> LogPosition {
        self.shared.end_position()
    }

    /// Bytes from a place to the bound: what a waiting fetch compares with its least bytes. Exact when the bound is the
    /// log's end; below it, it may come out smaller by up to an index interval, but never 0 when there is something.
    pub fn bytes_from(&self, from: &LogPosition, bound: Bound) -> u64 {
        let end = self.shared.end_position();
        let bound = self.bound(bound).min(end.offset);
        if bound <= from.offset {
            return 0;
        }
        let list = self.shared.segments.load();
        let mut bytes = 0;
        for segment in list.0.iter().filter(|segment| segment.base_offset() >= from.segment_base_offset) {
            if segment.base_offset() >= bound {
                break;
            }
            let whole =
                if segment.base_offset() == end.segment_base_offset { end.position } else { segment.size_bytes() };
            let cut = if bound == end.offset {
                whole
            } else {
                let next_relative = segment.relative(bound);
                let known = segment.index_in_memory().map(|index| u64::from(index.position_before(next_relative)));
                known.unwrap_or(whole).min(whole)
            };
            let start = if segment.base_offset() == from.segment_base_offset { from.position } else { 0 };
            bytes += cut.saturating_sub(start);
        }
        bytes.max(1)
    }

    /// Where a leader epoch ends; `None` when it is unknown (OffsetForLeaderEpoch).
    pub fn epoch_end_offset(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        self.shared.epochs.load().end_offset(epoch, self.log_end_offset())
    }

    /// The leader epoch that wrote an offset.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.shared.epochs.load().epoch_of(offset)
    }

    /// The latest leader epoch known.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.shared.epochs.load().latest()
    }

    /// All leader epochs.
    pub fn epochs(&self) -> Arc<Epochs> {
        self.shared.epochs.load_full()
    }

    /// The aborted transactions of which a reader of `start..end` must know. Costs nothing where no transaction was
    /// ever aborted; else it reads small files and may wait for them.
    pub fn aborted_transactions(&self, start: Offset, end: Offset) -> Result<Vec<AbortedTxn>, ReadError> {
        self.with_retries(|reader| reader.collect_aborted(start, end))
    }

    fn collect_aborted(&self, start: Offset, end: Offset) -> Result<Vec<AbortedTxn>, ReadError> {
        let list = self.shared.segments.load();
        let first = list.floor(start).unwrap_or(0);
        let mut found = Vec::new();
        for segment in list.0.iter().skip(first).filter(|segment| segment.has_txn_index()) {
            let path = segment.path(&self.shared.directory, FileKind::TxnIndex);
            let entries = segment.aborted_txns(self.shared.files.disk().as_ref(), &self.shared.directory);
            if txn_index::collect(&entries.context("read", &path)?, start, end, &mut found) {
                break;
            }
        }
        Ok(found)
    }
}
