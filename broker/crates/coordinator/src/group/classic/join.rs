//! JoinGroup. A new dynamic member first gets an id (KIP-394), a static member takes its instance's place at once
//! (KIP-345), a known member joins the next round or is told the running generation.

use std::sync::Arc;

use bytes::Bytes;

use super::draft::Draft;
use super::state::{Member, State};
use crate::group::command::{Answer, Join, Joined};
use crate::group::{GroupError, InstanceId, MemberId};
use crate::machine::Ticket;

impl Draft<'_> {
    pub fn join(&mut self, ticket: Ticket, join: Join) {
        let member_id = join.member_id.clone();
        if !self.has_room_for(&member_id) {
            let error =
                GroupError::MaxSizeReached { group_id: self.group.id.clone(), limit: self.config.group_size_max };
            self.group.remove(&member_id);
            self.refuse_join(ticket, MemberId::default(), error);
        } else if !self.group.supports(&join.protocol_type, &join.protocols) {
            self.refuse_join(ticket, member_id, GroupError::InconsistentProtocol { group_id: self.group.id.clone() });
        } else if member_id.is_empty() {
            self.join_new(ticket, join);
        } else {
            self.join_known(ticket, join);
        }
    }

    /// The limit counts those who wait while a round is open, so that the last to come back are left out when the
    /// group is over a lowered limit; afterwards it counts the members.
    fn has_room_for(&self, member_id: &str) -> bool {
        let member = self.group.members.get(member_id);
        let limit = self.config.group_size_max;
        match self.group.state {
            State::Empty => true,
            State::PreparingRebalance => {
                member.is_some_and(|member| member.awaiting_join.is_some()) || self.group.awaiting_join_count() < limit
            }
            State::CompletingRebalance | State::Stable => member.is_some() || self.group.members.len() < limit,
        }
    }

    fn join_new(&mut self, ticket: Ticket, join: Join) {
        let prefix = join.instance_id.as_ref().unwrap_or(&join.client_id);
        let new_id = MemberId::from(format!("{prefix}-{}", join.unique));
        match &join.instance_id {
            Some(instance_id) => match self.group.static_members.get(instance_id).cloned() {
                Some(old_id) => {
                    let instance_id = instance_id.clone();
                    self.replace_static(ticket, join, &instance_id, old_id, new_id);
                }
                None => self.add_member(ticket, join, new_id),
            },
            None if join.member_id_required && self.group.pending_joins.len() >= self.config.pending_joins_max => {
                let (group_id, limit) = (self.group.id.clone(), self.config.pending_joins_max);
                let error = GroupError::MaxSizeReached { group_id, limit };
                self.refuse_join(ticket, MemberId::default(), error);
            }
            None if join.member_id_required => {
                let deadline_ms = self.after_ms(i64::from(join.session_timeout_ms));
                self.group.pending_joins.insert(new_id.clone(), deadline_ms);
                let error = GroupError::MemberIdRequired { member_id: new_id.clone() };
                self.refuse_join(ticket, new_id, error);
            }
            None => self.add_member(ticket, join, new_id),
        }
    }

    fn add_member(&mut self, ticket: Ticket, join: Join, member_id: MemberId) {
        if self.group.state == State::PreparingRebalance && self.group.initial_round {
            self.group.new_member_added = true;
        }
        if self.group.members.is_empty() {
            self.group.protocol_type = Some(join.protocol_type.clone());
        }
        // A new member does not know its id yet and cannot send heartbeats, so its session does not run; instead its
        // parked join is bounded, or clients that give up and retry would fill the group.
        let join_deadline_ms = self.after_ms(i64::from(self.config.new_member_join_timeout_ms));
        self.group.insert(Member {
            id: member_id,
            instance_id: join.instance_id,
            client_id: join.client_id,
            client_host: join.client_host,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            protocols: join.protocols,
            assignment: Bytes::new(),
            is_new: true,
            awaiting_join: Some(ticket),
            awaiting_sync: None,
            session_deadline_ms: Some(join_deadline_ms),
        });
        self.rebalance_or_complete_join();
    }

    /// A process claims the instance id of a member: the old id is fenced, the place and the assignment are kept.
    fn replace_static(
        &mut self,
        ticket: Ticket,
        join: Join,
        instance_id: &InstanceId,
        old_id: MemberId,
        new_id: MemberId,
    ) {
        let Some(old) = self.group.members.remove(&old_id) else { return };
        let leader_before = self.group.leader.clone();
        let fenced = GroupError::FencedInstance { instance_id: instance_id.clone(), current: new_id.clone() };
        self.fail_parked_join(&old, old_id.clone(), fenced.clone());
        self.fail_parked_sync(&old, fenced);
        if self.group.is_leader(&old_id) {
            self.group.leader = Some(new_id.clone());
        }
        if self.group.pending_syncs.remove(&old_id) {
            self.group.pending_syncs.insert(new_id.clone());
        }
        self.group.insert(Member {
            id: new_id.clone(),
            is_new: false,
            awaiting_join: Some(ticket),
            awaiting_sync: None,
            protocols: join.protocols,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            ..Arc::unwrap_or_clone(old)
        });
        self.restart_session(&new_id);
        match self.group.state {
            State::Stable if self.group.select_protocol() == self.group.protocol_name => {
                self.answer_replaced(&new_id, leader_before, join.may_skip_assignment);
                self.write_group();
            }
            State::Stable => self.rebalance_or_complete_join(),
            // The leader may already hold the old id in its assignment.
            State::CompletingRebalance => self.prepare_rebalance(),
            State::PreparingRebalance | State::Empty => self.maybe_complete_join(),
        }
    }

    /// Nothing changes for the others, so the new process gets the running generation. A leader that may skip the
    /// assignment is told so; an older client is shown the former leader, so that it does not assign.
    fn answer_replaced(&mut self, member_id: &MemberId, leader_before: Option<MemberId>, may_skip: bool) {
        let Some(ticket) = self.group.member_mut(member_id).and_then(|member| member.awaiting_join.take()) else {
            return;
        };
        let joined = if may_skip {
            let is_leader = self.group.is_leader(member_id);
            Joined { skip_assignment: is_leader, ..self.joined(member_id, is_leader) }
        } else {
            Joined { leader: leader_before.unwrap_or_default(), ..self.joined(member_id, false) }
        };
        self.answers.push((ticket, Answer::Join(Ok(joined))));
    }

    fn join_known(&mut self, ticket: Ticket, join: Join) {
        let member_id = join.member_id.clone();
        if join.instance_id.is_none() && self.group.pending_joins.contains_key(&member_id) {
            self.add_member(ticket, join, member_id);
            return;
        }
        if let Err(error) = self.group.check_member(&member_id, join.instance_id.as_ref()) {
            self.refuse_join(ticket, member_id, error);
            return;
        }
        let same_protocols =
            self.group.members.get(&member_id).is_some_and(|member| member.protocols == join.protocols);
        let is_leader = self.group.is_leader(&member_id);
        match self.group.state {
            State::PreparingRebalance => self.rejoin(ticket, join),
            // The answer to its join may have been lost.
            State::CompletingRebalance if same_protocols => self.answer_current(ticket, &member_id, is_leader),
            State::CompletingRebalance => self.rejoin(ticket, join),
            // A leader rejoins to have the assignment computed anew, for instance after topics have changed.
            State::Stable if is_leader || !same_protocols => self.rejoin(ticket, join),
            State::Stable => self.answer_current(ticket, &member_id, false),
            State::Empty => {
                let error = self.unknown(&member_id);
                self.refuse_join(ticket, member_id, error);
            }
        }
    }

    fn answer_current(&mut self, ticket: Ticket, member_id: &MemberId, with_members: bool) {
        let joined = self.joined(member_id, with_members);
        self.answers.push((ticket, Answer::Join(Ok(joined))));
    }

    fn rejoin(&mut self, ticket: Ticket, join: Join) {
        let error = self.rebalancing();
        let Some(member) = self.group.member_mut(&join.member_id) else { return };
        member.protocols = join.protocols;
        member.rebalance_timeout_ms = join.rebalance_timeout_ms;
        member.session_timeout_ms = join.session_timeout_ms;
        // The same member asks again, over a new connection: whoever waited on the old one is let go.
        if let Some(earlier) = member.awaiting_join.replace(ticket) {
            self.refuse_join(earlier, join.member_id, error);
        }
        self.rebalance_or_complete_join();
    }
}
