//! Index files that are lost are made again from the headers of the batches (Kafka: LogLoader.loadSegmentFiles), and so
//! are the leader epochs. A closed segment always has both index files; the newest one has them after an orderly stop.

use super::Log;
use super::open::LogOptions;
use crate::active::{Active, WrittenBatch};
use crate::errors::OpenError;
use crate::formats::epoch_checkpoint::EpochEntry;
use crate::scan::Depth;
use crate::segment::Segment;
use std::sync::Arc;

impl Log {
    /// Makes the indexes of the segments in `lacking` (base offsets, rising) that recovery will not go through.
    pub(super) fn rebuild_lost_indexes(&mut self, lacking: &[i64], options: &LogOptions) -> Result<(), OpenError> {
        let segments = self.shared.segments.load().0.clone();
        let newest = segments.len().saturating_sub(1);
        for (at, segment) in segments.iter().enumerate() {
            let lost = segment.size_bytes() > 0 && lacking.binary_search(&segment.base_offset()).is_ok();
            let trusted =
                options.clean_shutdown || (at < newest && segments[at + 1].base_offset() <= options.recovery_point);
            if lost && trusted {
                self.reindex(segment, options)?;
            }
        }
        Ok(())
    }

    /// Makes the leader epochs again from the headers of all batches, up to the first that cannot be read: recovery
    /// says what is wrong with that one.
    pub(super) fn rebuild_epochs(&mut self) -> Result<(), OpenError> {
        self.epochs.clear();
        self.unsynced.epochs = true;
        let segments = self.shared.segments.load().0.clone();
        for segment in &segments {
            let mut scanner = self.segment_scanner(segment, 0)?;
            while let Ok(Some(scanned)) = scanner.next(Depth::Headers) {
                let epoch = scanned.header.partition_leader_epoch;
                if self.epochs.latest().is_none_or(|latest| epoch > latest) {
                    self.epochs.assign(EpochEntry { epoch, start_offset: scanned.header.base_offset });
                }
            }
        }
        Ok(())
    }

    fn reindex(&mut self, segment: &Arc<Segment>, options: &LogOptions) -> Result<(), OpenError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let size_bytes = segment.size_bytes();
        let mut active = Active::load(segment.clone(), disk, &shared.directory, &self.config, options.now_ms)?;
        active.rewind_indexes(disk, &shared.directory, 0, segment.base_offset())?;
        let mut scanner = self.segment_scanner(segment, 0)?;
        let mut next = segment.base_offset();
        loop {
            let scanned = match scanner.next(Depth::Headers) {
                Ok(Some(scanned)) => scanned,
                Ok(None) => break,
                Err(error) => return Err(self.damage(segment, &scanner, next, error)),
            };
            next = scanned.header.next_offset();
            let written = WrittenBatch::of(&scanned.header);
            active.note(&[written], scanned.position, disk, &shared.directory, &self.config)?;
        }
        active.complete_indexes(disk, &shared.directory)?;
        segment.set_size_bytes(size_bytes);
        segment.drop_index();
        self.unsynced.segments.push(segment.clone());
        Ok(())
    }
}
