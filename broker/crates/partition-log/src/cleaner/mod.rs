//! Log compaction: of each key only the last record stays (Kafka: Cleaner, LogCleaner; KIP-534). The owner of a log
//! begins a cleaning and puts its results in place; the reading and writing in between is a job for any thread. Works on
//! sealed segments and files of its own only, so that appends and reads go on meanwhile.

mod build;
mod filter;
mod offset_map;
mod transactions;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use record_batch::BatchHeader;
use thiserror::Error;

use crate::disk::Disk;
use crate::errors::{IoContext, StorageError};
use crate::file_cache::FileCache;
use crate::scan::{Depth, ScanError, Scanner};
use crate::segment::Segment;
use crate::txn_index::AbortedTxn;
use filter::{Fate, Filter};
use offset_map::{ENTRY_BYTES, OffsetMap};
use transactions::Transactions;
use writer::SegmentWriter;
pub(crate) use writer::{CleanedSegment, cleaned_path};

/// Most bytes that come out of one compressed batch. They are not kept but for one batch that is written again.
const DECOMPRESSED_BYTES_MAX: usize = 1 << 30;

/// Is told of bytes read or written and may wait, to hold a cleaning to a rate; a break ends the cleaning.
pub type Throttle<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// Why a cleaning ended early. The log is as it was, or cleaned in its first part.
#[derive(Debug, Clone, Error)]
pub enum CleanError {
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A batch cannot be read. Until someone looks into it the log is not to be cleaned (Kafka: uncleanable partitions).
    #[error("the batch at offset {offset} is corrupt: {reason}")]
    Corrupt {
        /// Base offset of the batch, or of its segment where the batch cannot be told.
        offset: Offset,
        /// What is wrong.
        reason: String,
    },
    /// One batch has more keys than the map may hold.
    #[error("the offset map is full with {keys} keys before one batch was taken in")]
    MapTooSmall {
        /// Keys in the map.
        keys: usize,
    },
    /// A segment would grow past what positions in an index can tell.
    #[error("the segment at {base_offset} grows too large")]
    SegmentFull {
        /// Base offset of the segment.
        base_offset: Offset,
    },
    /// The throttle ended it.
    #[error("the cleaning was stopped")]
    Stopped,
    /// The log was truncated, or retention removed what was being cleaned.
    #[error("the log changed while it was cleaned")]
    Overtaken,
}

/// What a cleaning may use, and the time by which it goes.
#[derive(Debug, Clone, Copy)]
pub struct CleaningOptions {
    /// The time; delete horizons are compared with it.
    pub now_ms: TimestampMs,
    /// Most bytes of the offset map (`log.cleaner.dedupe.buffer.size` over the number of threads).
    pub map_bytes_max: usize,
    /// Part of the map that may be filled, 0 to 1 (`log.cleaner.io.buffer.load.factor`).
    pub map_load_factor: f64,
    /// A random number, another one for each cleaning: nobody shall choose keys whose hashes are the same.
    pub seed: u64,
}

impl CleaningOptions {
    /// Keys that the map has room for when it is as large as it may be.
    pub fn map_slots(&self) -> usize {
        self.map_bytes_max / ENTRY_BYTES
    }
}

/// What a cleaning did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleaningReport {
    /// The first offset that was not cleaned: what `cleaner-offset-checkpoint` gets.
    pub end_offset: Offset,
    /// Keys in the offset map.
    pub map_keys: usize,
    /// Segments that were gone through.
    pub segments_read: usize,
    /// Segments that took their place; those that were clean already are not written again.
    pub segments_written: usize,
    /// Log bytes read for the second pass.
    pub bytes_read: u64,
    /// Log bytes written.
    pub bytes_written: u64,
    /// Records seen in the second pass.
    pub records_read: u64,
    /// Records that stayed.
    pub records_kept: u64,
}

/// The last thing a producer wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LastRecord {
    /// Its last data end here.
    Data(Offset),
    /// It has written no data since a marker of this epoch.
    Marker(ProducerEpoch),
}

