//! A cleaning as the owner of the log sees it: it begins one, hands the reading and writing to another thread, and puts
//! each new segment in the place of the old ones (Kafka: LocalLog.replaceSegments).

use std::sync::Arc;

use base::{Offset, TimestampMs};

use super::Log;
use super::cleanable::Cleanable;
use crate::cleaner::{
    CleanError, CleanedGroup, CleanedSegment, CleaningJob, CleaningOptions, CleaningReport, Group, LastRecord, Work,
    cleaned_path,
};
use crate::disk::remove_if_exists;
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::{FileKind, Leftover, offset_file, with_leftover};
use crate::segment::Segment;

/// The files of a segment.
const KINDS: [FileKind; 4] = [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex];

/// A cleaning that was begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cleaning {
    /// Base offset of the segment that is being written.
    base_offset: Offset,
    /// Count of truncations when it began.
    generation: u64,
}

/// How a cleaning goes on.
#[derive(Debug)]
pub enum CleaningProgress {
    /// There is more to do.
    More(Box<CleaningJob>),
    /// All is done; `end_offset` belongs into the checkpoint.
    Done(CleaningReport),
    /// It ended early. The checkpoint stays, and the next cleaning does again what this one did.
    Ended(CleanError),
}

impl Log {
    /// Begins a cleaning of what `cleanable` found. `None` when there is nothing to clean, when the log is not to be
    /// compacted, or when another cleaning was begun and has not ended.
    pub fn begin_cleaning(
        &mut self,
        cleanable: &Cleanable,
        options: &CleaningOptions,
    ) -> Result<Option<Box<CleaningJob>>, LogError> {
        self.ensure_online()?;
        let end_offset = cleanable.first_uncleanable_offset.min(self.last_stable_offset());
        let segments: Group = {
            let list = self.shared.segments.load();
            let sealed = list.0.len().saturating_sub(1);
            list.0[..list.floor(end_offset).unwrap_or(0).min(sealed)].to_vec()
        };
        let begin = segments.first().map(|segment| segment.base_offset());
        let nothing = !self.config.cleanup_compact || cleanable.first_dirty_offset >= end_offset;
        let Some(base_offset) = begin.filter(|_| self.cleaning.is_none() && !nothing) else { return Ok(None) };
        let aborted = self.reader().aborted_transactions(base_offset, end_offset)?;
        let work = Work {
            files: self.files().clone(),
            directory: self.shared.directory.clone(),
            first_dirty_offset: cleanable.first_dirty_offset,
            end_offset,
            aborted,
            last_records: self.last_records(end_offset),
            now_ms: options.now_ms,
            delete_retention_ms: self.config.delete_retention_ms,
            segment_bytes: self.config.segment_bytes,
            segment_index_bytes: self.config.segment_index_bytes,
            index_interval_bytes: self.config.index_interval_bytes,
            map_bytes_max: options.map_bytes_max,
            map_load_factor: options.map_load_factor,
            seed: options.seed,
        };
        self.cleaning = Some(Cleaning { base_offset, generation: self.flush_generation });
        Ok(Some(Box::new(CleaningJob::new(work, segments))))
    }

    /// Whether a cleaning was begun and has not ended. What changes the list of segments meanwhile makes it start over.
    pub fn is_cleaning(&self) -> bool {
        self.cleaning.is_some()
    }

    /// What producers wrote last, as far as it lies before `end_offset`.
    fn last_records(&self, end_offset: Offset) -> std::collections::BTreeMap<base::ProducerId, LastRecord> {
        let last = self.producers.iter().map(|entry| match entry.last_batch() {
            Some(batch) => (entry.producer_id, LastRecord::Data(batch.last_offset)),
            None => (entry.producer_id, LastRecord::Marker(entry.producer_epoch)),
        });
        last.filter(|(_, last)| !matches!(last, LastRecord::Data(offset) if *offset >= end_offset)).collect()
    }

