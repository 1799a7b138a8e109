//! Our types in openraft's places: an entry is a batch of the metadata log, a term is a leader epoch, a node is a voter
//! as Kafka's quorum records describe it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use base::{LeaderEpoch, NodeId, Offset};
use bytes::Bytes;
use cluster::records::control::{KRaftVersionRange, Voter, VoterEndpoint, VoterIds, VotersRecord};
use cluster::{DirectoryId, Record};
use openraft::entry::{FromAppData, RaftEntry, RaftPayload};
use openraft::{CommittedLeaderId, LogId, Membership, RaftLogId, TokioRuntime};

use crate::runtime::controller::store::batches::KRAFT_VERSION_LEVEL;
use crate::runtime::controller::store::{Payload, StoredBatch};

/// A proposal: records that take effect together.
#[derive(Debug, Clone)]
pub struct Proposal(pub Arc<[Record]>);

/// A member of the quorum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Its metadata log directory.
    pub directory_id: DirectoryId,
    /// Listener, host and port of its controller listeners.
    pub endpoints: Vec<(String, String, u16)>,
}

openraft::declare_raft_types!(
    /// The types of the metadata quorum.
    pub Types:
        D = Proposal,
        R = Offset,
        NodeId = NodeId,
        Node = Member,
        Entry = Entry,
        SnapshotData = Bytes,
        AsyncRuntime = TokioRuntime,
);

/// What an entry says.
#[derive(Debug, Clone)]
pub enum Content {
    /// A leader begins its term.
    Blank,
    /// The quorum changes.
    Membership(Membership<NodeId, Member>),
    /// Metadata records.
    Records(Arc<[Record]>),
}

/// An entry of the raft log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Term and index.
    pub log_id: LogId<NodeId>,
    /// What it says.
    pub content: Content,
    /// Its batch; none until the leader has appended it.
    pub stored: Option<Arc<StoredBatch>>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Blank => write!(f, "{}: leader", self.log_id),
            Content::Membership(_) => write!(f, "{}: quorum", self.log_id),
            Content::Records(records) => write!(f, "{}: {} records", self.log_id, records.len()),
        }
    }
}

impl RaftLogId<NodeId> for Entry {
    fn get_log_id(&self) -> &LogId<NodeId> {
        &self.log_id
    }

    fn set_log_id(&mut self, log_id: &LogId<NodeId>) {
        self.log_id = *log_id;
    }
}

impl RaftPayload<NodeId, Member> for Entry {
    fn is_blank(&self) -> bool {
        matches!(self.content, Content::Blank)
    }

    fn get_membership(&self) -> Option<&Membership<NodeId, Member>> {
        match &self.content {
            Content::Membership(membership) => Some(membership),
            Content::Blank | Content::Records(_) => None,
        }
    }
}

impl RaftEntry<NodeId, Member> for Entry {
    fn new_blank(log_id: LogId<NodeId>) -> Self {
        Entry { log_id, content: Content::Blank, stored: None }
    }

    fn new_membership(log_id: LogId<NodeId>, membership: Membership<NodeId, Member>) -> Self {
        Entry { log_id, content: Content::Membership(membership), stored: None }
    }
}

impl FromAppData<Proposal> for Entry {
    fn from_app_data(proposal: Proposal) -> Self {
        Entry { log_id: LogId::default(), content: Content::Records(proposal.0), stored: None }
    }
}

impl Entry {
    /// The entry that a stored batch is, at its index.
    pub fn from_stored(index: u64, batch: StoredBatch) -> Entry {
        let content = match &batch.payload {
            Payload::Records(records) => Content::Records(Arc::clone(records)),
            Payload::Leader(_) => Content::Blank,
            Payload::Voters(voters) => Content::Membership(membership_of(voters)),
        };
        Entry { log_id: log_id(batch.epoch, index), content, stored: Some(Arc::new(batch)) }
    }
}

/// The id of the entry at an index whose batch has this epoch.
pub fn log_id(epoch: LeaderEpoch, index: u64) -> LogId<NodeId> {
    LogId::new(CommittedLeaderId::new(u64::from(epoch.max(0).unsigned_abs()), NodeId::default()), index)
}

/// The epoch of a term. Terms rise by one for each election, so that they stay in the range of an epoch.
pub fn epoch_of(term: u64) -> LeaderEpoch {
    LeaderEpoch::try_from(term).unwrap_or(LeaderEpoch::MAX)
}

/// The quorum that a record describes.
pub fn membership_of(record: &VotersRecord) -> Membership<NodeId, Member> {
    let members = record.voters.iter().chain(&record.learners);
    let nodes: BTreeMap<NodeId, Member> = members.map(|voter| (voter.voter_id, member_of(voter))).collect();
    let sets = match record.joint_sets.is_empty() {
        true => vec![record.voters.iter().map(|voter| voter.voter_id).collect()],
        false => record.joint_sets.iter().map(|set| set.ids.iter().copied().collect()).collect(),
    };
    Membership::new(sets, nodes)
}

/// The record that describes a quorum.
pub fn voters_record(membership: &Membership<NodeId, Member>) -> VotersRecord {
    let voting: BTreeSet<NodeId> = membership.voter_ids().collect();
    let (voters, learners): (Vec<_>, Vec<_>) = membership.nodes().partition(|(id, _)| voting.contains(id));
    let sets = membership.get_joint_config();
    let joint = if sets.len() > 1 { sets.as_slice() } else { &[] };
    VotersRecord {
        version: 0,
        voters: voters.into_iter().map(|(id, member)| voter_of(*id, member)).collect(),
        joint_sets: joint.iter().map(|set| VoterIds { ids: set.iter().copied().collect() }).collect(),
        learners: learners.into_iter().map(|(id, member)| voter_of(*id, member)).collect(),
    }
}

fn member_of(voter: &Voter) -> Member {
    let endpoint = |e: &VoterEndpoint| (e.name.clone(), e.host.clone(), e.port);
    Member { directory_id: voter.voter_directory_id, endpoints: voter.endpoints.iter().map(endpoint).collect() }
}

fn voter_of(id: NodeId, member: &Member) -> Voter {
    let endpoint = |(name, host, port): &(String, String, u16)| VoterEndpoint {
        name: name.clone(),
        host: host.clone(),
        port: *port,
    };
    Voter {
        voter_id: id,
        voter_directory_id: member.directory_id,
        endpoints: member.endpoints.iter().map(endpoint).collect(),
        kraft_version_feature: KRaftVersionRange {
            min_supported_version: 0,
            max_supported_version: KRAFT_VERSION_LEVEL,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(n: u128) -> Member {
        Member {
            directory_id: base::TopicId(uuid::Uuid::from_u128(n)),
            endpoints: vec![("CONTROLLER".to_owned(), format!("host{n}"), 9093)],
        }
    }

    #[test]
    fn a_quorum_survives_its_record_also_while_it_changes() {
        let nodes: BTreeMap<NodeId, Member> = (1..=4).map(|n| (NodeId(n), member(n as u128))).collect();
        let set = |ids: &[i32]| ids.iter().map(|id| NodeId(*id)).collect::<BTreeSet<_>>();
        for sets in [vec![set(&[1, 2, 3])], vec![set(&[1, 2]), set(&[2, 3])]] {
            let membership = Membership::new(sets, nodes.clone());
            assert_eq!(membership_of(&voters_record(&membership)), membership);
        }
    }
}