/// What does not change in the course of a cleaning.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) files: Arc<FileCache>,
    pub(crate) directory: PathBuf,
    pub(crate) first_dirty_offset: Offset,
    /// Where the first segment begins that cannot be cleaned.
    pub(crate) end_offset: Offset,
    pub(crate) aborted: Vec<AbortedTxn>,
    pub(crate) last_records: BTreeMap<ProducerId, LastRecord>,
    pub(crate) now_ms: TimestampMs,
    pub(crate) delete_retention_ms: i64,
    pub(crate) segment_bytes: u64,
    pub(crate) segment_index_bytes: u64,
    pub(crate) index_interval_bytes: u64,
    pub(crate) map_bytes_max: usize,
    pub(crate) map_load_factor: f64,
    pub(crate) seed: u64,
}

impl Work {
    fn disk(&self) -> &dyn Disk {
        self.files.disk().as_ref()
    }

    fn scanner(&self, segment: &Arc<Segment>, position: u64) -> Result<Scanner, StorageError> {
        let path = segment.log_path(&self.directory);
        let file = segment.file(&self.files, &self.directory).context("open", &path)?;
        Ok(Scanner::new(file.file.clone(), position, segment.size_bytes()))
    }

    fn read_error(&self, segment: &Segment, error: std::io::Error) -> CleanError {
        CleanError::Storage(StorageError::new("read", &segment.log_path(&self.directory), error))
    }

    fn scan_error(&self, segment: &Segment, error: ScanError) -> CleanError {
        match error {
            ScanError::Io(error) => self.read_error(segment, error),
            other @ (ScanError::Torn { .. } | ScanError::Bad { .. }) => {
                CleanError::Corrupt { offset: segment.base_offset(), reason: other.to_string() }
            }
        }
    }

    /// Whether a batch stays, if need be without records: it tells where a producer stands, or where the cleaned part of
    /// the log ends.
    fn must_stay(&self, header: &BatchHeader) -> bool {
        let last = self.last_records.get(&header.producer_id).filter(|_| header.has_producer_id());
        let tells_of_producer = last.is_some_and(|last| match last {
            LastRecord::Data(offset) => *offset == header.last_offset(),
            LastRecord::Marker(epoch) => header.is_control() && *epoch == header.producer_epoch,
        });
        tells_of_producer || header.next_offset() == self.end_offset
    }
}

fn paced(throttle: &mut Throttle<'_>, bytes: usize) -> Result<(), CleanError> {
    match throttle(bytes as u64) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(CleanError::Stopped),
    }
}

/// Segments that become one.
pub(crate) type Group = Vec<Arc<Segment>>;

/// A part of a cleaning that is to be run, on any thread. The first builds the offset map; each writes one segment.
#[derive(Debug)]
pub struct CleaningJob {
    pub(crate) work: Work,
    /// All cleanable segments, until the map tells how many of them it covers.
    pub(crate) segments: Group,
    groups: VecDeque<Group>,
    map: Option<OffsetMap>,
    transactions: Transactions,
    report: CleaningReport,
}

/// A segment that is ready to take the place of others.
#[derive(Debug)]
pub struct CleanedGroup {
    /// The rest of the cleaning.
    pub(crate) job: CleaningJob,
    /// The segments that were read.
    pub(crate) old: Group,
    /// What was made of them; `None` when it would be the same.
    pub(crate) cleaned: Option<CleanedSegment>,
}

impl CleaningJob {
    pub(crate) fn new(work: Work, segments: Group) -> Self {
        let transactions = Transactions::new(&work.aborted);
        CleaningJob {
            work,
            segments,
            groups: VecDeque::new(),
            map: None,
            transactions,
            report: CleaningReport::default(),
        }
    }

    /// Base offset of the segment that is written next; `None` when all are.
    pub(crate) fn next_base_offset(&self) -> Option<Offset> {
        let group = self.groups.front().unwrap_or(&self.segments);
        group.first().map(|segment| segment.base_offset())
    }

    /// What the cleaning did so far.
    pub fn report(&self) -> CleaningReport {
        self.report
    }

    /// Reads and writes; waits for the device and for the throttle. Both passes check the CRC of what they read.
    pub fn run(mut self, throttle: &mut Throttle<'_>) -> Result<CleanedGroup, CleanError> {
        let map = match self.map.take() {
            Some(map) => map,
            None => self.plan(throttle)?,
        };
        let old = self.groups.pop_front().unwrap_or_default();
        let cleaned = self.clean(&old, &map, throttle)?;
        self.map = Some(map);
        Ok(CleanedGroup { job: self, old, cleaned })
    }

