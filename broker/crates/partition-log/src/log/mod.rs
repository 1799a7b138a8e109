//! One partition's log. It has one owner, who appends, truncates, rolls and deletes through `&mut Log`; any number of
//! readers see what it publishes through `LogReader`.

mod append;
mod clean;
mod cleanable;
mod close;
mod damage;
mod flush;
mod open;
mod producer_state;
mod recover;
mod reindex;
mod retention;
mod roll;
mod tidy;
mod truncate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs, TopicId, TopicPartition};

use crate::active::Active;
use crate::config::LogConfig;
use crate::disk::Disk;
use crate::epochs::Epochs;
use crate::errors::{LogError, StorageError};
use crate::file_cache::FileCache;
use crate::formats::epoch_checkpoint::EpochEntry;
use crate::producers::{ProducerEntry, Producers};
use crate::reader::LogReader;
use crate::segment::Segment;
use crate::shared::{SegmentList, Shared};

pub use append::{AppendItem, AppendScratch, Appended};
pub use clean::CleaningProgress;
pub use cleanable::{Cleanable, HeldBack};
pub use close::{ClosedLog, DeletedLog};
pub use flush::{FlushDone, FlushJob};
pub use open::{LogOptions, Opened, RecoveryReport};
pub use retention::RetentionReport;

/// What is not durable yet and what a sync of the log therefore has to do.
#[derive(Debug, Clone, Default)]
struct Unsynced {
    /// Closed segments, oldest first.
    segments: Vec<Arc<Segment>>,
    /// Producer snapshots and transaction indexes.
    files: Vec<PathBuf>,
    /// Names in the log's directory changed.
    directory: bool,
    /// The directory itself is new.
    parent: bool,
    /// The epochs differ from their checkpoint.
    epochs: bool,
    /// `partition.metadata` was written.
    metadata: bool,
}

impl Unsynced {
    fn is_nothing(&self) -> bool {
        let names = self.directory || self.parent || self.epochs || self.metadata;
        self.segments.is_empty() && self.files.is_empty() && !names
    }

    /// Adds what a sync that has not ended yet has to do too.
    fn merge(&mut self, other: &Unsynced) {
        for segment in &other.segments {
            if !self.segments.iter().any(|known| Arc::ptr_eq(known, segment)) {
                self.segments.push(segment.clone());
            }
        }
        self.files.extend(other.files.iter().cloned());
        self.directory |= other.directory;
        self.parent |= other.parent;
        self.epochs |= other.epochs;
        self.metadata |= other.metadata;
    }
}

/// Files that left the log and wait to be removed (Kafka: `file.delete.delay.ms`, so that a reader that is about to
/// open one still can).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredFile {
    /// The file, `.deleted` at the end of its name.
    pub path: PathBuf,
    /// When it may go.
    pub due_ms: TimestampMs,
}

/// A partition's log.
#[derive(Debug)]
pub struct Log {
    partition: TopicPartition,
    topic_id: Option<TopicId>,
    config: Arc<LogConfig>,
    shared: Arc<Shared>,
    active: Active,
    epochs: Epochs,
    producers: Producers,
    /// Offsets of the producer snapshots on disk, rising.
    snapshots: Vec<Offset>,
    unsynced: Unsynced,
    /// Rises with every truncation, so that a sync that began before it does not claim what is gone.
    flush_generation: u64,
    /// What a sync that was begun and has not ended has to do.
    flush_in_flight: Option<Unsynced>,
    flush_order: flush::FlushOrder,
    /// A cleaning that was begun and has not ended.
    cleaning: Option<clean::Cleaning>,
    expired_files: Vec<ExpiredFile>,
    failed: bool,
}

impl Log {
    /// Which partition this is.
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Id of the topic, when it is known.
    pub fn topic_id(&self) -> Option<TopicId> {
        self.topic_id
    }

