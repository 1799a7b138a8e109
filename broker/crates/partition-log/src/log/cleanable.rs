//! What of a log compaction may clean now, and whether it is worth it (Kafka: LogCleanerManager.cleanableOffsets,
//! LogToClean; KIP-58 for the least lag, KIP-354 for the largest).

use std::sync::Arc;

use base::{Offset, TimestampMs};
use record_batch::{BatchHeader, HEADER_LEN};

use super::Log;
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::FileKind;
use crate::segment::Segment;

/// What keeps the rest of a log from being cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldBack {
    /// The active segment is never cleaned.
    ActiveSegment,
    /// Records that not all in-sync replicas have.
    HighWatermark,
    /// An open transaction.
    OpenTransaction,
    /// Records younger than `min.compaction.lag.ms`.
    CompactionLag,
}

/// The part of a log that can be cleaned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cleanable {
    /// Everything before was cleaned.
    pub first_dirty_offset: Offset,
    /// Where the first segment begins that cannot be cleaned.
    pub first_uncleanable_offset: Offset,
    /// What lies there.
    pub held_back_by: HeldBack,
    /// Bytes of the segments that begin before the dirty part.
    pub clean_bytes: u64,
    /// Bytes of the segments of the dirty part.
    pub cleanable_bytes: u64,
    /// Time by which a record is older than `max.compaction.lag.ms`; 0 when none is.
    pub max_compaction_delay_ms: i64,
    /// The checkpoint names no offset of this log and is to be replaced by `first_dirty_offset`.
    pub checkpoint_is_invalid: bool,
    /// The log asks to be cleaned: enough of it is dirty, or some of it for too long.
    pub is_due: bool,
}

impl Cleanable {
    /// Share of the cleanable bytes in all that a cleaning would read, 0 to 1; of several logs the dirtiest goes first.
    pub fn dirty_ratio(&self) -> f64 {
        let total = self.clean_bytes + self.cleanable_bytes;
        if total == 0 { 0.0 } else { self.cleanable_bytes as f64 / total as f64 }
    }
}

impl Log {
    /// What can be cleaned; `checkpoint` is the log's entry in `cleaner-offset-checkpoint`. Reads the first header of
    /// each dirty segment where `max.compaction.lag.ms` is set.
    pub fn cleanable(&self, checkpoint: Option<Offset>, now_ms: TimestampMs) -> Result<Cleanable, LogError> {
        self.ensure_online()?;
        let list = self.shared.segments.load_full();
        let start = self.log_start_offset();
        let checkpoint_is_invalid = checkpoint.is_some_and(|offset| offset < start || offset > self.log_end_offset());
        let first_dirty_offset = checkpoint.filter(|_| !checkpoint_is_invalid).unwrap_or(start);
        let active = list.0.len().saturating_sub(1);
        let dirty = list.floor(first_dirty_offset).unwrap_or(0).min(active);
        let (limit, held_back_by) = self.first_uncleanable(&list.0[dirty..active], now_ms)?;
        // Only whole segments are cleaned: what lies behind the limit may still be undone.
        let end = list.floor(limit.max(first_dirty_offset)).unwrap_or(0).min(active);
        let bytes = |segments: &[Arc<Segment>]| segments.iter().map(|segment| segment.size_bytes()).sum::<u64>();
        let clean = list.0.partition_point(|segment| segment.base_offset() < first_dirty_offset);
        let mut cleanable = Cleanable {
            first_dirty_offset,
            first_uncleanable_offset: list.0.get(end).map_or(start, |segment| segment.base_offset()),
            held_back_by,
            clean_bytes: bytes(&list.0[..clean]),
            cleanable_bytes: bytes(&list.0[dirty.min(end)..end]),
            max_compaction_delay_ms: self.compaction_delay_ms(&list.0[dirty..active], now_ms)?,
            checkpoint_is_invalid,
            is_due: false,
        };
        let late = cleanable.max_compaction_delay_ms > 0 && cleanable.cleanable_bytes > 0;
        let dirty_enough = cleanable.dirty_ratio() > self.config.min_cleanable_dirty_ratio;
        cleanable.is_due = self.config.cleanup_compact && (late || dirty_enough);
        Ok(cleanable)
    }

    fn first_uncleanable(
        &self,
        dirty: &[Arc<Segment>],
        now_ms: TimestampMs,
    ) -> Result<(Offset, HeldBack), StorageError> {
        let unstable = if self.last_stable_offset() < self.high_watermark() {
            HeldBack::OpenTransaction
        } else {
            HeldBack::HighWatermark
        };
        let mut limit = (self.active.segment.base_offset(), HeldBack::ActiveSegment);
        if self.last_stable_offset() < limit.0 {
            limit = (self.last_stable_offset(), unstable);
        }
        if self.config.min_compaction_lag_ms > 0 {
            let oldest_young = now_ms.saturating_sub(self.config.min_compaction_lag_ms);
            for segment in dirty {
                let path = segment.path(&self.shared.directory, FileKind::TimeIndex);
                let newest = segment.max_timestamp(self.disk(), &self.shared.directory).context("read", &path)?;
                let newest = if newest.timestamp >= 0 { newest.timestamp } else { segment.modified_ms() };
                if newest > oldest_young && segment.base_offset() < limit.0 {
                    limit = (segment.base_offset(), HeldBack::CompactionLag);
                    break;
                }
            }
        }
        Ok(limit)
    }

    fn compaction_delay_ms(&self, dirty: &[Arc<Segment>], now_ms: TimestampMs) -> Result<i64, StorageError> {
        let lag_ms = self.config.max_compaction_lag_ms.max(0);
        let clean_until = now_ms.saturating_sub(lag_ms);
        if clean_until <= 0 {
            return Ok(0);
        }
        let mut delay_ms = 0;
        for segment in dirty.iter().filter(|segment| segment.size_bytes() > 0) {
            let path = segment.log_path(&self.shared.directory);
            let file = segment.file(self.files(), &self.shared.directory).context("open", &path)?;
            let mut head = [0; HEADER_LEN];
            file.file.read_at(0, &mut head).context("read", &path)?;
            let first = BatchHeader::parse(&head).ok().map(|header| header.max_timestamp).filter(|first| *first > 0);
            delay_ms = delay_ms.max(first.map_or(0, |first| clean_until.saturating_sub(first)));
        }
        Ok(delay_ms)
    }

    /// Closes the active segment when its first batch is older than `max.compaction.lag.ms`, so that a log to which
    /// nothing is appended any more gets cleaned too; true when it was closed.
    pub fn roll_for_compaction(&mut self, now_ms: TimestampMs) -> Result<bool, LogError> {
        self.ensure_online()?;
        let lag_ms = self.config.max_compaction_lag_ms;
        let segment = self.active.segment.clone();
        if !self.config.cleanup_compact || lag_ms == i64::MAX || segment.size_bytes() == 0 {
            return Ok(false);
        }
        let path = segment.log_path(&self.shared.directory);
        let file = segment.file(self.files(), &self.shared.directory).context("open", &path)?;
        let waited = self.active.waited_ms(file.file.as_ref(), now_ms, now_ms).context("read", &path)?;
        if waited <= lag_ms.max(0) {
            return Ok(false);
        }
        self.roll(now_ms)?;
        Ok(true)
    }
}
