//! The files of a cleaned segment while they are written: `.cleaned` at the end of their names, until they are whole and
//! synced.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Offset;
use record_batch::{BatchHeader, NO_TIMESTAMP};

use super::{CleanError, Work};
use crate::disk::{DiskFile, OpenMode};
use crate::errors::{IoContext, StorageError};
use crate::names::{FileKind, Leftover, offset_file, with_leftover};
use crate::offset_index::IndexEntry;
use crate::time_index::TimeEntry;
use crate::txn_index::AbortedTxn;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Path of a file of the segment that begins at `base_offset`, as long as a cleaning writes it.
pub(crate) fn cleaned_path(directory: &Path, base_offset: Offset, kind: FileKind) -> PathBuf {
    with_leftover(&offset_file(directory, base_offset, kind), Leftover::Cleaned)
}

/// A segment that was written and synced, and waits to be put in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CleanedSegment {
    pub(crate) base_offset: Offset,
    pub(crate) size_bytes: u64,
    /// The largest timestamp of a record, and the last offset of its batch.
    pub(crate) max_timestamp: TimeEntry,
    pub(crate) has_txn_index: bool,
}

pub(super) struct SegmentWriter<'a> {
    work: &'a Work,
    base_offset: Offset,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    pending: Vec<u8>,
    written_bytes: u64,
    bytes_since_entry: u64,
    index: Vec<u8>,
    times: Vec<u8>,
    last_time: TimeEntry,
    max: TimeEntry,
    aborted: Vec<u8>,
}

impl<'a> SegmentWriter<'a> {
    pub(super) fn create(work: &'a Work, base_offset: Offset) -> Result<Self, StorageError> {
        let path = cleaned_path(&work.directory, base_offset, FileKind::Log);
        let file = work.disk().open(&path, OpenMode::Truncate).context("create", &path)?;
        let none = TimeEntry { timestamp: NO_TIMESTAMP, offset: base_offset };
        Ok(SegmentWriter {
            work,
            base_offset,
            path,
            file,
            pending: Vec::new(),
            written_bytes: 0,
            bytes_since_entry: 0,
            index: Vec::new(),
            times: Vec::new(),
            last_time: none,
            max: none,
            aborted: Vec::new(),
        })
    }

    fn position(&self) -> u64 {
        self.written_bytes + self.pending.len() as u64
    }

    /// Appends a batch. Its index entries follow the rules of an append to the log.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), CleanError> {
        let header = BatchHeader::parse(bytes)
            .map_err(|error| CleanError::Corrupt { offset: self.base_offset, reason: error.to_string() })?;
        let position = self.position();
        if position + bytes.len() as u64 > i32::MAX as u64 {
            return Err(CleanError::SegmentFull { base_offset: self.base_offset });
        }
        // A batch that lost its records keeps their time, but there is nothing to be found in it.
        if header.record_count > 0 && header.max_timestamp > self.max.timestamp {
            self.max = TimeEntry { timestamp: header.max_timestamp, offset: header.last_offset() };
        }
        if self.bytes_since_entry > self.work.index_interval_bytes {
            let relative_offset = (header.last_offset() - self.base_offset) as u32;
            self.index.extend(IndexEntry { relative_offset, position: position as u32 }.to_bytes());
            self.add_time_entry();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= WRITE_BYTES {
            self.write_pending()?;
        }
        Ok(())
    }

    /// Notes an aborted transaction whose marker was appended.
    pub(super) fn add_aborted(&mut self, txn: AbortedTxn) {
        self.aborted.extend(txn.to_bytes());
    }

    fn add_time_entry(&mut self) {
        if self.max.timestamp > self.last_time.timestamp {
            self.times.extend(self.max.to_bytes(self.base_offset));
            self.last_time = self.max;
        }
    }

    fn write_pending(&mut self) -> Result<(), StorageError> {
        if !self.pending.is_empty() {
            self.file.write_at(self.written_bytes, &mut [IoSlice::new(&self.pending)]).context("write", &self.path)?;
            self.written_bytes += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok(())
    }

    /// Writes what is left and makes files and names durable: from here on only whole sets of files are renamed.
    pub(super) fn finish(mut self) -> Result<CleanedSegment, StorageError> {
        self.add_time_entry();
        self.write_pending()?;
        self.file.sync().context("sync", &self.path)?;
        let has_txn_index = !self.aborted.is_empty();
        let mut small = vec![(FileKind::Index, &self.index), (FileKind::TimeIndex, &self.times)];
        small.extend(has_txn_index.then_some((FileKind::TxnIndex, &self.aborted)));
        let disk = self.work.disk();
        for (kind, content) in small {
            let path = cleaned_path(&self.work.directory, self.base_offset, kind);
            let file = disk.open(&path, OpenMode::Truncate).context("create", &path)?;
            if !content.is_empty() {
                file.write_at(0, &mut [IoSlice::new(content)]).context("write", &path)?;
            }
            file.sync().context("sync", &path)?;
        }
        disk.sync_dir(&self.work.directory).context("sync", &self.work.directory)?;
        Ok(CleanedSegment {
            base_offset: self.base_offset,
            size_bytes: self.written_bytes,
            max_timestamp: self.max,
            has_txn_index,
        })
    }
}
