//! SyncGroup and Heartbeat. A sync waits until the leader has brought the assignments; they are stored before anybody
//! gets one.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::draft::Draft;
use super::state::{ClassicGroup, Member, State};
use crate::group::command::{Answer, Heartbeat, Sync};
use crate::group::{GroupError, MemberId};
use crate::machine::Ticket;
use crate::record::Record;

impl Draft<'_> {
    pub fn sync(&mut self, ticket: Ticket, sync: Sync) {
        if let Err(error) = self.group.check_sync(&sync) {
            self.answers.push((ticket, Answer::Sync(Err(error))));
            return;
        }
        match self.group.state {
            // The check of the member has already refused an empty group.
            State::Empty | State::PreparingRebalance => {
                self.answers.push((ticket, Answer::Sync(Err(self.rebalancing()))));
            }
            State::CompletingRebalance => self.sync_completing(ticket, sync),
            State::Stable => {
                self.sync_has_come(&sync.member_id);
                let assignment = self.group.members.get(&sync.member_id).map(|member| member.assignment.clone());
                let synced = self.synced(assignment.unwrap_or_default());
                self.answers.push((ticket, Answer::Sync(Ok(synced))));
            }
        }
    }

    fn sync_has_come(&mut self, member_id: &str) {
        self.group.pending_syncs.remove(member_id);
        if self.group.pending_syncs.is_empty() {
            self.group.sync_deadline_ms = None;
        }
    }

    fn sync_completing(&mut self, ticket: Ticket, sync: Sync) {
        let error = self.rebalancing();
        if let Some(member) = self.group.member_mut(&sync.member_id)
            && let Some(earlier) = member.awaiting_sync.replace(ticket)
        {
            self.answers.push((earlier, Answer::Sync(Err(error))));
        }
        self.sync_has_come(&sync.member_id);
        if self.group.is_leader(&sync.member_id) {
            self.assign(sync.assignments.into_iter().collect());
        }
    }

    /// Stores the assignments and gives each waiting member its own. A member that the leader left out gets an empty
    /// one. The group becomes stable when it takes the record.
    fn assign(&mut self, assignments: BTreeMap<MemberId, Bytes>) {
        let record = self.group.to_record(Some(&assignments));
        let members: Vec<Arc<Member>> = self.group.members.values().cloned().collect();
        for member in members {
            if let Some(ticket) = member.awaiting_sync {
                let synced = self.synced(assignments.get(&member.id).cloned().unwrap_or_default());
                self.answers.push((ticket, Answer::Sync(Ok(synced))));
                if let Some(member) = self.group.member_mut(&member.id) {
                    member.awaiting_sync = None;
                }
                self.restart_session(&member.id);
            }
        }
        self.records.push(Record::Group { group_id: self.group.id.clone(), value: Some(Arc::new(record)) });
    }
}

impl ClassicGroup {
    fn check_sync(&self, sync: &Sync) -> Result<(), GroupError> {
        self.check_member(&sync.member_id, sync.instance_id.as_ref())?;
        self.check_generation(sync.generation)?;
        let differs = |asked: &Option<Arc<str>>, ours: &Option<Arc<str>>| matches!((asked, ours), (Some(asked), Some(ours)) if asked != ours);
        if differs(&sync.protocol_type, &self.protocol_type) || differs(&sync.protocol_name, &self.protocol_name) {
            return Err(GroupError::InconsistentProtocol { group_id: self.id.clone() });
        }
        Ok(())
    }

    /// The answer to a heartbeat; the second value tells whether the session runs anew.
    pub fn heartbeat(&self, heartbeat: &Heartbeat) -> (Result<(), GroupError>, bool) {
        let checked = self
            .check_member(&heartbeat.member_id, heartbeat.instance_id.as_ref())
            .and_then(|()| self.check_generation(heartbeat.generation));
        match (checked, self.state) {
            (Err(error), _) => (Err(error), false),
            // The check of the member has already refused an empty group.
            (Ok(()), State::Empty | State::PreparingRebalance) => {
                (Err(GroupError::RebalanceInProgress { group_id: self.id.clone() }), true)
            }
            (Ok(()), State::CompletingRebalance | State::Stable) => (Ok(()), true),
        }
    }
}
