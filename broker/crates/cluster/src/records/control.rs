//! Control records of the raft log and of its snapshots. Their key says the kind, their value has its own version
//! field; the batches that carry them are made where record batches are known.

use base::{NodeId, TimestampMs};

use crate::DirectoryId;
use crate::schema::messages;
use crate::wire::{DecodeError, Field};

messages! {
    /// A voter, as a leader names it.
    LeaderVoter {
        /// The voter.
        [0] voter_id: NodeId,
        /// Its metadata log directory.
        [1] voter_directory_id: DirectoryId,
    }

    /// A leader begins its epoch; the first record of every epoch.
    LeaderChangeMessage {
        /// Version of this value.
        [0] version: i16,
        /// The leader.
        [0] leader_id: NodeId,
        /// All voters.
        [0] voters: Vec<LeaderVoter>,
        /// Those that elected it.
        [0] granting_voters: Vec<LeaderVoter>,
    }

    /// First record of a snapshot.
    SnapshotHeaderRecord {
        /// Version of this value.
        [0] version: i16,
        /// Timestamp of the last record that the snapshot covers.
        [0] last_contained_log_timestamp: TimestampMs,
        /// Raft index of the last entry that the snapshot covers, -1 in a snapshot of Kafka or of formatting. Ours: the
        /// raft counts batches where Kafka counts records, and no other field of the files holds the count.
        [0, tag 7700, default -1] raft_index: i64,
    }

    /// Last record of a snapshot.
    SnapshotFooterRecord {
        /// Version of this value.
        [0] version: i16,
    }

    /// The level of the feature `kraft.version`.
    KRaftVersionRecord {
        /// Version of this value.
        [0] version: i16,
        /// The level: 0 static voters, 1 voters from the log.
        [0] kraft_version: i16,
    }

    /// Where a voter is reached.
    VoterEndpoint {
        /// Name of the listener.
        [0] name: String,
        /// Host.
        [0] host: String,
        /// Port.
        [0] port: u16,
    }

    /// Levels of `kraft.version` that a voter can work at.
    KRaftVersionRange {
        /// Lowest level.
        [0] min_supported_version: i16,
        /// Highest level.
        [0] max_supported_version: i16,
    }

    /// A member of the quorum.
    Voter {
        /// The voter.
        [0] voter_id: NodeId,
        /// Its metadata log directory.
        [0] voter_directory_id: DirectoryId,
        /// Its controller listeners.
        [0] endpoints: Vec<VoterEndpoint>,
        /// What it supports.
        [0] kraft_version_feature: KRaftVersionRange,
    }

    /// The members of the quorum.
    VotersRecord {
        /// Version of this value.
        [0] version: i16,
        /// The voters.
        [0] voters: Vec<Voter>,
        /// The sets that must each agree while the quorum changes (joint consensus); empty when there is only one, which
        /// is `voters`. Ours: Kafka changes one voter at a time.
        [0, tag 7700] joint_sets: Vec<VoterIds>,
        /// Nodes that follow the log and do not vote. Ours.
        [0, tag 7701] learners: Vec<Voter>,
    }

    /// Ids of one of the sets of a quorum that changes.
    VoterIds {
        /// The voters.
        [0] ids: Vec<NodeId>,
    }
}

/// A control record of the raft log.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlRecord {
    /// Type 2.
    LeaderChange(LeaderChangeMessage),
    /// Type 3.
    SnapshotHeader(SnapshotHeaderRecord),
    /// Type 4.
    SnapshotFooter(SnapshotFooterRecord),
    /// Type 5.
    KRaftVersion(KRaftVersionRecord),
    /// Type 6.
    KRaftVoters(VotersRecord),
}

impl ControlRecord {
    /// Kafka's ControlRecordType of this record.
    pub fn kind(&self) -> i16 {
        match self {
            ControlRecord::LeaderChange(_) => 2,
            ControlRecord::SnapshotHeader(_) => 3,
            ControlRecord::SnapshotFooter(_) => 4,
            ControlRecord::KRaftVersion(_) => 5,
            ControlRecord::KRaftVoters(_) => 6,
        }
    }

    /// The record's key: version 0 and the kind.
    pub fn key(&self) -> [u8; 4] {
        let kind = self.kind().to_be_bytes();
        [0, 0, kind[0], kind[1]]
    }

    /// The record's value.
    pub fn value(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            // The versions of a leader change differ in what a voter holds.
            ControlRecord::LeaderChange(message) => message.put(message.version.unsigned_abs(), &mut out),
            ControlRecord::SnapshotHeader(message) => message.put(0, &mut out),
            ControlRecord::SnapshotFooter(message) => message.put(0, &mut out),
            ControlRecord::KRaftVersion(message) => message.put(0, &mut out),
            ControlRecord::KRaftVoters(message) => message.put(0, &mut out),
        }
        out
    }

    /// Reads a control record from its key and value.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let mut key_rest = key;
        let _key_version = i16::take(0, &mut key_rest)?;
        let kind = i16::take(0, &mut key_rest)?;
        let mut rest = value;
        let record = match kind {
            2 => {
                let version = i16::take(0, &mut &value[..])?.unsigned_abs().min(LEADER_CHANGE_VERSION_MAX);
                ControlRecord::LeaderChange(Field::take(version, &mut rest)?)
            }
            3 => ControlRecord::SnapshotHeader(Field::take(0, &mut rest)?),
            4 => ControlRecord::SnapshotFooter(Field::take(0, &mut rest)?),
            5 => ControlRecord::KRaftVersion(Field::take(0, &mut rest)?),
            6 => ControlRecord::KRaftVoters(Field::take(0, &mut rest)?),
            other => return Err(DecodeError::UnknownKind(u32::from(other.unsigned_abs()))),
        };
        if rest.is_empty() { Ok(record) } else { Err(DecodeError::TrailingBytes(rest.len())) }
    }
}

/// Highest known version of `LeaderChangeMessage`.
const LEADER_CHANGE_VERSION_MAX: u16 = 1;
