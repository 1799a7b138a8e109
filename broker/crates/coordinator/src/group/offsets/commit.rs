//! OffsetCommit. A member commits in its generation; outside group management (negative generation) anybody commits
//! to a group without members, which comes into being by that.

use base::TopicId;

use crate::group::classic::{ClassicGroup, State};
use crate::group::command::{Answer, CommitOffsets, OffsetToCommit, expire_timestamp_ms};
use crate::group::machine::{GroupMachine, Soft};
use crate::group::{GroupConfig, GroupError};
use crate::machine::{Decision, Event, Now, Ticket};
use crate::record::{CommittedOffset, Record};

impl GroupMachine {
    pub(in crate::group) fn commit_offsets(&self, ticket: Ticket, commit: CommitOffsets, now: Now) -> Decision<Self> {
        let group = self.classic(&commit.group_id);
        if let Err(error) = self.check_commit(group, &commit) {
            return Decision::answer(ticket, Answer::Commit(Err(error)));
        }
        let mut decision = Decision::default();
        // A commit keeps the member's session alive, as a heartbeat would.
        if let Some(group) = group
            && matches!(group.state, State::Stable | State::PreparingRebalance)
            && let Some(member) = group.members.get(&commit.member_id)
        {
            decision.events.push(Event::Soft(Soft::session(group, member, now)));
        }
        let expire_ms = expire_timestamp_ms(now.wall_ms, commit.retention_ms);
        let mut answers = Vec::with_capacity(commit.offsets.len());
        for offset in commit.offsets {
            let error = too_large(&offset, self.config());
            if error.is_none() {
                decision.events.push(Event::Record(Record::Offset {
                    group_id: commit.group_id.clone(),
                    topic: offset.topic,
                    partition: offset.partition,
                    value: Some(CommittedOffset {
                        offset: offset.offset,
                        leader_epoch: offset.leader_epoch,
                        metadata: offset.metadata,
                        commit_timestamp_ms: now.wall_ms,
                        expire_timestamp_ms: expire_ms,
                        topic_id: TopicId::ZERO,
                    }),
                }));
            }
            answers.push(error);
        }
        decision.answers.push((ticket, Answer::Commit(Ok(answers))));
        decision
    }

    fn check_commit(&self, group: Option<&ClassicGroup>, commit: &CommitOffsets) -> Result<(), GroupError> {
        let group_id = commit.group_id.clone();
        if self.foreign(&group_id).is_some() {
            // Members of such a group commit with epochs of a protocol that is not served here.
            return Err(GroupError::NotClassic { group_id });
        }
        match group {
            Some(group) => check_commit_in(group, commit),
            None if commit.generation < 0 => Ok(()),
            None if commit.knows_group_not_found => Err(GroupError::GroupNotFound { group_id }),
            None => Err(GroupError::IllegalGeneration { asked: commit.generation, current: -1 }),
        }
    }
}

fn check_commit_in(group: &ClassicGroup, commit: &CommitOffsets) -> Result<(), GroupError> {
    if commit.generation < 0 && group.state == State::Empty {
        return Ok(());
    }
    if commit.generation >= 0 || !commit.member_id.is_empty() || commit.instance_id.is_some() {
        group.check_member(&commit.member_id, commit.instance_id.as_ref())?;
        group.check_generation(commit.generation)?;
    } else {
        // Without member and generation, commits are taken only while nobody is in the group.
        let group_id = group.id.clone();
        return Err(GroupError::UnknownMember { group_id, member_id: commit.member_id.clone() });
    }
    match group.state {
        // The member has joined the new generation but has not got its assignment, so it can own nothing yet.
        State::CompletingRebalance => Err(GroupError::RebalanceInProgress { group_id: group.id.clone() }),
        State::Empty | State::PreparingRebalance | State::Stable => Ok(()),
    }
}

fn too_large(offset: &OffsetToCommit, config: &GroupConfig) -> Option<GroupError> {
    // Kafka counts UTF-16 units, and takes the setting's bytes for them.
    let len = offset.metadata.encode_utf16().count();
    let max = config.offset_metadata_len_max;
    (len > max).then_some(GroupError::MetadataTooLarge { len, max })
}