    /// Puts what a job has written in place, or drops it when the log has changed or the job has failed. Renames files
    /// and syncs the directory. After a failure to do so the log is offline.
    pub fn finish_cleaning(
        &mut self,
        outcome: Result<CleanedGroup, CleanError>,
        now_ms: TimestampMs,
    ) -> Result<CleaningProgress, LogError> {
        let Some(cleaning) = self.cleaning.take() else { return Ok(CleaningProgress::Ended(CleanError::Overtaken)) };
        self.ensure_online()?;
        let list = self.shared.segments.load_full();
        let group = match outcome {
            Ok(group) if group.old.iter().any(|old| !list.contains(old)) => Err(CleanError::Overtaken),
            Ok(_) if cleaning.generation != self.flush_generation => Err(CleanError::Overtaken),
            outcome => outcome,
        };
        let group = match group {
            Ok(group) => group,
            Err(error) => {
                self.drop_cleaned(cleaning.base_offset)?;
                return Ok(CleaningProgress::Ended(error));
            }
        };
        match group.cleaned {
            Some(cleaned) => {
                let swapped = self.swap_in(&cleaned, &group.old, now_ms);
                self.fail(swapped)?;
            }
            None => self.drop_cleaned(cleaning.base_offset)?,
        }
        Ok(match group.job.next_base_offset() {
            Some(base_offset) => {
                self.cleaning = Some(Cleaning { base_offset, ..cleaning });
                CleaningProgress::More(Box::new(group.job))
            }
            None => CleaningProgress::Done(group.job.report()),
        })
    }

    /// Removes what a job may have written.
    fn drop_cleaned(&mut self, base_offset: Offset) -> Result<(), StorageError> {
        for kind in KINDS {
            let path = cleaned_path(&self.shared.directory, base_offset, kind);
            remove_if_exists(self.disk(), &path).context("remove", &path)?;
        }
        Ok(())
    }

