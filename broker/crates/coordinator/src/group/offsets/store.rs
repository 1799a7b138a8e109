//! The offsets of all groups of one shard, with those that open transactions hold back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::ProducerId;

use crate::group::GroupId;
use crate::record::CommittedOffset;

/// An offset and its place in the order of commits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    offset: CommittedOffset,
    /// Counts applied records. When a transaction ends, what was committed later in the log wins, whether it was part
    /// of the transaction or not; so the outcome is the same live and after a load.
    order: u64,
}

type Topics = BTreeMap<Arc<str>, BTreeMap<i32, Entry>>;

/// Offsets by group, topic and partition.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::group) struct OffsetStore {
    groups: HashMap<GroupId, Topics>,
    pending: BTreeMap<ProducerId, HashMap<GroupId, Topics>>,
    applied: u64,
}

impl OffsetStore {
    pub fn get(&self, group_id: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        Some(&self.groups.get(group_id)?.get(topic)?.get(&partition)?.offset)
    }

    /// All offsets of a group, by topic and partition in order.
    pub fn of_group(
        &self,
        group_id: &str,
    ) -> impl Iterator<Item = (&Arc<str>, impl Iterator<Item = (i32, &CommittedOffset)>)> {
        let topics = self.groups.get(group_id).into_iter().flatten();
        topics.map(|(topic, partitions)| (topic, partitions.iter().map(|(index, entry)| (*index, &entry.offset))))
    }

    /// Offsets of one topic of a group.
    pub fn of_topic(&self, group_id: &str, topic: &str) -> impl Iterator<Item = (i32, &CommittedOffset)> {
        let partitions = self.groups.get(group_id).and_then(|topics| topics.get(topic)).into_iter().flatten();
        partitions.map(|(partition, entry)| (*partition, &entry.offset))
    }

    /// Groups that hold an offset.
    pub fn group_ids(&self) -> impl Iterator<Item = &GroupId> {
        self.groups.keys()
    }

    /// True when an open transaction is about to change the offset.
    pub fn has_pending(&self, group_id: &str, topic: &str, partition: i32) -> bool {
        self.pending.values().any(|groups| {
            groups.get(group_id).and_then(|topics| topics.get(topic)).is_some_and(|held| held.contains_key(&partition))
        })
    }

    /// True when an open transaction is about to change an offset of the group.
    pub fn has_open_transaction(&self, group_id: &str) -> bool {
        self.pending.values().any(|groups| groups.contains_key(group_id))
    }

    /// Partitions that only open transactions hold for the group.
    pub fn pending_of_group(&self, group_id: &str) -> impl Iterator<Item = (&Arc<str>, i32)> {
        let topics = self.pending.values().filter_map(move |groups| groups.get(group_id)).flatten();
        topics.flat_map(|(topic, partitions)| partitions.keys().map(move |partition| (topic, *partition)))
    }

    /// Takes a commit; `producer_id` is -1 outside transactions.
    pub fn put(
        &mut self,
        group_id: &GroupId,
        topic: &Arc<str>,
        partition: i32,
        offset: CommittedOffset,
        producer_id: ProducerId,
    ) {
        self.applied += 1;
        let entry = Entry { offset, order: self.applied };
        let groups = match producer_id {
            ..0 => &mut self.groups,
            producer_id => self.pending.entry(producer_id).or_default(),
        };
        insert(groups, group_id, topic, partition, entry);
    }

    /// Takes a tombstone. It also ends what transactions hold for the partition.
    pub fn remove(&mut self, group_id: &str, topic: &str, partition: i32) {
        self.applied += 1;
        take_out(&mut self.groups, group_id, topic, partition);
        for groups in self.pending.values_mut() {
            take_out(groups, group_id, topic, partition);
        }
        self.pending.retain(|_, groups| !groups.is_empty());
    }

