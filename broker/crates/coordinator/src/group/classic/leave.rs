//! LeaveGroup: members leave by id, static members also by instance id alone (KIP-345), several in one request.

use super::draft::Draft;
use super::state::State;
use crate::group::command::{Leaving, Left};
use crate::group::{GroupError, MemberId};

impl Draft<'_> {
    pub fn leave(&mut self, leaving: Vec<Leaving>) -> Vec<Left> {
        let left: Vec<Left> = leaving.into_iter().map(|member| self.leave_one(member)).collect();
        if left.iter().any(|member| member.error.is_none()) {
            match self.group.state {
                State::Stable | State::CompletingRebalance => self.prepare_rebalance(),
                State::PreparingRebalance => self.maybe_complete_join(),
                State::Empty => {}
            }
        }
        left
    }

    fn leave_one(&mut self, member: Leaving) -> Left {
        let error = self.member_that_leaves(&member).map(|member_id| self.remove_member(&member_id)).err();
        Left { member, error }
    }

    fn member_that_leaves(&self, leaving: &Leaving) -> Result<MemberId, GroupError> {
        if leaving.member_id.is_empty() {
            let by_instance = leaving.instance_id.as_ref().and_then(|id| self.group.static_members.get(id));
            return by_instance.cloned().ok_or_else(|| self.unknown(&leaving.member_id));
        }
        if !self.group.pending_joins.contains_key(&leaving.member_id) {
            self.group.check_member(&leaving.member_id, leaving.instance_id.as_ref())?;
        }
        Ok(leaving.member_id.clone())
    }

    /// Takes a member out. Whoever waits for it is told that it is unknown, so that a client still alive joins anew.
    pub fn remove_member(&mut self, member_id: &MemberId) {
        if let Some(member) = self.group.members.get(member_id).cloned() {
            let error = self.unknown(member_id);
            self.fail_parked_join(&member, MemberId::default(), error.clone());
            self.fail_parked_sync(&member, error);
        }
        self.group.remove(member_id);
    }
}