    /// The order of renames and syncs is what a start after a crash relies on (see `tidy`): as long as one file is
    /// `.cleaned` the old segments are whole, and all is undone; when all are `.swap` the old segments may go, and all
    /// is finished. The log file takes its name first and for good, because the other files of that name count as old
    /// ones while it is `.swap`.
    fn swap_in(
        &mut self,
        cleaned: &CleanedSegment,
        old: &[Arc<Segment>],
        now_ms: TimestampMs,
    ) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let directory = &shared.directory;
        for segment in old {
            segment.retire(&shared.files, directory)?;
        }
        // A read that took hold of a segment before it was retired may see the new files through it, and is repeated.
        shared.begin_truncation();
        let kinds = || KINDS.into_iter().filter(|kind| *kind != FileKind::TxnIndex || cleaned.has_txn_index);
        for kind in kinds() {
            let path = offset_file(directory, cleaned.base_offset, kind);
            let from = with_leftover(&path, Leftover::Cleaned);
            disk.rename(&from, &with_leftover(&path, Leftover::Swap)).context("rename", &from)?;
        }
        disk.sync_dir(directory).context("sync", directory)?;
        for segment in old {
            self.expire_segment_files(segment, now_ms)?;
        }
        disk.sync_dir(directory).context("sync", directory)?;
        for kind in kinds() {
            let path = offset_file(directory, cleaned.base_offset, kind);
            let from = with_leftover(&path, Leftover::Swap);
            disk.rename(&from, &path).context("rename", &from)?;
            if kind == FileKind::Log {
                disk.sync_dir(directory).context("sync", directory)?;
            }
        }
        self.unsynced.directory = true;
        self.publish_cleaned(cleaned, old);
        shared.begin_truncation();
        let gone: Vec<Offset> = old.iter().skip(1).map(|segment| segment.base_offset()).collect();
        let latest = self.snapshots.last().copied();
        self.remove_snapshots(|offset| Some(offset) == latest || gone.binary_search(&offset).is_err())
    }

    fn publish_cleaned(&self, cleaned: &CleanedSegment, old: &[Arc<Segment>]) {
        let modified_ms = old.last().map_or(0, |segment| segment.modified_ms());
        let segment = Segment::new(cleaned.base_offset, cleaned.size_bytes, true, modified_ms);
        segment.set_max_timestamp(cleaned.max_timestamp);
        if cleaned.has_txn_index {
            segment.set_has_txn_index();
        }
        let list = self.shared.segments.load();
        let is_old = |segment: &Arc<Segment>| old.iter().any(|old| Arc::ptr_eq(old, segment));
        let mut segments: Vec<Arc<Segment>> = list.0.iter().filter(|segment| !is_old(segment)).cloned().collect();
        segments.insert(segments.partition_point(|other| other.base_offset() < cleaned.base_offset), segment);
        self.publish_segments(segments);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::PathBuf;

    use base::TopicPartition;
    use record_batch::{BatchBuilder, RecordData};

    use super::*;
    use crate::disk::SimDisk;
    use crate::{AppendItem, AppendOrigin, AppendScratch, FileCache, LogConfig, LogOptions};

    fn compacted() -> Log {
        let config = LogConfig { cleanup_compact: true, index_interval_bytes: 1, ..LogConfig::default() };
        let options = LogOptions {
            partition: TopicPartition::new("t", 0),
            directory: PathBuf::from("/t-0"),
            topic_id: None,
            config: Arc::new(config),
            files: FileCache::new(Arc::new(SimDisk::new()), 8),
            recovery_point: 0,
            log_start_offset: 0,
            high_watermark: 0,
            clean_shutdown: false,
            now_ms: 1,
        };
        Log::open(options).unwrap().log
    }

    fn put(log: &mut Log) {
        let mut builder = BatchBuilder::new(0);
        builder.append(&RecordData::new(1).key(b"k").value(b"v"));
        let mut records = builder.build().unwrap();
        let item = AppendItem { records: &mut records, origin: AppendOrigin::Client, transaction_verified: true };
        log.append_as_leader(&mut AppendScratch::default(), &mut [item], 0, 1, &mut Vec::new());
        log.set_high_watermark(log.log_end_offset());
    }

    #[test]
    fn a_scrub_in_the_middle_of_a_swap_takes_the_new_file_for_no_damage() {
        let mut log = compacted();
        for _ in 0..3 {
            put(&mut log);
        }
        log.roll(1).unwrap();
        log.flush().unwrap();
        let damaged = |log: &Log| {
            let part = log.reader().scrub_part(&crate::ScrubPlace::at(0)).unwrap();
            part.run(u64::MAX).unwrap().damage.len()
        };
        let segment = log.shared.segments.load().0[0].clone();
        let (files, directory) = (log.files().clone(), log.directory().to_path_buf());
        let replace = || {
            let file = files.disk().open(&segment.log_path(&directory), crate::OpenMode::Truncate).unwrap();
            file.write_at(0, &mut [std::io::IoSlice::new(&[7; 500])]).unwrap();
        };
        segment.retire(&files, &directory).unwrap();
        replace();
        assert_eq!(damaged(&log), 0);
    }

    #[test]
    fn a_segment_that_was_replaced_still_reads_its_own_files() {
        let mut log = compacted();
        for _ in 0..3 {
            put(&mut log);
        }
        log.roll(1).unwrap();
        let old = log.shared.segments.load().0[0].clone();
        let cleanable = log.cleanable(None, 1).unwrap();
        let options = CleaningOptions { now_ms: 1, map_bytes_max: 1000, map_load_factor: 0.9, seed: 1 };
        let job = log.begin_cleaning(&cleanable, &options).unwrap().unwrap();
        let done = job.run(&mut |_| ControlFlow::Continue(()));
        assert!(matches!(log.finish_cleaning(done, 1).unwrap(), CleaningProgress::Done(_)));
        old.release();
        let (files, directory) = (log.files().clone(), log.directory().to_path_buf());
        assert_eq!(old.file(&files, &directory).unwrap().file.len().unwrap(), old.size_bytes());
        assert_eq!(old.index(files.disk().as_ref(), &directory).unwrap().len(), 2);
        let new = log.shared.segments.load().0[0].clone();
        assert_eq!(new.file(&files, &directory).unwrap().file.len().unwrap(), new.size_bytes());
        assert!(new.size_bytes() < old.size_bytes());
    }
}
