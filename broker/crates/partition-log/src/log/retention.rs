//! Removal of old segments by time, size and log start (Kafka: UnifiedLog.deleteOldSegments).

use std::path::PathBuf;
use std::sync::Arc;

use base::{Offset, TimestampMs};

use super::Log;
use crate::disk::remove_if_exists;
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::FileKind;
use crate::segment::Segment;

/// What retention removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionReport {
    /// Segments removed.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Log {
    /// Removes the segments that are due, oldest first: those before the log start; where `cleanup.policy` has `delete`
    /// also those over the size limit, and those whose largest timestamp is too old. Nothing at or above the high
    /// watermark goes. The active segment goes only together with all others, and a new one is begun first. Files are
    /// renamed now and removed by `remove_expired_files` later.
    pub fn apply_retention(&mut self, now_ms: TimestampMs) -> Result<RetentionReport, LogError> {
        self.ensure_online()?;
        let mut report = RetentionReport::default();
        let log_start_offset = self.log_start_offset();
        self.remove_while(now_ms, &mut report, |_, next| Ok(next.is_some_and(|base| base <= log_start_offset)))?;
        if !self.config.cleanup_delete {
            return Ok(report);
        }
        let retention_bytes = self.config.retention_bytes;
        let size_bytes = self.size_bytes() as i64;
        if retention_bytes >= 0 && size_bytes >= retention_bytes {
            let mut excess = size_bytes - retention_bytes;
            self.remove_while(now_ms, &mut report, |segment, _| {
                let left = excess - segment.size_bytes() as i64;
                let due = left >= 0;
                excess = if due { left } else { excess };
                Ok(due)
            })?;
        }
        let retention_ms = self.config.retention_ms;
        if retention_ms >= 0 {
            let shared = self.shared.clone();
            self.remove_while(now_ms, &mut report, |segment, _| {
                let path = segment.path(&shared.directory, FileKind::TimeIndex);
                let newest = segment.max_timestamp(shared.files.disk().as_ref(), &shared.directory);
                let newest = newest.context("read", &path)?.timestamp;
                let newest = if newest >= 0 { newest } else { segment.modified_ms() };
                Ok(now_ms.saturating_sub(newest) > retention_ms)
            })?;
        }
        Ok(report)
    }

    /// Removes segments from the oldest on, as long as `due` holds; it is given the base offset of the next.
    fn remove_while(
        &mut self,
        now_ms: TimestampMs,
        report: &mut RetentionReport,
        mut due: impl FnMut(&Segment, Option<Offset>) -> Result<bool, StorageError>,
    ) -> Result<(), LogError> {
        let segments = self.shared.segments.load().0.clone();
        let mut count = 0;
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1).map(|next| next.base_offset());
            let end = next.unwrap_or(self.log_end_offset());
            let last_and_empty = next.is_none() && segment.size_bytes() == 0;
            if self.high_watermark() < end || last_and_empty || !due(segment, next)? {
                break;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        if count == segments.len() {
            self.roll(now_ms)?;
        }
        let outcome = self.remove_first(&segments[..count], now_ms, report);
        self.fail(outcome)
    }

    fn remove_first(
        &mut self,
        gone: &[Arc<Segment>],
        now_ms: TimestampMs,
        report: &mut RetentionReport,
    ) -> Result<(), StorageError> {
        let kept = self.shared.segments.load().0[gone.len()..].to_vec();
        let Some(first) = kept.first().cloned() else { return Ok(()) };
        // Readers are sent past the segments before their files go.
        if first.base_offset() > self.log_start_offset() {
            self.shared.set_log_start_offset(first.base_offset());
            if self.epochs.truncate_from_start(first.base_offset()) {
                self.publish_epochs();
            }
            self.producers.on_log_start(first.base_offset());
            self.publish_first_unstable();
        }
        self.publish_segments(kept);
        for segment in gone {
            report.segments += 1;
            report.bytes += segment.size_bytes();
            self.expire_segment_files(segment, now_ms)?;
        }
        let bases: Vec<Offset> = gone.iter().map(|segment| segment.base_offset()).collect();
        self.remove_snapshots(|offset| bases.binary_search(&offset).is_err())
    }

    /// Files whose time has come. The caller removes them, with `remove_expired_files` or on another thread.
    pub fn take_expired_files(&mut self, now_ms: TimestampMs) -> Vec<PathBuf> {
        let (due, waiting) =
            std::mem::take(&mut self.expired_files).into_iter().partition(|file| file.due_ms <= now_ms);
        self.expired_files = waiting;
        let due: Vec<super::ExpiredFile> = due;
        due.into_iter().map(|file| file.path).collect()
    }

    /// Removes the files whose time has come; returns their number.
    pub fn remove_expired_files(&mut self, now_ms: TimestampMs) -> Result<usize, LogError> {
        let due = self.take_expired_files(now_ms);
        for path in &due {
            remove_if_exists(self.disk(), path).context("remove", path)?;
        }
        Ok(due.len())
    }
}
