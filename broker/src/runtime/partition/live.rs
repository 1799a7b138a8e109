//! A topic and a partition as requests see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use base::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use bytes::BytesMut;
use cluster::configs::TopicConfig;
use partition_log::{AppendError, AppendOrigin, Appended, LogError, LogReader, ProducerEntry};

use super::log_thread::LogThread;
use super::waiters::{Subscription, Waiter, Waiters};
use crate::observe::TopicMetrics;

/// What the partitions of a topic have in common.
pub struct Topic {
    /// Name.
    pub name: Arc<str>,
    /// Id.
    pub id: TopicId,
    /// Effective settings; replaced when the topic's or the broker's change.
    pub config: ArcSwap<TopicConfig>,
    /// Counters.
    pub metrics: Arc<TopicMetrics>,
}

/// A partition that this node holds.
pub struct Partition {
    topic: Arc<Topic>,
    index: PartitionIndex,
    leader_epoch: AtomicI32,
    log_dir: usize,
    reader: LogReader,
    thread: LogThread,
    waiters: Waiters,
    producer_count: AtomicUsize,
}

/// Records were not appended, or it is not known whether they were.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendFailure {
    /// The log refused them.
    #[error(transparent)]
    Refused(#[from] AppendError),
    /// The partition was deleted or the node stops.
    #[error("the partition is closed")]
    Closed,
}

impl Partition {
    pub(super) fn new(
        topic: Arc<Topic>,
        index: PartitionIndex,
        leader_epoch: LeaderEpoch,
        log_dir: usize,
        reader: LogReader,
        thread: LogThread,
    ) -> Self {
        let leader_epoch = AtomicI32::new(leader_epoch);
        Partition {
            topic,
            index,
            leader_epoch,
            log_dir,
            reader,
            thread,
            waiters: Waiters::default(),
            producer_count: AtomicUsize::new(0),
        }
    }

    /// The topic.
    pub fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    /// Index in the topic.
    pub fn index(&self) -> PartitionIndex {
        self.index
    }

    /// Key under which the owner knows the partition.
    pub(super) fn key(&self) -> PartitionKey {
        (self.topic.id, self.index)
    }

    /// Epoch of the present leadership.
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch.load(Ordering::Acquire)
    }

    pub(super) fn set_leader_epoch(&self, epoch: LeaderEpoch) {
        self.leader_epoch.store(epoch, Ordering::Release);
    }

    /// The thread that owns the log.
    pub(super) fn thread(&self) -> &LogThread {
        &self.thread
    }

    /// Number of producers whose state the log keeps.
    pub fn producer_count(&self) -> usize {
        self.producer_count.load(Ordering::Relaxed)
    }

    pub(super) fn set_producer_count(&self, count: usize) {
        self.producer_count.store(count, Ordering::Relaxed);
    }

    /// Index of the log directory in the order of `log.dirs`.
    pub fn log_dir(&self) -> usize {
        self.log_dir
    }

    /// The log as readers see it.
    pub fn reader(&self) -> &LogReader {
        &self.reader
    }

    /// Wakes `waiter` when the partition changes.
    pub fn add_waiter(&self, waiter: &Waiter) {
        self.waiters.add(waiter);
    }

    /// Marks `subscription` whenever the partition changes.
    pub fn subscribe(&self, subscription: &Arc<Subscription>) {
        self.waiters.subscribe(subscription);
    }

    /// Wakes everybody who waits on the partition.
    pub(super) fn wake_waiters(&self) {
        self.waiters.wake();
    }

    /// Appends validated batches as leader. The batches stand in the queue of the log's owner, in the order of calls,
    /// from the first poll on.
    ///
    /// # Errors
    /// Nothing was appended, except that after `Closed` it may have been.
    pub async fn append(&self, records: BytesMut, origin: AppendOrigin) -> Result<Appended, AppendFailure> {
        self.thread.append(self.key(), records, origin).await
    }

    /// Raises the log start offset, as DeleteRecords does; returns what it is then.
    ///
    /// # Errors
    /// The offset is above the high watermark, or the disk failed, or the partition is closed (`None`).
    pub async fn delete_records(&self, before: Offset) -> Result<Offset, Option<LogError>> {
        self.thread.delete_records(self.key(), before).await
    }

    /// State of the producers that are known here; empty when the partition is closed.
    pub async fn producers(&self) -> Vec<ProducerEntry> {
        self.thread.producers(self.key()).await
    }

    /// Syncs the log; used where an acknowledgement must outlive a power cut.
    ///
    /// # Errors
    /// The disk failed, or the partition is closed (`None`).
    pub async fn flush(&self) -> Result<Offset, Option<LogError>> {
        self.thread.flush(self.key()).await
    }
}

/// How the owner of a log names it.
pub(super) type PartitionKey = (TopicId, PartitionIndex);
