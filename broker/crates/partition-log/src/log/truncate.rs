//! Cutting the log at its end, where another leader's log differs, and at its start (Kafka: UnifiedLog.truncateTo,
//! truncateFullyAndStartAt, maybeIncrementLogStartOffset).

use std::sync::Arc;

use base::{Offset, TimestampMs};

use super::Log;
use crate::active::Active;
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::{FileKind, Leftover, with_leftover};
use crate::scan::{Depth, ScanError, Scanner};
use crate::segment::Segment;

impl Log {
    /// Removes everything from `offset` on; a batch that holds `offset` goes as a whole. True when anything was
    /// removed. The cut is durable on return. The recovery point may fall: the caller must write its checkpoint before
    /// it appends again, or a crash would leave unsynced records below it.
    pub fn truncate_to(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<bool, LogError> {
        self.ensure_online()?;
        let log_end_offset = self.log_end_offset();
        if offset >= log_end_offset {
            // An epoch may have begun here without a record.
            if self.epochs.truncate_from_end(log_end_offset) {
                self.publish_epochs();
            }
            return Ok(false);
        }
        if offset < self.first_base_offset() {
            self.truncate_fully_and_start_at(offset, now_ms)?;
            return Ok(true);
        }
        self.shared.begin_truncation();
        self.flush_generation += 1;
        let outcome = self.cut_files(offset, now_ms);
        self.fail(outcome)?;
        self.shared.set_log_start_offset(self.log_start_offset().min(offset));
        self.shared.set_recovery_point(self.recovery_point().min(offset));
        if self.epochs.truncate_from_end(offset) {
            self.publish_epochs();
        }
        self.set_high_watermark(self.high_watermark());
        let reloaded = self.reload_producers(offset, now_ms);
        if reloaded.is_err() {
            self.failed = true;
        }
        self.shared.begin_truncation();
        reloaded
    }

    fn reload_producers(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<bool, LogError> {
        self.remove_snapshots(|snapshot| snapshot <= offset)?;
        self.load_producers(offset, now_ms)?;
        self.publish_first_unstable();
        Ok(true)
    }

    fn cut_files(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let old = shared.segments.load().0.clone();
        let kept = shared.segments.load().floor(offset).map_or(0, |at| at + 1);
        let position = match old.get(kept.wrapping_sub(1)) {
            Some(last) => self.position_of(last, offset)?,
            None => 0,
        };
        // From the end, so that a crash in between leaves a log without a hole.
        for gone in old[kept..].iter().rev() {
            self.expire_segment_files(gone, now_ms)?;
        }
        if kept < old.len() {
            disk.sync_dir(&shared.directory).context("sync", &shared.directory)?;
        }
        let Some(last) = old.get(kept.wrapping_sub(1)) else { return Ok(()) };
        if self.active.segment.base_offset() == last.base_offset() {
            self.active.write_pending(disk, &shared.directory)?;
        }
        let path = last.log_path(&shared.directory);
        let file = last.file(&shared.files, &shared.directory).context("open", &path)?;
        file.file.set_len(position).context("truncate", &path)?;
        file.file.sync().context("sync", &path)?;
        shared.files.close(last);
        // A new segment in the place of the old: readers of the old one see that it was cut by the count of truncations.
        let segment = Segment::new(last.base_offset(), position, false, now_ms);
        if last.has_txn_index() {
            segment.set_has_txn_index();
        }
        self.active = Active::load(segment.clone(), disk, &shared.directory, &self.config, now_ms)?;
        self.active.rewind_indexes(disk, &shared.directory, position, offset)?;
        self.cut_txn_index(&segment, offset)?;
        self.active.restore_max_timestamp(self.largest_timestamp(&segment)?);
        let mut segments = old[..kept - 1].to_vec();
        segments.push(segment.clone());
        self.unsynced.segments.retain(|unsynced| unsynced.base_offset() < last.base_offset());
        self.publish_segments(segments);
        self.shared.set_end(offset, &segment);
        Ok(())
    }

    /// Where the first batch begins that holds `offset` or follows it.
    fn position_of(&self, segment: &Arc<Segment>, offset: Offset) -> Result<u64, StorageError> {
        let shared = &self.shared;
        let index = segment
            .index(shared.files.disk().as_ref(), &shared.directory)
            .context("read", &segment.path(&shared.directory, FileKind::Index))?;
        let begin = u64::from(index.position_before(segment.relative(offset)));
        let mut scanner = self.segment_scanner(segment, begin)?;
        loop {
            match scanner.next(Depth::Headers) {
                Ok(Some(batch)) if batch.header.last_offset() < offset => {}
                Ok(Some(batch)) => return Ok(batch.position),
                Ok(None) => return Ok(segment.size_bytes()),
                Err(error) => return Err(scan_error(segment, &shared.directory, error)),
            }
        }
    }

    /// The largest timestamp behind the last entry of the time index, and the last offset of its batch.
    fn largest_timestamp(&self, segment: &Arc<Segment>) -> Result<Option<crate::time_index::TimeEntry>, StorageError> {
        let covered = self.active.max_timestamp();
        let index = segment
            .index(self.disk(), &self.shared.directory)
            .context("read", &segment.path(&self.shared.directory, FileKind::Index))?;
        let begin = u64::from(index.position_before(segment.relative(covered.offset)));
        let mut scanner = self.segment_scanner(segment, begin)?;
        let mut largest = None;
        let mut timestamp = covered.timestamp;
        loop {
            match scanner.next(Depth::Headers) {
                Ok(Some(batch)) if batch.header.max_timestamp > timestamp => {
                    timestamp = batch.header.max_timestamp;
                    largest = Some(crate::time_index::TimeEntry { timestamp, offset: batch.header.last_offset() });
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(largest),
                Err(error) => return Err(scan_error(segment, &self.shared.directory, error)),
            }
        }
    }

    pub(super) fn segment_scanner(&self, segment: &Arc<Segment>, position: u64) -> Result<Scanner, StorageError> {
        let shared = &self.shared;
        let path = segment.log_path(&shared.directory);
        let file = segment.file(&shared.files, &shared.directory).context("open", &path)?;
        Ok(Scanner::new(file.file.clone(), position, segment.size_bytes()))
    }

    /// Removes everything; the next record gets `offset` (a follower that lies outside its leader's log, or a replica
    /// that begins with a snapshot). Durable on return; the recovery point may fall or rise to `offset`.
    pub fn truncate_fully_and_start_at(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<(), LogError> {
        self.ensure_online()?;
        self.shared.begin_truncation();
        self.flush_generation += 1;
        let outcome = self.restart_at(offset, now_ms);
        self.fail(outcome)?;
        self.shared.set_log_start_offset(offset);
        self.shared.set_recovery_point(offset);
        self.publish_epochs();
        self.set_high_watermark(offset);
        self.shared.begin_truncation();
        Ok(())
    }

    /// Raises the first readable offset (DeleteRecords, or what a leader says of its own). Segments that lie before it
    /// go with the next retention run. Lower offsets change nothing. The caller keeps `log-start-offset-checkpoint`.
    pub fn advance_log_start(&mut self, offset: Offset) -> Result<Offset, LogError> {
        self.ensure_online()?;
        if offset > self.high_watermark() {
            return Err(LogError::AboveLimit { offset, limit: self.high_watermark() });
        }
        if offset > self.log_start_offset() {
            self.shared.set_log_start_offset(offset);
            if self.epochs.truncate_from_start(offset) {
                self.publish_epochs();
            }
            self.producers.on_log_start(offset);
            self.publish_first_unstable();
        }
        Ok(self.log_start_offset())
    }

    /// Renames a segment's files, for removal when the delay is over.
    pub(super) fn expire_segment_files(
        &mut self,
        segment: &Arc<Segment>,
        now_ms: TimestampMs,
    ) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        for kind in [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            let path = segment.path(&shared.directory, kind);
            let renamed = with_leftover(&path, Leftover::Deleted);
            match self.disk().rename(&path, &renamed) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StorageError::new("rename", &path, error)),
            }
            let due_ms = now_ms.saturating_add(self.config.file_delete_delay_ms);
            self.expired_files.push(super::ExpiredFile { path: renamed, due_ms });
        }
        shared.files.close(segment);
        self.unsynced.directory = true;
        self.unsynced.segments.retain(|unsynced| !Arc::ptr_eq(unsynced, segment));
        Ok(())
    }
}

fn scan_error(segment: &Segment, directory: &std::path::Path, error: ScanError) -> StorageError {
    let path = segment.log_path(directory);
    match error {
        ScanError::Io(error) => StorageError::new("read", &path, error),
        other @ (ScanError::Torn { .. } | ScanError::Bad { .. }) => {
            StorageError::new("read", &path, std::io::Error::new(std::io::ErrorKind::InvalidData, other.to_string()))
        }
    }
}
