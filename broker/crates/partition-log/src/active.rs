//! The segment that a log appends to: its end, what its indexes lack yet, and when it is to be closed. Index entries are
//! gathered and written a block at a time; a crash loses them and recovery makes them again.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use base::{Offset, TimestampMs};
use record_batch::{BatchHeader, HEADER_LEN, NO_TIMESTAMP};

use crate::config::LogConfig;
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::errors::{IoContext, StorageError};
use crate::file_cache::FileCache;
use crate::names::FileKind;
use crate::offset_index::{self, IndexEntry};
use crate::segment::Segment;
use crate::time_index::{self, TimeEntry};

/// Index bytes gathered before they are written.
const PENDING_BYTES_MAX: usize = 4096;

/// A batch that was written, as far as the indexes care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenBatch {
    pub len_bytes: u64,
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub max_timestamp: TimestampMs,
}

impl WrittenBatch {
    pub(crate) fn of(header: &BatchHeader) -> Self {
        WrittenBatch {
            len_bytes: header.total_len() as u64,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            // A batch that lost its records to compaction keeps their time, but there is nothing to be found in it.
            max_timestamp: if header.record_count > 0 { header.max_timestamp } else { NO_TIMESTAMP },
        }
    }
}

/// An index file that grows.
#[derive(Debug, Default)]
struct GrowingFile {
    written_bytes: u64,
    pending: Vec<u8>,
}

impl GrowingFile {
    fn len_bytes(&self) -> u64 {
        self.written_bytes + self.pending.len() as u64
    }

    fn write_pending(&mut self, disk: &dyn Disk, path: &Path) -> Result<(), StorageError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let file = disk.open(path, OpenMode::Create).context("open", path)?;
        file.write_at(self.written_bytes, &mut [IoSlice::new(&self.pending)]).context("write", path)?;
        self.written_bytes += self.pending.len() as u64;
        self.pending = Vec::new();
        Ok(())
    }
}

/// The segment being written.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) segment: Arc<Segment>,
    index: GrowingFile,
    time_index: GrowingFile,
    bytes_since_entry: u64,
    last_time_entry: TimeEntry,
    max: TimeEntry,
    /// Largest timestamp of the first batch; `None` until it is known.
    first_timestamp: Option<TimestampMs>,
    created_ms: TimestampMs,
    jitter_ms: i64,
}

