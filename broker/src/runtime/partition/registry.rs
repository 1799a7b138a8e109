//! Which partitions this node holds. The keeper publishes; anybody looks up, without a lock.

use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Offset, PartitionIndex, TopicId};
use cluster::MetadataImage;
use tokio::sync::watch;

use super::live::{Partition, Topic};
use crate::security::{Authorized, TopicName};

/// A topic of which this node holds partitions.
pub struct TopicEntry {
    /// The topic.
    pub topic: Arc<Topic>,
    /// Its partitions by index; `None` where this node holds none, or its log cannot be used.
    pub partitions: Vec<Option<Arc<Partition>>>,
}

/// Why a partition is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The cluster has no such topic, or the topic no such partition.
    #[error("this server does not host this topic-partition")]
    Unknown,
    /// The cluster has no topic of this id.
    #[error("this server does not host this topic ID")]
    UnknownId,
    /// The cluster has it, and this node does not lead it, or not yet.
    #[error("this node is not the leader of the partition")]
    NotLeader,
    /// This node holds it, and its log directory failed.
    #[error("the partition's log directory is offline")]
    Offline,
}

#[derive(Default, Clone)]
pub(super) struct Published {
    pub by_name: imbl::HashMap<Arc<str>, Arc<TopicEntry>>,
    pub by_id: imbl::HashMap<TopicId, Arc<TopicEntry>>,
    pub offline: imbl::HashSet<(TopicId, PartitionIndex)>,
}

/// The partitions of this node.
pub struct Partitions {
    published: ArcSwap<Published>,
    image: Arc<ArcSwap<MetadataImage>>,
    applied: watch::Sender<Offset>,
}

impl Partitions {
    /// No partition yet. `image` is what tells an unknown partition from one that is elsewhere.
    pub fn new(image: Arc<ArcSwap<MetadataImage>>) -> Self {
        Partitions { published: ArcSwap::default(), image, applied: watch::Sender::new(-1) }
    }

    /// The partition `index` of a topic that the session may use.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn get(&self, topic: &Authorized<TopicName>, index: PartitionIndex) -> Result<Arc<Partition>, LookupError> {
        let name = &topic.get().0;
        let published = self.published.load();
        let found = published.by_name.get(name).and_then(|entry| at(entry, index));
        found.ok_or_else(|| match self.image.load().topic(name) {
            Some(topic) if topic.partition(index).is_some() => self.absent(&published, topic.id, index),
            Some(_) | None => LookupError::Unknown,
        })
    }

    fn absent(&self, published: &Published, topic: TopicId, index: PartitionIndex) -> LookupError {
        if published.offline.contains(&(topic, index)) { LookupError::Offline } else { LookupError::NotLeader }
    }

    /// The name of the topic with this id, which permission is then asked for.
    pub fn name_of(&self, id: TopicId) -> Option<Arc<str>> {
        if let Some(entry) = self.published.load().by_id.get(&id) {
            return Some(entry.topic.name.clone());
        }
        self.image.load().topic_by_id(id).map(|topic| topic.name.clone())
    }

    /// The one copy of a topic's name that the node keeps, so that requests need none of their own.
    pub fn shared_name(&self, name: &str) -> Arc<str> {
        match self.published.load().by_name.get_key_value(name) {
            Some((shared, _)) => shared.clone(),
            None => name.into(),
        }
    }

    /// Every topic that this node holds partitions of, as of now.
    pub fn topics(&self) -> Vec<Arc<TopicEntry>> {
        self.published.load().by_id.values().cloned().collect()
    }

    /// Every partition that this node holds, as of now.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        let published = self.published.load();
        published.by_id.values().flat_map(|entry| entry.partitions.iter().flatten().cloned()).collect()
    }

    /// Number of partitions of this node whose log cannot be used.
    pub fn offline_count(&self) -> usize {
        self.published.load().offline.len()
    }

    /// Returns when everything up to this offset of the metadata log is in force here.
    pub async fn applied(&self, metadata_offset: Offset) {
        // The sender lives as long as this.
        let _ = self.applied.subscribe().wait_for(|applied| *applied >= metadata_offset).await;
    }

    pub(super) fn publish(&self, published: Published, metadata_offset: Offset) {
        self.published.store(Arc::new(published));
        self.applied.send_replace(metadata_offset);
    }

    pub(super) fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }
}

fn at(entry: &Arc<TopicEntry>, index: PartitionIndex) -> Option<Arc<Partition>> {
    entry.partitions.get(usize::try_from(index).ok()?)?.clone()
}