    /// The first pass.
    fn plan(&mut self, throttle: &mut Throttle<'_>) -> Result<OffsetMap, CleanError> {
        let map = build::offset_map(&self.work, &self.segments, throttle)?;
        self.report.end_offset = map.latest_offset() + 1;
        self.report.map_keys = map.len();
        let segments = std::mem::take(&mut self.segments);
        let covered = segments.partition_point(|segment| segment.base_offset() < self.report.end_offset);
        self.groups = group(&self.work, &segments[..covered])?;
        Ok(map)
    }

    fn clean(
        &mut self,
        old: &[Arc<Segment>],
        map: &OffsetMap,
        throttle: &mut Throttle<'_>,
    ) -> Result<Option<CleanedSegment>, CleanError> {
        let Some(first) = old.first() else { return Ok(None) };
        let last = old.iter().rposition(|segment| segment.size_bytes() > 0).unwrap_or(0);
        let mut writer = SegmentWriter::create(&self.work, first.base_offset())?;
        let mut changed = old.len() > 1;
        let mut filter = Filter { work: &self.work, map, transactions: &mut self.transactions };
        let report = &mut self.report;
        for (at, segment) in old.iter().enumerate() {
            let size_bytes = segment.size_bytes();
            let mut scanner = self.work.scanner(segment, 0)?;
            loop {
                let scanned = scanner.next(Depth::Checked).map_err(|error| self.work.scan_error(segment, error))?;
                let Some(scanned) = scanned else { break };
                let (header, Some(batch)) = (scanned.header, scanned.batch) else { break };
                let len = header.total_len();
                paced(throttle, len)?;
                let ends_segment = at == last && scanned.position + len as u64 >= size_bytes;
                let filtered = filter.apply(&batch, ends_segment)?;
                report.bytes_read += len as u64;
                report.records_read += u64::try_from(header.record_count).unwrap_or(0);
                report.records_kept += filtered.kept;
                let bytes = match &filtered.fate {
                    Fate::Stays => batch.bytes(),
                    Fate::Becomes(bytes) => bytes,
                    Fate::Goes => &[],
                };
                changed |= !matches!(filtered.fate, Fate::Stays);
                if !bytes.is_empty() {
                    paced(throttle, bytes.len())?;
                    writer.append(bytes)?;
                    report.bytes_written += bytes.len() as u64;
                }
                if let Some(txn) = filtered.aborted {
                    writer.add_aborted(txn);
                }
            }
        }
        report.segments_read += old.len();
        if !changed {
            return Ok(None);
        }
        report.segments_written += 1;
        Ok(Some(writer.finish()?))
    }
}

/// Puts small segments that follow each other together, as far as one segment may go (Kafka:
/// Cleaner.groupSegmentsBySize).
fn group(work: &Work, segments: &[Arc<Segment>]) -> Result<VecDeque<Group>, CleanError> {
    let mut groups: VecDeque<Group> = VecDeque::new();
    let (mut bytes, mut index_bytes) = (0, 0);
    for (at, segment) in segments.iter().enumerate() {
        let index = segment.index(work.disk(), &work.directory);
        // A segment may close with one more entry in its time index, whose entries are the larger ones.
        let entries = index.map_err(|error| work.read_error(segment, error))?.len() as u64 + 1;
        let own_index_bytes = entries * crate::time_index::ENTRY_BYTES as u64;
        let end = segments.get(at + 1).map_or(work.end_offset, |next| next.base_offset());
        let fits = |group: &Group| {
            let begin = group.first().map_or(end, |first| first.base_offset());
            bytes + segment.size_bytes() <= work.segment_bytes.min(i32::MAX as u64)
                && index_bytes + own_index_bytes <= work.segment_index_bytes
                && (segment.size_bytes() == 0 || end - 1 - begin <= i64::from(i32::MAX))
        };
        match groups.back_mut().filter(|group| fits(group)) {
            Some(group) => group.push(segment.clone()),
            None => {
                groups.push_back(vec![segment.clone()]);
                (bytes, index_bytes) = (0, 0);
            }
        }
        bytes += segment.size_bytes();
        index_bytes += own_index_bytes;
    }
    Ok(groups)
}
