//! OffsetFetch. Each partition asked for gets an entry, also for a group that never committed.

use std::sync::Arc;

use base::TopicId;

use crate::group::GroupError;
use crate::group::command::{FetchOffsets, FetchedOffset, FetchedTopic, TopicPartitions};
use crate::group::machine::GroupMachine;
use crate::record::CommittedOffset;

impl GroupMachine {
    pub(in crate::group) fn fetch_offsets(&self, fetch: &FetchOffsets) -> Vec<FetchedTopic> {
        match &fetch.topics {
            Some(topics) => topics.iter().map(|asked| self.fetch_topic(fetch, asked)).collect(),
            None => self.fetch_all(fetch),
        }
    }

    fn fetch_topic(&self, fetch: &FetchOffsets, asked: &TopicPartitions) -> FetchedTopic {
        let partition = |partition: &i32| {
            let committed = self.offsets().get(&fetch.group_id, &asked.topic, *partition);
            // An offset of a deleted topic does not hold for the topic that has its name now.
            let committed = committed.filter(|committed| !is_other_topic(committed.topic_id, asked.topic_id));
            self.fetched(fetch, &asked.topic, *partition, committed)
        };
        FetchedTopic {
            topic: asked.topic.clone(),
            topic_id: asked.topic_id,
            partitions: asked.partitions.iter().map(partition).collect(),
        }
    }

    fn fetch_all(&self, fetch: &FetchOffsets) -> Vec<FetchedTopic> {
        let topics = self.offsets().of_group(&fetch.group_id).map(|(topic, partitions)| FetchedTopic {
            topic: topic.clone(),
            topic_id: TopicId::ZERO,
            partitions: partitions
                .map(|(partition, committed)| self.fetched(fetch, topic, partition, Some(committed)))
                .collect(),
        });
        topics.collect()
    }

    fn fetched(
        &self,
        fetch: &FetchOffsets,
        topic: &Arc<str>,
        partition: i32,
        committed: Option<&CommittedOffset>,
    ) -> FetchedOffset {
        let nothing = |error| FetchedOffset { partition, offset: -1, leader_epoch: -1, metadata: "".into(), error };
        if fetch.require_stable && self.offsets().has_pending(&fetch.group_id, topic, partition) {
            return nothing(Some(GroupError::UnstableOffset));
        }
        match committed {
            None => nothing(None),
            Some(committed) => FetchedOffset {
                partition,
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                metadata: committed.metadata.clone(),
                error: None,
            },
        }
    }
}

fn is_other_topic(committed: TopicId, asked: TopicId) -> bool {
    !committed.is_zero() && !asked.is_zero() && committed != asked
}
