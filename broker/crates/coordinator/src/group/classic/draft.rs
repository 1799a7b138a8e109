//! The steps that all operations on a classic group share: beginning a rebalance, completing the joining phase, the
//! next generation.

use std::sync::Arc;

use bytes::Bytes;

use super::state::{ClassicGroup, JoinTimer, Member, State};
use crate::group::command::{Answer, JoinRefused, Joined, Synced};
use crate::group::{GroupConfig, GroupError, MemberId};
use crate::machine::{Now, Ticket};
use crate::record::Record;

/// A group in the course of one operation.
pub(in crate::group) struct Draft<'a> {
    pub group: ClassicGroup,
    pub config: &'a GroupConfig,
    pub now: Now,
    pub answers: Vec<(Ticket, Answer)>,
    pub records: Vec<Record>,
}

impl<'a> Draft<'a> {
    pub fn new(group: ClassicGroup, config: &'a GroupConfig, now: Now) -> Self {
        Draft { group, config, now, answers: Vec::new(), records: Vec::new() }
    }

    pub fn after_ms(&self, delay_ms: i64) -> i64 {
        self.now.monotonic_ms.saturating_add(delay_ms)
    }

    pub fn transition(&mut self, state: State) {
        self.group.state = state;
        self.group.state_timestamp_ms = Some(self.now.wall_ms);
    }

    pub fn rebalancing(&self) -> GroupError {
        GroupError::RebalanceInProgress { group_id: self.group.id.clone() }
    }

    pub fn unknown(&self, member_id: &MemberId) -> GroupError {
        GroupError::UnknownMember { group_id: self.group.id.clone(), member_id: member_id.clone() }
    }

    /// Refuses a join.
    pub fn refuse_join(&mut self, ticket: Ticket, member_id: MemberId, error: GroupError) {
        self.answers.push((ticket, Answer::Join(Err(JoinRefused { member_id, error }))));
    }

    /// The member's session runs anew from now.
    pub fn restart_session(&mut self, member_id: &str) {
        let now_ms = self.now.monotonic_ms;
        if let Some(member) = self.group.member_mut(member_id) {
            member.session_deadline_ms = Some(now_ms.saturating_add(i64::from(member.session_timeout_ms)));
        }
    }

    /// Answers a parked join with an error. `member_id` is what the client shall believe.
    pub fn fail_parked_join(&mut self, member: &Member, member_id: MemberId, error: GroupError) {
        if let Some(ticket) = member.awaiting_join {
            self.refuse_join(ticket, member_id, error);
        }
    }

    /// Answers a parked sync with an error.
    pub fn fail_parked_sync(&mut self, member: &Member, error: GroupError) {
        if let Some(ticket) = member.awaiting_sync {
            self.answers.push((ticket, Answer::Sync(Err(error))));
        }
    }

    /// What a member of the current generation gets for its join.
    pub fn joined(&self, member_id: &MemberId, with_members: bool) -> Joined {
        Joined {
            member_id: member_id.clone(),
            generation: self.group.generation,
            protocol_type: self.group.protocol_type.clone(),
            protocol_name: self.group.protocol_name.clone(),
            leader: self.group.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            members: if with_members { self.group.joined_members() } else { Vec::new() },
        }
    }

    /// What a member of the current generation gets for its sync.
    pub fn synced(&self, assignment: Bytes) -> Synced {
        Synced {
            protocol_type: self.group.protocol_type.clone(),
            protocol_name: self.group.protocol_name.clone(),
            assignment,
        }
    }

    /// Begins a rebalance where the state allows one, otherwise completes the running round if all have joined.
    pub fn rebalance_or_complete_join(&mut self) {
        match self.group.state {
            State::Empty | State::CompletingRebalance | State::Stable => self.prepare_rebalance(),
            State::PreparingRebalance => self.maybe_complete_join(),
        }
    }

    /// Begins a round of joining.
    pub fn prepare_rebalance(&mut self) {
        if self.group.state == State::CompletingRebalance {
            self.cancel_parked_syncs();
        }
        self.group.pending_syncs.clear();
        self.group.sync_deadline_ms = None;
        let initial = self.group.state == State::Empty;
        self.group.initial_round = initial;
        self.transition(State::PreparingRebalance);
        if initial {
            let delay_ms = i64::from(self.config.initial_rebalance_delay_ms);
            self.group.join_timer = Some(JoinTimer::Initial {
                deadline_ms: self.after_ms(delay_ms),
                delay_ms,
                remaining_ms: (self.group.rebalance_timeout_ms() - delay_ms).max(0),
            });
        } else if self.group.has_all_joined() {
            self.complete_join();
        } else {
            self.wait_for_joins();
        }
    }