    /// The log's directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// The settings in force.
    pub fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// Puts other settings in force, from the next append on.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.config = config;
    }

    /// A view for readers.
    pub fn reader(&self) -> LogReader {
        LogReader::new(self.shared.clone())
    }

    /// First readable offset.
    pub fn log_start_offset(&self) -> Offset {
        self.shared.log_start_offset()
    }

    /// Offset that the next record gets.
    pub fn log_end_offset(&self) -> Offset {
        self.shared.log_end_offset()
    }

    /// Offset below which every in-sync replica has everything.
    pub fn high_watermark(&self) -> Offset {
        self.shared.high_watermark()
    }

    /// First offset that readers of committed records do not see.
    pub fn last_stable_offset(&self) -> Offset {
        self.shared.last_stable_offset()
    }

    /// Everything below was synced.
    pub fn recovery_point(&self) -> Offset {
        self.shared.recovery_point()
    }

    /// Bytes of all segments.
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.load().size_bytes()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.shared.segments.load().0.len()
    }

    /// The latest leader epoch known.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    /// State of all producers, for DescribeProducers and metrics.
    pub fn producers(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.producers.iter()
    }

    /// Number of producers known.
    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }

    /// Whether a producer has an open transaction here: batches of it need no confirmation by the coordinator.
    pub fn has_open_transaction(&self, producer_id: base::ProducerId) -> bool {
        self.producers.get(producer_id).is_some_and(|entry| entry.current_txn_first_offset.is_some())
    }

    /// First offset and producer of the oldest open transaction.
    pub fn oldest_transaction(&self) -> Option<(Offset, &ProducerEntry)> {
        self.producers.oldest_transaction()
    }

    /// Forgets producers that were idle for `producer.id.expiration.ms`.
    pub fn remove_expired_producers(&mut self, now_ms: TimestampMs) {
        self.producers.remove_expired(now_ms, self.config.producer_id_expiration_ms);
    }

    /// Raises or lowers the high watermark, within the log; returns what it is now.
    pub fn set_high_watermark(&mut self, offset: Offset) -> Offset {
        let bounded = offset.clamp(self.log_start_offset(), self.log_end_offset().max(self.log_start_offset()));
        self.shared.set_high_watermark(bounded);
        self.producers.complete_below(bounded);
        self.publish_first_unstable();
        bounded
    }

    /// Notes that a leader epoch begins at the log's end (Kafka: UnifiedLog.assignEpochStartOffset, when a replica
    /// becomes leader).
    pub fn begin_epoch(&mut self, epoch: LeaderEpoch) {
        self.assign_epoch(epoch, self.log_end_offset());
    }

    fn assign_epoch(&mut self, epoch: LeaderEpoch, start_offset: Offset) {
        if self.epochs.assign(EpochEntry { epoch, start_offset }) {
            self.publish_epochs();
        }
    }

    /// The checkpoint follows with the next sync: until then recovery finds the epochs in the batches themselves.
    fn publish_epochs(&mut self) {
        self.unsynced.epochs = true;
        self.shared.epochs.store(Arc::new(self.epochs.clone()));
    }

    fn publish_first_unstable(&self) {
        let first = self.producers.first_unstable_offset();
        self.shared.set_first_unstable_offset(first.map(|offset| offset.max(self.log_start_offset())));
    }

    fn publish_segments(&self, segments: Vec<Arc<Segment>>) {
        self.shared.segments.store(Arc::new(SegmentList(segments)));
    }

    fn files(&self) -> &Arc<FileCache> {
        &self.shared.files
    }

    fn disk(&self) -> &dyn Disk {
        self.shared.files.disk().as_ref()
    }

    fn ensure_online(&self) -> Result<(), LogError> {
        if self.failed { Err(LogError::Offline) } else { Ok(()) }
    }

    /// Remembers that files and memory may differ from now on.
    fn fail<T>(&mut self, outcome: Result<T, StorageError>) -> Result<T, LogError> {
        if outcome.is_err() {
            self.failed = true;
        }
        outcome.map_err(LogError::Storage)
    }

    /// Frees what an idle log does not need. A later append or read brings it back.
    pub fn release_idle(&mut self) -> Result<(), LogError> {
        self.ensure_online()?;
        let shared = self.shared.clone();
        let outcome = self.active.release(shared.files.disk().as_ref(), &shared.directory, &shared.files);
        self.fail(outcome)
    }
}
