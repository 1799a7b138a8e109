//! A classic group: its members, its generation, and what can be asked of them. Every change of durable parts is
//! written as one GroupMetadata record; the rest (parked callers, deadlines, offered protocols) is soft.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::TimestampMs;
use bytes::Bytes;

use crate::group::command::{JoinedMember, Protocol};
use crate::group::consumer_protocol::{CONSUMER, subscribed_topics};
use crate::group::{GroupError, GroupId, InstanceId, MemberId};
use crate::machine::Ticket;
use crate::record::{GroupMetadata, StoredMember};

/// Where a group stands between two generations (Kafka: ClassicGroupState; a dead group is no group here).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No members.
    Empty,
    /// Members are joining the next generation.
    PreparingRebalance,
    /// All have joined; the leader's assignment is awaited.
    CompletingRebalance,
    /// Every member can have its assignment.
    Stable,
}

impl State {
    /// Kafka's name of the state.
    pub fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
        }
    }
}

/// What ends the joining phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::group) enum JoinTimer {
    /// The first round of an empty group: it ends when no member came during the last delay, or nothing remains.
    Initial { deadline_ms: i64, delay_ms: i64, remaining_ms: i64 },
    /// Any other round.
    Round { deadline_ms: i64 },
}

/// A member of a classic group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::group) struct Member {
    pub id: MemberId,
    pub instance_id: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub protocols: Vec<Protocol>,
    pub assignment: Bytes,
    /// Has not yet got the answer to its first join, so cannot send heartbeats.
    pub is_new: bool,
    pub awaiting_join: Option<Ticket>,
    pub awaiting_sync: Option<Ticket>,
    pub session_deadline_ms: Option<i64>,
}

impl Member {
    /// A member that waits for an answer is alive, unless the answer to its first join is overdue.
    pub fn is_satisfied(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    pub fn metadata(&self, protocol_name: &str) -> Option<&Bytes> {
        self.protocols.iter().find(|protocol| &*protocol.name == protocol_name).map(|protocol| &protocol.metadata)
    }

    fn supports(&self, protocol_name: &str) -> bool {
        self.metadata(protocol_name).is_some()
    }
}

/// A classic group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::group) struct ClassicGroup {
    pub id: GroupId,
    pub state: State,
    /// The running round began with an empty group.
    pub initial_round: bool,
    /// When the group came into its state; `None` where an old record does not tell.
    pub state_timestamp_ms: Option<TimestampMs>,
    pub protocol_type: Option<Arc<str>>,
    pub protocol_name: Option<Arc<str>>,
    pub generation: i32,
    pub leader: Option<MemberId>,
    pub members: BTreeMap<MemberId, Arc<Member>>,
    pub static_members: BTreeMap<InstanceId, MemberId>,
    /// Ids given out and not yet used, with the time until which they hold.
    pub pending_joins: BTreeMap<MemberId, i64>,
    /// Members of this generation whose SyncGroup has not come.
    pub pending_syncs: BTreeSet<MemberId>,
    pub sync_deadline_ms: Option<i64>,
    pub join_timer: Option<JoinTimer>,
    /// A member joined since the initial delay began.
    pub new_member_added: bool,
    /// Topics that the members of this generation subscribe; `None` when that is not known.
    pub subscribed_topics: Option<Arc<BTreeSet<Box<str>>>>,
    /// The deadline under which the machine's index holds this group.
    pub indexed_deadline_ms: Option<i64>,
}

impl ClassicGroup {
    /// A group without members.
    pub fn new(id: GroupId, now_ms: TimestampMs) -> Self {
        ClassicGroup {
            id,
            state: State::Empty,
            initial_round: false,
            state_timestamp_ms: Some(now_ms),
            protocol_type: None,
            protocol_name: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_joins: BTreeMap::new(),
            pending_syncs: BTreeSet::new(),
            sync_deadline_ms: None,
            join_timer: None,
            new_member_added: false,
            subscribed_topics: None,
            indexed_deadline_ms: None,
        }
    }

    /// The group that a record of the log describes.
    pub fn from_record(id: GroupId, record: &GroupMetadata) -> Self {
        let mut group = ClassicGroup::new(id, record.state_timestamp_ms);
        group.state = if record.members.is_empty() { State::Empty } else { State::Stable };
        group.state_timestamp_ms = (record.state_timestamp_ms != -1).then_some(record.state_timestamp_ms);
        group.protocol_type = (!record.protocol_type.is_empty()).then(|| record.protocol_type.clone());
        group.protocol_name = record.protocol_name.clone();
        group.generation = record.generation;
        group.leader = record.leader.clone();
        for stored in &record.members {
            let protocol_name = record.protocol_name.clone().unwrap_or_default();
            let protocol = Protocol { name: protocol_name, metadata: stored.subscription.clone() };
            group.insert(Member {
                id: stored.member_id.clone(),
                instance_id: stored.instance_id.clone(),
                client_id: stored.client_id.clone(),
                client_host: stored.client_host.clone(),
                rebalance_timeout_ms: match stored.rebalance_timeout_ms {
                    -1 => stored.session_timeout_ms,
                    timeout_ms => timeout_ms,
                },
                session_timeout_ms: stored.session_timeout_ms,
                protocols: vec![protocol],
                assignment: stored.assignment.clone(),
                is_new: false,
                awaiting_join: None,
                awaiting_sync: None,
                session_deadline_ms: None,
            });
        }
        group.subscribed_topics = group.compute_subscribed_topics();
        group
    }

