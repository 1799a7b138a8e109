//! The state machine: committed entries become the next image, which is published; the image becomes a snapshot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Clock, NodeId, Offset, TimestampMs};
use bytes::Bytes;
use cluster::MetadataImage;
use cluster::image::{Loader, MetadataDelta, ReplayError};
use openraft::storage::RaftStateMachine;
use openraft::{
    LogId, Membership, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta, StorageError, StorageIOError,
    StoredMembership,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::log_store::LogView;
use super::types::{Content, Entry, Member, Types, epoch_of, membership_of, voters_record};
use crate::runtime::controller::consensus::QuorumCounters;
use crate::runtime::controller::store::{SnapshotContent, SnapshotId, StoreHandle, snapshot};

type Stored = StoredMembership<NodeId, Member>;

/// What was applied.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// The last entry.
    pub log_id: Option<LogId<NodeId>>,
    /// The quorum.
    pub membership: StoredMembership<NodeId, Member>,
    /// Time of the last batch.
    pub timestamp_ms: TimestampMs,
}

/// See the head of this file.
pub struct StateMachine {
    loader: Loader,
    applied: Applied,
    published: watch::Sender<Arc<MetadataImage>>,
    shared: Shared,
}

/// What the builder of snapshots and the machine both use.
#[derive(Clone)]
struct Shared {
    clock: Arc<dyn Clock>,
    store: StoreHandle,
    log: LogView,
    current: Arc<Mutex<Option<Snapshot<Types>>>>,
    counters: Arc<QuorumCounters>,
}

impl StateMachine {
    /// Goes on from an image that a snapshot held, or from an empty one.
    pub fn new(
        image: MetadataImage,
        applied: Applied,
        published: watch::Sender<Arc<MetadataImage>>,
        clock: Arc<dyn Clock>,
        store: StoreHandle,
        log: LogView,
        counters: Arc<QuorumCounters>,
    ) -> StateMachine {
        let shared = Shared { clock, store, log, current: Arc::default(), counters };
        StateMachine { loader: Loader::new(image), applied, published, shared }
    }

    fn apply_one(&mut self, entry: &Entry) -> Result<Offset, ReplayError> {
        let epoch = epoch_of(entry.log_id.leader_id.term);
        let offset = entry.stored.as_ref().map_or(self.loader.latest().offset, |batch| batch.last_offset);
        match &entry.content {
            Content::Records(records) => self.loader.replay(records, offset, epoch)?,
            Content::Blank => self.loader.replay(&[], offset, epoch)?,
            Content::Membership(membership) => {
                self.applied.membership = Stored::new(Some(entry.log_id), membership.clone());
                self.loader.replay(&[], offset, epoch)?;
            }
        }
        self.applied.log_id = Some(entry.log_id);
        if let Some(batch) = &entry.stored {
            self.applied.timestamp_ms = batch.timestamp_ms;
            self.shared.counters.bytes_since_snapshot.fetch_add(batch.bytes.len() as u64, Ordering::Relaxed);
        }
        Ok(offset)
    }

    fn publish(&mut self) {
        if let Some((image, _)) = self.loader.publish() {
            self.published.send_replace(Arc::new(image));
        }
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId<NodeId>>, Stored), StorageError<NodeId>> {
        Ok((self.applied.log_id, self.applied.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Offset>, StorageError<NodeId>>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut offsets = Vec::new();
        for entry in entries {
            let offset = self.apply_one(&entry).map_err(|error| StorageIOError::apply(entry.log_id, &error))?;
            offsets.push(offset);
        }
        // Whoever is told that its records are applied finds them in the published image.
        self.publish();
        Ok(offsets)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        self.shared.counters.bytes_since_snapshot.store(0, Ordering::Relaxed);
        SnapshotBuilder {
            image: self.loader.latest().clone(),
            applied: self.applied.clone(),
            shared: self.shared.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Bytes>, StorageError<NodeId>> {
        Ok(Box::new(Bytes::new()))
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<NodeId, Member>,
        bytes: Box<Bytes>,
    ) -> Result<(), StorageError<NodeId>> {
        let refused = |error: &dyn std::error::Error| {
            StorageIOError::write_snapshot(Some(meta.signature()), openraft::AnyError::error(error.to_string()))
        };
        let content = snapshot::decode(&bytes).map_err(|error| refused(&error))?;
        let id = SnapshotId::from_file_name(&format!("{}.checkpoint", meta.snapshot_id));
        let id = id.ok_or_else(|| refused(&std::io::Error::other("a snapshot without its end in its id")))?;
        let image = image_of(&content, id).map_err(|error| refused(&error))?;
        self.shared.store.write_snapshot(id, (*bytes).clone()).await.map_err(|error| refused(&error))?;
        if let Some(last) = meta.last_log_id {
            self.shared.log.restart(last, id.end_offset).await.map_err(|error| refused(&error))?;
        }
        self.applied = Applied {
            log_id: meta.last_log_id,
            membership: meta.last_membership.clone(),
            timestamp_ms: content.last_timestamp_ms,
        };
        self.loader.reset(image);
        self.shared.counters.bytes_since_snapshot.store(0, Ordering::Relaxed);
        self.publish();
        *self.shared.current.lock() = Some(Snapshot { meta: meta.clone(), snapshot: bytes });
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError<NodeId>> {
        Ok(self.shared.current.lock().clone())
    }
}

/// Writes the image as it was when the builder was made.
pub struct SnapshotBuilder {
    image: MetadataImage,
    applied: Applied,
    shared: Shared,
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError<NodeId>> {
        let id = SnapshotId { end_offset: self.image.offset + 1, epoch: self.image.epoch };
        let content = SnapshotContent {
            last_timestamp_ms: self.applied.timestamp_ms,
            raft_index: self.applied.log_id.map(|log_id| log_id.index),
            voters: Some(voters_record(self.applied.membership.membership())),
            records: self.image.records().collect(),
        };
        let written = snapshot::encode(id, &content, self.shared.clock.wall_ms());
        let bytes: Bytes = written.map_err(|error| StorageIOError::write_snapshot(None, &error))?.into();
        let outcome = self.shared.store.write_snapshot(id, bytes.clone()).await;
        outcome.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        let meta = SnapshotMeta {
            last_log_id: self.applied.log_id,
            last_membership: self.applied.membership.clone(),
            snapshot_id: id.to_string(),
        };
        let snapshot = Snapshot { meta, snapshot: Box::new(bytes) };
        *self.shared.current.lock() = Some(snapshot.clone());
        Ok(snapshot)
    }
}

/// The image that a snapshot's records make.
pub fn image_of(content: &SnapshotContent, id: SnapshotId) -> Result<MetadataImage, ReplayError> {
    let mut image = MetadataImage::empty();
    let mut delta = MetadataDelta::default();
    content.records.iter().try_for_each(|record| image.replay(record, &mut delta))?;
    (image.offset, image.epoch) = (id.end_offset - 1, id.epoch);
    Ok(image)
}

/// What a snapshot says was applied.
pub fn applied_of(content: &SnapshotContent, last: LogId<NodeId>) -> Applied {
    let membership: Membership<NodeId, Member> = content.voters.as_ref().map(membership_of).unwrap_or_default();
    Applied {
        log_id: Some(last),
        membership: Stored::new(Some(last), membership),
        timestamp_ms: content.last_timestamp_ms,
    }
}
