//! What changed between two published images, for the owners of live state that follow the metadata: logs to make and
//! to delete, leaders that moved, settings to read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{NodeId, PartitionIndex, TopicId};

use super::{ConfigResource, MetadataImage, TopicImage};

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
        for (id, topic) in &old.topics {
            if !new.topics.contains_key(id) {
                delta.topics_deleted.insert(*id, Arc::clone(topic));
            }
        }
        for (id, topic) in &new.topics {
            let before = old.topics.get(id);
            if before.is_none() {
                delta.topics_created.insert(*id);
            }
            let known = before.map_or(&[][..], |topic| topic.partitions());
            let changed =
                topic.partitions().iter().enumerate().filter(|(i, partition)| known.get(*i) != Some(partition));
            delta.partitions_changed.extend(changed.map(|(i, _)| (*id, i as PartitionIndex)));
        }
        let resources = old.configs.keys().chain(new.configs.keys());
        let changed = resources.filter(|resource| old.configs.get(*resource) != new.configs.get(*resource));
        delta.configs_changed.extend(changed.cloned());
        let brokers = old.brokers.keys().chain(new.brokers.keys());
        delta.brokers_changed.extend(brokers.filter(|id| old.brokers.get(*id) != new.brokers.get(*id)));
        delta.features_changed = old.features != new.features;
        delta.security_changed = old.scram != new.scram
            || old.acls != new.acls
            || old.client_quotas != new.client_quotas
            || old.delegation_tokens != new.delegation_tokens;
        delta
    }
}
