//! Closing the active segment and beginning the next (Kafka: LocalLog.roll).

use std::sync::Arc;

use base::{Offset, TimestampMs};

use super::Log;
use crate::active::Active;
use crate::disk::{OpenMode, remove_if_exists};
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::FileKind;
use crate::segment::Segment;

impl Log {
    /// Closes the active segment and begins one at the log's end. An empty active segment stays as it is.
    pub fn roll(&mut self, now_ms: TimestampMs) -> Result<(), LogError> {
        self.roll_to(self.log_end_offset(), now_ms)
    }

    /// As `roll`; the new segment begins at `base_offset`, which lies above the log's end where the leader's log has a
    /// gap.
    pub(super) fn roll_to(&mut self, base_offset: Offset, now_ms: TimestampMs) -> Result<(), LogError> {
        self.ensure_online()?;
        let base_offset = base_offset.max(self.log_end_offset());
        if self.active.segment.base_offset() == base_offset {
            return Ok(());
        }
        if self.config.cleanup_compact {
            // Compaction leaves gaps between segments, so that recovery could not tell a lost end of the old segment
            // from one: the end must not get lost once there is a new segment.
            let synced = self.sync_active();
            self.failed |= synced.is_err();
            synced.map_err(LogError::SyncFailed)?;
        }
        let segment = Segment::new(base_offset, 0, false, now_ms);
        match self.make_segment_files(&segment) {
            Ok(()) => {}
            Err(error) => {
                // With the new segment gone again the old one goes on, once a full volume has room.
                let undone = remove_if_exists(self.disk(), &segment.log_path(&self.shared.directory));
                self.failed = !(error.is_full() && undone.is_ok());
                return Err(error.into());
            }
        }
        self.begin_segment(segment, now_ms);
        Ok(())
    }

    fn sync_active(&self) -> Result<(), StorageError> {
        let segment = &self.active.segment;
        let path = segment.log_path(&self.shared.directory);
        let file = segment.file(self.files(), &self.shared.directory).context("open", &path)?;
        file.file.sync().context("sync", &path)
    }

    /// Completes the files of the old segment and makes those of the new one. Can be done again after a failure.
    fn make_segment_files(&mut self, segment: &Segment) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        self.active.complete_indexes(disk, &shared.directory)?;
        // Files of that name are left from before a truncation.
        for kind in [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            let path = segment.path(&shared.directory, kind);
            remove_if_exists(disk, &path).context("remove", &path)?;
        }
        self.producers.advance_to(segment.base_offset());
        self.take_snapshot_unsynced()?;
        let path = segment.log_path(&shared.directory);
        disk.open(&path, OpenMode::Truncate).context("create", &path)?;
        self.unsynced.directory = true;
        Ok(())
    }

    fn begin_segment(&mut self, segment: Arc<Segment>, now_ms: TimestampMs) {
        let closed = self.active.segment.clone();
        closed.set_sealed(true);
        self.unsynced.segments.push(closed);
        let mut segments = self.shared.segments.load().0.clone();
        segments.push(segment.clone());
        self.active = Active::empty(segment, &self.config, now_ms);
        self.publish_segments(segments);
        self.shared.set_end(self.log_end_offset(), &self.active.segment);
    }
}