    /// The record of this generation; `assignments` overrides what the members hold.
    pub fn to_record(&self, assignments: Option<&BTreeMap<MemberId, Bytes>>) -> GroupMetadata {
        let protocol_name = self.protocol_name.as_deref().unwrap_or_default();
        let stored = |member: &Arc<Member>| StoredMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            subscription: member.metadata(protocol_name).cloned().unwrap_or_default(),
            assignment: match assignments {
                Some(assignments) => assignments.get(&member.id).cloned().unwrap_or_default(),
                None => member.assignment.clone(),
            },
        };
        GroupMetadata {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol_name: self.protocol_name.clone(),
            leader: self.leader.clone(),
            state_timestamp_ms: self.state_timestamp_ms.unwrap_or(-1),
            members: self.members.values().map(stored).collect(),
        }
    }

    /// Takes a record of this very generation; false when the record speaks of another one.
    pub fn take_record(&mut self, record: &GroupMetadata) -> bool {
        let same_members = self.members.len() == record.members.len()
            && record.members.iter().all(|stored| self.members.contains_key(&stored.member_id));
        if self.generation != record.generation || !same_members {
            return false;
        }
        for stored in &record.members {
            if let Some(member) = self.members.get_mut(&stored.member_id)
                && member.assignment != stored.assignment
            {
                Arc::make_mut(member).assignment = stored.assignment.clone();
            }
        }
        if self.state == State::CompletingRebalance {
            self.state = State::Stable;
        }
        true
    }

    pub fn insert(&mut self, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), member.id.clone());
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.pending_joins.remove(&member.id);
        self.members.insert(member.id.clone(), Arc::new(member));
    }

    /// Takes a member or pending member out; another becomes leader when it was the leader.
    pub fn remove(&mut self, member_id: &str) {
        if let Some(member) = self.members.remove(member_id)
            && let Some(instance_id) = &member.instance_id
        {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        self.pending_joins.remove(member_id);
        self.pending_syncs.remove(member_id);
    }

    /// A member to change.
    pub fn member_mut(&mut self, member_id: &str) -> Option<&mut Member> {
        self.members.get_mut(member_id).map(Arc::make_mut)
    }

    pub fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Has no protocol type and no members: it exists because offsets were committed under its id.
    pub fn is_simple(&self) -> bool {
        self.protocol_type.is_none() && self.state == State::Empty && self.pending_joins.is_empty()
    }

    pub fn has_all_joined(&self) -> bool {
        self.pending_joins.is_empty() && self.members.values().all(|member| member.awaiting_join.is_some())
    }

    pub fn awaiting_join_count(&self) -> usize {
        self.members.values().filter(|member| member.awaiting_join.is_some()).count()
    }

    /// The longest rebalance timeout of the members; 0 when there are none, or all are negative.
    pub fn rebalance_timeout_ms(&self) -> i64 {
        self.members.values().map(|member| i64::from(member.rebalance_timeout_ms)).fold(0, i64::max)
    }

    /// True when a member with these protocols could be in the next generation.
    pub fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| self.members.values().all(|member| member.supports(&protocol.name)))
    }

    /// The protocol that most members prefer among those that all support; ties go to the first by name, so that the
    /// choice is the same on every node.
    pub fn select_protocol(&self) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.members.values() {
            let by_all = |protocol: &&Protocol| self.members.values().all(|other| other.supports(&protocol.name));
            if let Some(protocol) = member.protocols.iter().find(by_all) {
                *votes.entry(&protocol.name).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }

    pub fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// True when offsets of the topic are in use. A consumer group whose subscriptions cannot be read counts as
    /// subscribed to everything.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    pub fn compute_subscribed_topics(&self) -> Option<Arc<BTreeSet<Box<str>>>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(Arc::default());
        }
        let protocol_name = self.protocol_name.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.extend(subscribed_topics(member.metadata(protocol_name)?)?.into_iter().map(Box::from));
        }
        Some(Arc::new(topics))
    }

    /// Checks that the member is in the group and is not fenced by a newer owner of its instance id.
    pub fn check_member(&self, member_id: &MemberId, instance_id: Option<&InstanceId>) -> Result<(), GroupError> {
        let unknown = || GroupError::UnknownMember { group_id: self.id.clone(), member_id: member_id.clone() };
        if let Some(instance_id) = instance_id {
            let current = self.static_members.get(instance_id).ok_or_else(unknown)?;
            if current != member_id {
                return Err(GroupError::FencedInstance { instance_id: instance_id.clone(), current: current.clone() });
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(unknown()) }
    }

    pub fn check_generation(&self, asked: i32) -> Result<(), GroupError> {
        match asked == self.generation {
            true => Ok(()),
            false => Err(GroupError::IllegalGeneration { asked, current: self.generation }),
        }
    }

    /// The members with their metadata for the chosen protocol, for the leader.
    pub fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol_name = self.protocol_name.as_deref().unwrap_or_default();
        let joined = |member: &Arc<Member>| JoinedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol_name).cloned().unwrap_or_default(),
        };
        self.members.values().map(joined).collect()
    }

    /// The earliest time at which something of this group falls due.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        let join = self.join_timer.map(|timer| match timer {
            JoinTimer::Initial { deadline_ms, .. } | JoinTimer::Round { deadline_ms } => deadline_ms,
        });
        let sessions = self.members.values().filter_map(|member| member.session_deadline_ms);
        sessions.chain(self.pending_joins.values().copied()).chain(join).chain(self.sync_deadline_ms).min()
    }
}
