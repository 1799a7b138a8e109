//! Making the log durable. A sync may take long, so that it can be taken off the owner's thread: the owner begins it, any
//! thread runs it, and the owner takes note. A failed sync is final (reliability of fsync: the pages count as clean
//! after a failure, and a second sync would succeed without having saved them).

use std::path::PathBuf;
use std::sync::Arc;

use base::{Offset, TopicId};
use parking_lot::Mutex;

use super::{Log, Unsynced};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::errors::{IoContext, LogError, StorageError};
use crate::formats::epoch_checkpoint::{self, EpochEntry};
use crate::formats::partition_metadata;
use crate::names::{FileKind, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA};

/// What fails when a small file cannot be written: on a full volume it may be tried again, unlike a sync.
const WRITE: &str = "write";

/// Keeps syncs of one log apart, and a later one from being undone by an earlier one that runs after it.
#[derive(Debug, Clone, Default)]
pub(super) struct FlushOrder {
    /// Number of the latest sync that was run; made with the first sync.
    run: Option<Arc<Mutex<u64>>>,
    begun: u64,
}

/// A sync that is to be run, on any thread.
#[derive(Debug)]
pub struct FlushJob {
    number: u64,
    latest_run: Arc<Mutex<u64>>,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    logs: Vec<(PathBuf, Arc<dyn DiskFile>)>,
    /// Files whose loss costs time, not records; missing ones are skipped.
    others: Vec<PathBuf>,
    epochs: Option<Vec<EpochEntry>>,
    metadata: Option<TopicId>,
    sync_directory: bool,
    sync_parent: bool,
    done: FlushDone,
}

/// A sync that has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushDone {
    end_offset: Offset,
    generation: u64,
}

impl FlushDone {
    /// Everything below is durable, unless the log was truncated meanwhile.
    pub fn end_offset(&self) -> Offset {
        self.end_offset
    }
}

impl FlushJob {
    /// Syncs everything that was written before the job was begun. Waits for the device.
    pub fn run(self) -> Result<FlushDone, StorageError> {
        let mut latest_run = self.latest_run.lock();
        if *latest_run > self.number {
            // A later sync covered all of this one.
            return Ok(self.done);
        }
        self.run_alone()?;
        *latest_run = self.number;
        Ok(self.done)
    }

    fn run_alone(&self) -> Result<(), StorageError> {
        if let Some(topic_id) = self.metadata {
            let path = self.directory.join(PARTITION_METADATA);
            partition_metadata::write(self.disk.as_ref(), &path, topic_id).context(WRITE, &path)?;
        }
        for (path, file) in &self.logs {
            file.sync().context("sync", path)?;
        }
        for path in &self.others {
            match self.disk.open(path, OpenMode::Existing) {
                Ok(file) => file.sync().context("sync", path)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StorageError::new("open", path, error)),
            }
        }
        if let Some(epochs) = &self.epochs {
            let path = self.directory.join(LEADER_EPOCH_CHECKPOINT);
            epoch_checkpoint::write(self.disk.as_ref(), &path, epochs).context(WRITE, &path)?;
        }
        if self.sync_directory {
            self.disk.sync_dir(&self.directory).context("sync", &self.directory)?;
        }
        if let Some(parent) = self.directory.parent().filter(|_| self.sync_parent) {
            self.disk.sync_dir(parent).context("sync", parent)?;
        }
        Ok(())
    }
}

impl Log {
    /// True when the log asks to be synced: closed segments that are not, or `flush.messages` records since the last
    /// sync. `flush.ms` is the caller's to watch.
    pub fn needs_flush(&self) -> bool {
        let unflushed = self.log_end_offset() - self.recovery_point();
        !self.unsynced.segments.is_empty() || (unflushed > 0 && unflushed >= self.config.flush_messages)
    }

    /// Records that a power cut may take.
    pub fn unflushed_records(&self) -> i64 {
        self.log_end_offset() - self.recovery_point()
    }