    /// Takes the end of a transaction.
    pub fn end_transaction(&mut self, producer_id: ProducerId, committed: bool) {
        let Some(groups) = self.pending.remove(&producer_id) else { return };
        if !committed {
            return;
        }
        for (group_id, topics) in groups {
            for (topic, partitions) in topics {
                for (partition, entry) in partitions {
                    self.materialize(&group_id, &topic, partition, entry);
                }
            }
        }
    }

    fn materialize(&mut self, group_id: &GroupId, topic: &Arc<str>, partition: i32, entry: Entry) {
        let existing = self.groups.get(group_id).and_then(|topics| topics.get(topic)?.get(&partition));
        if existing.is_none_or(|existing| existing.order < entry.order) {
            insert(&mut self.groups, group_id, topic, partition, entry);
        }
    }
}

fn insert(groups: &mut HashMap<GroupId, Topics>, group_id: &GroupId, topic: &Arc<str>, partition: i32, entry: Entry) {
    // The names of the first commit are kept, so that later ones cost no allocation that stays.
    if let Some(partitions) = groups.get_mut(group_id).and_then(|topics| topics.get_mut(topic)) {
        partitions.insert(partition, entry);
    } else {
        let topics = groups.entry(group_id.clone()).or_default();
        topics.entry(topic.clone()).or_default().insert(partition, entry);
    }
}

fn take_out(groups: &mut HashMap<GroupId, Topics>, group_id: &str, topic: &str, partition: i32) {
    let Some(topics) = groups.get_mut(group_id) else { return };
    if let Some(partitions) = topics.get_mut(topic) {
        partitions.remove(&partition);
        if partitions.is_empty() {
            topics.remove(topic);
        }
    }
    if topics.is_empty() {
        groups.remove(group_id);
    }
}

#[cfg(test)]
mod tests {
    use base::TopicId;

    use super::*;

    fn offset(offset: i64) -> CommittedOffset {
        CommittedOffset {
            offset,
            leader_epoch: -1,
            metadata: "".into(),
            commit_timestamp_ms: 0,
            expire_timestamp_ms: None,
            topic_id: TopicId::ZERO,
        }
    }

    fn read(store: &OffsetStore) -> Option<i64> {
        store.get("g", "t", 0).map(|committed| committed.offset)
    }

    #[test]
    fn an_open_transaction_holds_its_offset_back_until_it_commits() {
        let (mut store, group, topic) = (OffsetStore::default(), "g".into(), "t".into());
        store.put(&group, &topic, 0, offset(5), 7);
        assert_eq!(read(&store), None);
        assert!(store.has_pending("g", "t", 0) && store.has_open_transaction("g"));
        store.end_transaction(7, true);
        assert_eq!(read(&store), Some(5));
        assert!(!store.has_pending("g", "t", 0) && !store.has_open_transaction("g"));
    }

    #[test]
    fn an_aborted_transaction_leaves_the_earlier_offset() {
        let (mut store, group, topic) = (OffsetStore::default(), "g".into(), "t".into());
        store.put(&group, &topic, 0, offset(3), -1);
        store.put(&group, &topic, 0, offset(5), 7);
        store.end_transaction(7, false);
        assert_eq!(read(&store), Some(3));
    }

    #[test]
    fn the_commit_that_stands_later_in_the_log_wins_over_the_end_of_a_transaction() {
        let (mut store, group, topic) = (OffsetStore::default(), "g".into(), "t".into());
        store.put(&group, &topic, 0, offset(5), 7);
        store.put(&group, &topic, 0, offset(9), -1);
        store.end_transaction(7, true);
        assert_eq!(read(&store), Some(9));
    }

    #[test]
    fn a_tombstone_also_removes_what_is_pending() {
        let (mut store, group, topic) = (OffsetStore::default(), "g".into(), "t".into());
        store.put(&group, &topic, 0, offset(5), 7);
        store.remove("g", "t", 0);
        store.end_transaction(7, true);
        assert_eq!(read(&store), None);
        assert_eq!(store.group_ids().count(), 0);
    }
}
