//! What changed between two published images, for the owners of live state that follow the metadata: logs to make and
//! to delete, leaders that moved, settings to read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{NodeId, PartitionIndex, TopicId};
use imbl::ordmap::DiffItem;

use super::{ConfigResource, MetadataImage, PartitionImage, TopicImage};

/// The changes. Something that came and went in between is not mentioned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetadataDelta {
    /// Topics that came to be; all of their partitions are in `partitions_changed`.
    pub topics_created: BTreeSet<TopicId>,
    /// Topics that are gone, as they were last.
    pub topics_deleted: BTreeMap<TopicId, Arc<TopicImage>>,
    /// Partitions that came to be or changed.
    pub partitions_changed: BTreeSet<(TopicId, PartitionIndex)>,
    /// Resources whose dynamic settings changed.
    pub configs_changed: BTreeSet<ConfigResource>,
    /// Brokers that registered, changed or are gone.
    pub brokers_changed: BTreeSet<NodeId>,
    /// True when the level of a feature changed.
    pub features_changed: bool,
    /// True when users, permissions, quotas or tokens changed.
    pub security_changed: bool,
}

impl MetadataDelta {
    /// True when nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == MetadataDelta::default()
    }

    pub(super) fn topic_deleted(&mut self, topic: Arc<TopicImage>) {
        let id = topic.id;
        self.partitions_changed.retain(|(changed, _)| *changed != id);
        if !self.topics_created.remove(&id) {
            self.topics_deleted.insert(id, topic);
        }
    }

    /// What has to happen to get from one image to another whose history is not known: a snapshot took the place of the
    /// records in between.
    pub fn between(old: &MetadataImage, new: &MetadataImage) -> MetadataDelta {
        let mut delta = MetadataDelta::default();
        // The maps compare by shared structure, so that this costs as much as the change, not as the cluster.
        for item in old.topics.diff(&new.topics) {
            match item {
                DiffItem::Add(id, topic) => {
                    delta.topics_created.insert(*id);
                    delta.partitions_differ(&[], topic);
                }
                DiffItem::Update { old: (_, before), new: (_, topic) } => {
                    delta.partitions_differ(before.partitions(), topic);
                }
                DiffItem::Remove(id, topic) => {
                    delta.topics_deleted.insert(*id, Arc::clone(topic));
                }
            }
        }
        delta.configs_changed.extend(old.configs.diff(&new.configs).map(|item| changed_key(item).clone()));
        delta.brokers_changed.extend(old.brokers.diff(&new.brokers).map(|item| *changed_key(item)));
        delta.features_changed = old.features != new.features;
        delta.security_changed = old.scram != new.scram
            || old.acls != new.acls
            || old.client_quotas != new.client_quotas
            || old.delegation_tokens != new.delegation_tokens;
        delta
    }

    fn partitions_differ(&mut self, before: &[PartitionImage], topic: &TopicImage) {
        let numbered = topic.partitions().iter().enumerate();
        let changed = numbered.filter(|(i, partition)| before.get(*i) != Some(partition));
        self.partitions_changed.extend(changed.map(|(i, _)| (topic.id, i as PartitionIndex)));
    }
}

fn changed_key<'a, K, V>(item: DiffItem<'a, 'a, K, V>) -> &'a K {
    match item {
        DiffItem::Add(key, _) | DiffItem::Remove(key, _) | DiffItem::Update { new: (key, _), .. } => key,
    }
}
