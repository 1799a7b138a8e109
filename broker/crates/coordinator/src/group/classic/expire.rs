//! What the passing of time does to a classic group: sessions and unused member ids end, rounds of joining close,
//! members that never ask for their assignment are dropped.

use super::draft::Draft;
use super::state::{JoinTimer, Member, State};
use crate::group::MemberId;

impl Draft<'_> {
    /// A group that was just loaded: every session begins now, and a group over a lowered limit joins anew.
    pub fn start_after_load(&mut self) {
        let members: Vec<MemberId> = self.group.members.keys().cloned().collect();
        for member_id in &members {
            self.restart_session(member_id);
        }
        if members.len() > self.config.group_size_max {
            self.prepare_rebalance();
        }
    }

    /// Applies every deadline that has passed.
    pub fn expire(&mut self) {
        let now_ms = self.now.monotonic_ms;
        self.expire_sessions(now_ms);
        if self.group.sync_deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
            self.expire_pending_syncs();
        }
        match self.group.join_timer {
            Some(JoinTimer::Round { deadline_ms }) if deadline_ms <= now_ms => self.complete_join(),
            Some(JoinTimer::Initial { deadline_ms, delay_ms, remaining_ms }) if deadline_ms <= now_ms => {
                self.expire_initial_delay(delay_ms, remaining_ms);
            }
            Some(_) | None => {}
        }
    }

    fn expire_sessions(&mut self, now_ms: i64) {
        let is_due = |member: &Member| member.session_deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
        let due = self.group.members.values().filter(|member| is_due(member));
        let due: Vec<MemberId> = due.map(|member| member.id.clone()).collect();
        for member_id in due {
            // The removal of one may have answered, and so revived, another.
            let Some(member) = self.group.member_mut(&member_id).filter(|member| is_due(member)) else { continue };
            if member.is_satisfied() {
                // Its session runs anew with the answer that it waits for.
                member.session_deadline_ms = None;
            } else {
                self.remove_member(&member_id);
                self.after_removal();
            }
        }
        let pending = self.group.pending_joins.iter().filter(|(_, deadline_ms)| **deadline_ms <= now_ms);
        let pending: Vec<MemberId> = pending.map(|(member_id, _)| member_id.clone()).collect();
        for member_id in pending {
            self.group.remove(&member_id);
            if self.group.state == State::PreparingRebalance && self.group.has_all_joined() {
                self.complete_join();
            }
        }
    }

    fn expire_pending_syncs(&mut self) {
        self.group.sync_deadline_ms = None;
        let awaited = matches!(self.group.state, State::CompletingRebalance | State::Stable);
        if !awaited || self.group.pending_syncs.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.group.pending_syncs) {
            self.remove_member(&member_id);
        }
        self.prepare_rebalance();
    }

    /// While members keep coming, the first round stays open, up to their rebalance timeout.
    fn expire_initial_delay(&mut self, delay_ms: i64, remaining_ms: i64) {
        if self.group.new_member_added && remaining_ms != 0 {
            self.group.new_member_added = false;
            let next_delay_ms = i64::from(self.config.initial_rebalance_delay_ms).min(remaining_ms);
            self.group.join_timer = Some(JoinTimer::Initial {
                deadline_ms: self.after_ms(next_delay_ms),
                delay_ms: next_delay_ms,
                remaining_ms: (remaining_ms - delay_ms).max(0),
            });
        } else {
            self.complete_join();
        }
    }
}
