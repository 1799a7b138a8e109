//! Removal of offsets and groups on request: OffsetDelete, DeleteGroups, and the deletion of topics.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::TopicId;

use crate::group::classic::State;
use crate::group::command::{Answer, DeleteOffsets, DeletedOffsets};
use crate::group::machine::GroupMachine;
use crate::group::{GroupError, GroupId};
use crate::machine::{Decision, Event, Ticket};
use crate::record::Record;

/// The tombstone of an offset.
pub(super) fn offset_tombstone(group_id: &GroupId, topic: &Arc<str>, partition: i32) -> Record {
    Record::Offset { group_id: group_id.clone(), topic: topic.clone(), partition, value: None }
}

impl GroupMachine {
    pub(in crate::group) fn delete_offsets(&self, ticket: Ticket, delete: DeleteOffsets) -> Decision<Self> {
        let group_id = &delete.group_id;
        let group = match self.existing(group_id) {
            Ok(group) => group,
            Err(error) => return Decision::answer(ticket, Answer::DeleteOffsets(Err(error))),
        };
        if group.state != State::Empty && !group.uses_consumer_protocol() {
            // What members of another protocol type read cannot be told.
            let error = GroupError::NonEmptyGroup { group_id: group_id.clone() };
            return Decision::answer(ticket, Answer::DeleteOffsets(Err(error)));
        }
        let mut decision = Decision::default();
        let mut answers = Vec::with_capacity(delete.topics.len());
        for asked in delete.topics {
            let topic = asked.topic;
            let subscribed = group.is_subscribed_to(&topic);
            if !subscribed {
                let held = |partition: &&i32| {
                    self.offsets().get(group_id, &topic, **partition).is_some()
                        || self.offsets().has_pending(group_id, &topic, **partition)
                };
                let tombstones =
                    asked.partitions.iter().filter(held).map(|index| offset_tombstone(group_id, &topic, *index));
                decision.events.extend(tombstones.map(Event::Record));
            }
            let error =
                subscribed.then(|| GroupError::SubscribedToTopic { group_id: group_id.clone(), topic: topic.clone() });
            answers.push(DeletedOffsets { topic, partitions: asked.partitions, error });
        }
        decision.answers.push((ticket, Answer::DeleteOffsets(Ok(answers))));
        decision
    }

    pub(in crate::group) fn delete_groups(&self, ticket: Ticket, group_ids: Vec<GroupId>) -> Decision<Self> {
        let mut decision = Decision::default();
        let mut answers = Vec::with_capacity(group_ids.len());
        for group_id in group_ids {
            let deletable = self.existing(&group_id).and_then(|group| match group.state {
                State::Empty => Ok(()),
                State::PreparingRebalance | State::CompletingRebalance | State::Stable => {
                    Err(GroupError::NonEmptyGroup { group_id: group_id.clone() })
                }
            });
            if deletable.is_ok() {
                self.tombstones_of_group(&group_id, &mut decision);
            }
            answers.push((group_id, deletable.err()));
        }
        decision.answers.push((ticket, Answer::DeleteGroups(answers)));
        decision
    }

    fn tombstones_of_group(&self, group_id: &GroupId, decision: &mut Decision<Self>) {
        let mut held: BTreeSet<(&Arc<str>, i32)> = self.offsets().pending_of_group(group_id).collect();
        for (topic, partitions) in self.offsets().of_group(group_id) {
            held.extend(partitions.map(|(partition, _)| (topic, partition)));
        }
        let offsets = held.into_iter().map(|(topic, partition)| offset_tombstone(group_id, topic, partition));
        decision.events.extend(offsets.map(Event::Record));
        decision.events.push(Event::Record(Record::Group { group_id: group_id.clone(), value: None }));
    }

    pub(in crate::group) fn topics_deleted(&self, ticket: Ticket, topics: Vec<(Arc<str>, TopicId)>) -> Decision<Self> {
        let mut decision = Decision::answer(ticket, Answer::Done);
        for group_id in self.offsets().group_ids() {
            for (topic, topic_id) in &topics {
                let committed = self.offsets().of_topic(group_id, topic);
                // An offset known to belong to a newer topic of the same name stays.
                let gone = committed.filter(|(_, offset)| offset.topic_id.is_zero() || offset.topic_id == *topic_id);
                let tombstones = gone.map(|(partition, _)| offset_tombstone(group_id, topic, partition));
                decision.events.extend(tombstones.map(Event::Record));
            }
        }
        decision
    }
}
