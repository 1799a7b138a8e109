//! Retention of offsets (`offsets.retention.minutes`). It runs from the moment a group became empty, from each commit
//! for groups that only store offsets, and from each commit for topics that the members of a consumer group no longer
//! subscribe. A group goes with its last offset.

use crate::group::GroupId;
use crate::group::classic::{ClassicGroup, State};
use crate::group::machine::{GroupMachine, Soft};
use crate::machine::{Decision, Event, Now};
use crate::record::{CommittedOffset, Record};

use super::delete::offset_tombstone;

/// From when on the retention of a group's offsets counts.
enum RetentionFrom {
    /// One moment for all.
    Moment(i64),
    /// Each offset's own commit.
    Commit,
}

impl GroupMachine {
    /// Removes what has expired, and sets the time of the next sweep.
    pub(in crate::group) fn sweep(&self, now: Now, decision: &mut Decision<Self>) {
        for group in self.classic_groups() {
            let nothing_left = self.sweep_offsets(group, now, decision);
            if nothing_left && group.state == State::Empty && group.pending_joins.is_empty() {
                decision.events.push(Event::Record(Record::Group { group_id: group.id.clone(), value: None }));
            }
        }
        let interval_ms = self.config().offsets_retention_check_interval_ms.max(1);
        let next_ms = now.monotonic_ms.saturating_add(interval_ms);
        decision.events.push(Event::Soft(Soft::next_sweep(next_ms)));
    }

    /// True when no offset of the group is left.
    fn sweep_offsets(&self, group: &ClassicGroup, now: Now, decision: &mut Decision<Self>) -> bool {
        let group_id: &GroupId = &group.id;
        let from = retention_from(group);
        let mut nothing_left = !self.offsets().has_open_transaction(group_id);
        for (topic, partitions) in self.offsets().of_group(group_id) {
            let in_use = group.is_subscribed_to(topic);
            for (partition, offset) in partitions {
                let expired = from.as_ref().is_some_and(|from| self.is_expired(from, offset, now));
                if expired && !in_use && !self.offsets().has_pending(group_id, topic, partition) {
                    decision.events.push(Event::Record(offset_tombstone(group_id, topic, partition)));
                } else {
                    nothing_left = false;
                }
            }
        }
        nothing_left
    }

    fn is_expired(&self, from: &RetentionFrom, offset: &CommittedOffset, now: Now) -> bool {
        // A retention that the client asked for counts from its commit, whatever the group does.
        if let Some(expire_ms) = offset.expire_timestamp_ms {
            return now.wall_ms >= expire_ms;
        }
        let from_ms = match from {
            RetentionFrom::Moment(ms) => *ms,
            RetentionFrom::Commit => offset.commit_timestamp_ms,
        };
        now.wall_ms.saturating_sub(from_ms) >= self.config().offsets_retention_ms
    }
}

/// `None` while nothing of the group may expire.
fn retention_from(group: &ClassicGroup) -> Option<RetentionFrom> {
    match (&group.protocol_type, group.state) {
        (None, _) => Some(RetentionFrom::Commit),
        (Some(_), State::Empty) => Some(group.state_timestamp_ms.map_or(RetentionFrom::Commit, RetentionFrom::Moment)),
        (Some(_), State::Stable) if group.subscribed_topics.is_some() => Some(RetentionFrom::Commit),
        (Some(_), State::Stable | State::PreparingRebalance | State::CompletingRebalance) => None,
    }
}