    fn wait_for_joins(&mut self) {
        let deadline_ms = self.after_ms(self.group.rebalance_timeout_ms());
        self.group.join_timer = Some(JoinTimer::Round { deadline_ms });
    }

    /// The round of this generation is off: members that wait for their assignment shall join again.
    fn cancel_parked_syncs(&mut self) {
        let members: Vec<Arc<Member>> = self.group.members.values().cloned().collect();
        for member in members {
            if member.awaiting_sync.is_some() {
                self.fail_parked_sync(&member, self.rebalancing());
                self.restart_session(&member.id);
            }
            if let Some(member) = self.group.member_mut(&member.id) {
                member.awaiting_sync = None;
                member.assignment = Bytes::new();
            }
        }
    }

    /// Completes the joining phase early, when all have joined and the initial delay does not hold it open.
    pub fn maybe_complete_join(&mut self) {
        if self.group.state == State::PreparingRebalance && !self.group.initial_round && self.group.has_all_joined() {
            self.complete_join();
        }
    }

    /// Ends the joining phase with those who have joined.
    pub fn complete_join(&mut self) {
        self.group.join_timer = None;
        let late = |member: &&Arc<Member>| member.awaiting_join.is_none() && member.instance_id.is_none();
        let late: Vec<MemberId> = self.group.members.values().filter(late).map(|member| member.id.clone()).collect();
        for member_id in late {
            self.group.remove(&member_id);
        }
        if !self.elect_leader_that_joined() && !self.group.members.is_empty() {
            // Only silent static members are left: their sessions end before this can go on.
            self.wait_for_joins();
            return;
        }
        self.next_generation();
    }

    /// False when no member has joined.
    fn elect_leader_that_joined(&mut self) -> bool {
        let joined = |id: &MemberId| self.group.members.get(id).is_some_and(|member| member.awaiting_join.is_some());
        match &self.group.leader {
            None => false,
            Some(leader) if joined(leader) => true,
            Some(_) => {
                let mut members = self.group.members.values();
                let Some(member) = members.find(|member| member.awaiting_join.is_some()) else { return false };
                self.group.leader = Some(member.id.clone());
                true
            }
        }
    }

    fn next_generation(&mut self) {
        self.group.generation = self.group.generation.wrapping_add(1).max(0);
        self.group.initial_round = false;
        self.group.pending_syncs.clear();
        self.group.protocol_name = self.group.select_protocol();
        self.group.subscribed_topics = self.group.compute_subscribed_topics();
        if self.group.members.is_empty() {
            self.transition(State::Empty);
            self.write_group();
        } else {
            self.transition(State::CompletingRebalance);
            self.answer_joins();
        }
    }

    fn answer_joins(&mut self) {
        let members: Vec<Arc<Member>> = self.group.members.values().cloned().collect();
        for member in members {
            if let Some(ticket) = member.awaiting_join {
                let joined = self.joined(&member.id, self.group.is_leader(&member.id));
                self.answers.push((ticket, Answer::Join(Ok(joined))));
            }
            if let Some(member) = self.group.member_mut(&member.id) {
                member.awaiting_join = None;
                member.is_new = false;
            }
            self.restart_session(&member.id);
            self.group.pending_syncs.insert(member.id.clone());
        }
        self.group.sync_deadline_ms = Some(self.after_ms(self.group.rebalance_timeout_ms()));
    }

    /// Writes the group as it now stands.
    pub fn write_group(&mut self) {
        let value = Some(Arc::new(self.group.to_record(None)));
        self.records.push(Record::Group { group_id: self.group.id.clone(), value });
    }

    /// Continues after a member has left or has been removed.
    pub fn after_removal(&mut self) {
        match self.group.state {
            State::Stable | State::CompletingRebalance => self.prepare_rebalance(),
            State::PreparingRebalance if self.group.has_all_joined() => self.complete_join(),
            State::PreparingRebalance | State::Empty => {}
        }
    }
}