    /// Begins a sync of all that is written. `None` when everything is durable, or when another sync was begun and its
    /// end has not been told to `finish_flush`.
    pub fn begin_flush(&mut self) -> Result<Option<FlushJob>, LogError> {
        self.ensure_online()?;
        let idle = self.unsynced.is_nothing() && self.log_end_offset() <= self.recovery_point();
        if self.flush_in_flight.is_some() || idle {
            return Ok(None);
        }
        let unsynced = std::mem::take(&mut self.unsynced);
        self.flush_in_flight = Some(unsynced.clone());
        let outcome = self.prepare_flush(unsynced);
        self.fail(outcome).map(Some)
    }

    fn prepare_flush(&mut self, unsynced: Unsynced) -> Result<FlushJob, StorageError> {
        let shared = self.shared.clone();
        let mut logs = Vec::with_capacity(unsynced.segments.len() + 1);
        let mut others = unsynced.files;
        let list = shared.segments.load();
        // Segments that were removed or cut meanwhile need no sync any more.
        let there = unsynced.segments.iter().filter(|segment| list.contains(segment));
        for segment in there.chain([&self.active.segment]) {
            let path = segment.log_path(&shared.directory);
            let file = segment.file(&shared.files, &shared.directory).context("open", &path)?;
            logs.push((path, file.file.clone()));
            if segment.is_sealed() {
                others.extend([FileKind::Index, FileKind::TimeIndex].map(|kind| segment.path(&shared.directory, kind)));
            }
        }
        self.flush_order.begun += 1;
        Ok(FlushJob {
            number: self.flush_order.begun,
            latest_run: self.flush_order.run.get_or_insert_default().clone(),
            disk: shared.files.disk().clone(),
            directory: shared.directory.clone(),
            logs,
            others,
            epochs: unsynced.epochs.then(|| self.epochs.entries().to_vec()),
            metadata: self.topic_id.filter(|_| unsynced.metadata),
            sync_directory: unsynced.directory,
            sync_parent: unsynced.parent,
            done: FlushDone { end_offset: self.log_end_offset(), generation: self.flush_generation },
        })
    }

    /// Takes note of a sync that ended; returns the new recovery point. After a failure the log is offline, except when
    /// a full volume had no room for a small file; then all is to be synced again.
    pub fn finish_flush(&mut self, outcome: Result<FlushDone, StorageError>) -> Result<Offset, LogError> {
        let tried = self.flush_in_flight.take().unwrap_or_default();
        self.take_note(outcome, &tried)
    }

    fn take_note(&mut self, outcome: Result<FlushDone, StorageError>, tried: &Unsynced) -> Result<Offset, LogError> {
        match outcome {
            Err(error) if error.is_full() && error.operation == WRITE => {
                self.unsynced.merge(tried);
                Err(LogError::Storage(error))
            }
            Ok(done) => {
                if done.generation == self.flush_generation && done.end_offset > self.recovery_point() {
                    self.shared.set_recovery_point(done.end_offset);
                }
                Ok(self.recovery_point())
            }
            Err(error) => {
                self.failed = true;
                Err(LogError::SyncFailed(error))
            }
        }
    }

    /// Syncs all that is written and returns the new recovery point. Waits for the device, and for a sync that runs
    /// elsewhere; one that was begun and does not run yet is covered.
    pub fn flush(&mut self) -> Result<Offset, LogError> {
        self.ensure_online()?;
        let mut unsynced = std::mem::take(&mut self.unsynced);
        if let Some(in_flight) = &self.flush_in_flight {
            unsynced.merge(in_flight);
        }
        if unsynced.is_nothing() && self.log_end_offset() <= self.recovery_point() {
            return Ok(self.recovery_point());
        }
        let prepared = self.prepare_flush(unsynced.clone());
        let job = self.fail(prepared)?;
        self.take_note(job.run(), &unsynced)
    }
}