/// Spreads the closing of segments that were begun together. Any value between 0 and `limit_ms` will do, so that the
/// offset and the time are random enough.
fn jitter(limit_ms: i64, base_offset: Offset, now_ms: TimestampMs) -> i64 {
    if limit_ms <= 0 {
        return 0;
    }
    let mixed = (base_offset ^ now_ms.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
    (mixed >> 1).rem_euclid(limit_ms)
}

impl Active {
    /// A segment whose files hold nothing yet, or that recovery is about to go through from its beginning.
    pub(crate) fn empty(segment: Arc<Segment>, config: &LogConfig, now_ms: TimestampMs) -> Self {
        let none = TimeEntry { timestamp: NO_TIMESTAMP, offset: segment.base_offset() };
        let jitter_ms = jitter(config.segment_jitter_ms, segment.base_offset(), now_ms);
        Active {
            segment,
            index: GrowingFile::default(),
            time_index: GrowingFile::default(),
            bytes_since_entry: 0,
            last_time_entry: none,
            max: none,
            first_timestamp: None,
            created_ms: now_ms,
            jitter_ms,
        }
    }

    /// A segment that is there, with the indexes as its files hold them; what the files hold beyond valid entries is
    /// cut off.
    pub(crate) fn load(
        segment: Arc<Segment>,
        disk: &dyn Disk,
        directory: &Path,
        config: &LogConfig,
        now_ms: TimestampMs,
    ) -> Result<Self, StorageError> {
        let mut active = Active::empty(segment, config, now_ms);
        let segment = &active.segment;
        if segment.size_bytes() == 0 {
            return Ok(active);
        }
        let times =
            segment.time_entries(disk, directory).context("read", &segment.path(directory, FileKind::TimeIndex))?;
        active.time_index.written_bytes = (times.len() * time_index::ENTRY_BYTES) as u64;
        if let Some(last) = times.last() {
            active.last_time_entry = *last;
        }
        active.max = active.last_time_entry;
        segment.set_max_timestamp(active.max);
        let index = segment.index(disk, directory).context("read", &segment.path(directory, FileKind::Index))?;
        active.index.written_bytes = (index.len() * offset_index::ENTRY_BYTES) as u64;
        active.trim(disk, directory)?;
        Ok(active)
    }

    fn trim(&self, disk: &dyn Disk, directory: &Path) -> Result<(), StorageError> {
        for (file, kind) in [(&self.index, FileKind::Index), (&self.time_index, FileKind::TimeIndex)] {
            let path = self.segment.path(directory, kind);
            let found = disk.metadata(&path).context("look at", &path)?;
            if found.is_some_and(|found| found.len_bytes != file.written_bytes) {
                let open = disk.open(&path, OpenMode::Existing).context("open", &path)?;
                open.set_len(file.written_bytes).context("truncate", &path)?;
            }
        }
        Ok(())
    }

    pub(crate) fn max_timestamp(&self) -> TimeEntry {
        self.max
    }

    /// Takes a larger timestamp that was found behind the last entry of the time index.
    pub(crate) fn restore_max_timestamp(&mut self, found: Option<TimeEntry>) {
        if let Some(found) = found {
            self.max = found;
            self.segment.set_max_timestamp(found);
        }
    }

    /// Drops index entries of batches at or after `position`; the file is written again from there.
    pub(crate) fn rewind_indexes(
        &mut self,
        disk: &dyn Disk,
        directory: &Path,
        position: u64,
        offset: Offset,
    ) -> Result<(), StorageError> {
        self.write_pending(disk, directory)?;
        let segment = &self.segment;
        let path = segment.path(directory, FileKind::Index);
        let kept = segment.index(disk, directory).context("read", &path)?.entries_before_position(position as u32);
        self.index.written_bytes = (kept.len() * offset_index::ENTRY_BYTES) as u64;
        segment.set_index(Arc::new(offset_index::OffsetEntries::new(&kept)));
        let path = segment.path(directory, FileKind::TimeIndex);
        let mut times = segment.time_entries(disk, directory).context("read", &path)?;
        times.truncate(times.partition_point(|entry| entry.offset < offset));
        self.time_index.written_bytes = (times.len() * time_index::ENTRY_BYTES) as u64;
        self.last_time_entry =
            times.last().copied().unwrap_or(TimeEntry { timestamp: NO_TIMESTAMP, offset: segment.base_offset() });
        self.max = self.last_time_entry;
        segment.set_max_timestamp(self.max);
        self.bytes_since_entry = 0;
        if position == 0 {
            self.first_timestamp = None;
        }
        self.trim(disk, directory)
    }

    /// Whether batches must go to a new segment (Kafka: LogSegment.shouldRoll).
    pub(crate) fn must_roll(
        &mut self,
        file: &dyn DiskFile,
        config: &LogConfig,
        len_bytes: u64,
        max_timestamp: TimestampMs,
        last_offset: Offset,
        now_ms: TimestampMs,
    ) -> Result<bool, std::io::Error> {
        let size = self.segment.size_bytes();
        // Positions in an index have 31 bits, whatever the settings say.
        let segment_bytes = config.segment_bytes.min(i32::MAX as u64);
        let index_full = self.index.len_bytes() / offset_index::ENTRY_BYTES as u64
            >= config.segment_index_bytes / offset_index::ENTRY_BYTES as u64
            || self.time_index.len_bytes() / time_index::ENTRY_BYTES as u64 + 1
                >= config.segment_index_bytes / time_index::ENTRY_BYTES as u64;
        if size.saturating_add(len_bytes) > segment_bytes
            || (index_full && size > 0)
            || last_offset - self.segment.base_offset() > i64::from(i32::MAX)
        {
            return Ok(true);
        }
        if size == 0 {
            return Ok(false);
        }
        Ok(self.waited_ms(file, max_timestamp, now_ms)? > config.roll_ms().saturating_sub(self.jitter_ms))
    }

    /// Time between the first batch and the one to come: by their timestamps, or by the clock where there are none.
    pub(crate) fn waited_ms(
        &mut self,
        file: &dyn DiskFile,
        max_timestamp: TimestampMs,
        now_ms: TimestampMs,
    ) -> Result<i64, std::io::Error> {
        let first = match self.first_timestamp {
            Some(first) => first,
            None => {
                let mut head = [0; HEADER_LEN];
                file.read_at(0, &mut head)?;
                let first = BatchHeader::parse(&head).map_or(NO_TIMESTAMP, |header| header.max_timestamp);
                *self.first_timestamp.insert(first)
            }
        };
        Ok(if first >= 0 { max_timestamp.saturating_sub(first) } else { now_ms.saturating_sub(self.created_ms) })
    }

    /// Notes batches that were written one after the other from `position` on, and lets readers see them.
    pub(crate) fn note(
        &mut self,
        batches: &[WrittenBatch],
        position: u64,
        disk: &dyn Disk,
        directory: &Path,
        config: &LogConfig,
    ) -> Result<(), StorageError> {
        let mut position = position;
        for batch in batches {
            if position == 0 {
                self.first_timestamp = Some(batch.max_timestamp);
            }
            if batch.max_timestamp > self.max.timestamp {
                self.max = TimeEntry { timestamp: batch.max_timestamp, offset: batch.last_offset };
                self.segment.set_max_timestamp(self.max);
            }
            if self.bytes_since_entry > config.index_interval_bytes {
                self.add_entries(batch, position, disk, directory)?;
                self.bytes_since_entry = 0;
            }
            self.bytes_since_entry += batch.len_bytes;
            position += batch.len_bytes;
        }
        self.segment.set_size_bytes(position);
        if self.index.pending.len() >= PENDING_BYTES_MAX || self.time_index.pending.len() >= PENDING_BYTES_MAX {
            // On a full volume the entries wait in memory: the records are in the log, and the next block tries again.
            return match self.write_pending(disk, directory) {
                Err(error) if error.is_full() => Ok(()),
                outcome => outcome,
            };
        }
        Ok(())
    }

    fn add_entries(
        &mut self,
        batch: &WrittenBatch,
        position: u64,
        disk: &dyn Disk,
        directory: &Path,
    ) -> Result<(), StorageError> {
        let segment = &self.segment;
        let stored = IndexEntry { relative_offset: segment.relative(batch.last_offset), position: position as u32 };
        let index = segment
            .index(disk, directory)
            .map_err(|error| StorageError::new("read", &segment.path(directory, FileKind::Index), error))?;
        // In memory the first offset serves better: a reader that asks for it need not begin at the entry before.
        index.push(IndexEntry { relative_offset: segment.relative(batch.base_offset), ..stored });
        self.index.pending.extend(stored.to_bytes());
        self.add_time_entry();
        Ok(())
    }

    fn add_time_entry(&mut self) {
        if self.max.timestamp > self.last_time_entry.timestamp {
            self.time_index.pending.extend(self.max.to_bytes(self.segment.base_offset()));
            self.last_time_entry = self.max;
        }
    }

    /// Writes the index entries that were gathered.
    pub(crate) fn write_pending(&mut self, disk: &dyn Disk, directory: &Path) -> Result<(), StorageError> {
        self.index.write_pending(disk, &self.segment.path(directory, FileKind::Index))?;
        self.time_index.write_pending(disk, &self.segment.path(directory, FileKind::TimeIndex))
    }

    /// Completes the index files; an open or an append after it goes on where they end. Files without entries are made
    /// too, because Kafka takes a missing one for damage.
    pub(crate) fn complete_indexes(&mut self, disk: &dyn Disk, directory: &Path) -> Result<(), StorageError> {
        self.add_time_entry();
        self.write_pending(disk, directory)?;
        for kind in [FileKind::Index, FileKind::TimeIndex] {
            let path = self.segment.path(directory, kind);
            disk.open(&path, OpenMode::Create).context("create", &path)?;
        }
        Ok(())
    }

    /// Frees what an idle log does not need: index entries in memory and the open file.
    pub(crate) fn release(&mut self, disk: &dyn Disk, directory: &Path, files: &FileCache) -> Result<(), StorageError> {
        self.write_pending(disk, directory)?;
        self.segment.drop_index();
        files.close(&self.segment);
        Ok(())
    }
}
