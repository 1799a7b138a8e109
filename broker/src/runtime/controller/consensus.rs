//! What the controller needs of a quorum: records go in, and come out applied, in one order, on every node. Behind it
//! stands openraft, whose names appear below `raft/` only.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use base::{LeaderEpoch, NodeId, Offset};
use cluster::{MetadataImage, Record};
use tokio::sync::watch;

use super::ControllerError;

/// What a member of the quorum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It follows a leader, or waits for one.
    #[default]
    Follower,
    /// It stands for election.
    Candidate,
    /// It leads.
    Leader,
    /// It follows without a vote.
    Observer,
}

/// What the parts of a member count, for metrics and for the rule of snapshots.
#[derive(Debug, Default)]
pub struct QuorumCounters {
    /// Offset of the log's next record.
    pub log_end_offset: AtomicI64,
    /// Bytes of the batches that were applied since the last snapshot was begun, those of the log that the node found at
    /// its start included.
    pub bytes_since_snapshot: AtomicU64,
    /// Proposals that were agreed on.
    pub commits: AtomicU64,
    /// Time from proposal to agreement, of all of them, in microseconds.
    pub commit_micros: AtomicU64,
}

/// Who leads the quorum, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leadership {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The leader.
    pub leader: Option<NodeId>,
    /// What this member is.
    pub role: Role,
    /// Whom this member voted for in the epoch.
    pub vote: Option<NodeId>,
    /// True when this node leads and has applied everything that earlier leaders committed.
    pub ready_here: bool,
    /// True when the quorum's member on this node has failed for good.
    pub failed: bool,
}

/// Records under way: becomes the offset of the last of them, once they are committed and applied here.
pub type Proposed = std::pin::Pin<Box<dyn Future<Output = Result<Offset, ControllerError>> + Send>>;

/// This node's member of the quorum.
pub trait Consensus: Send + Sync + 'static {
    /// Hands records to the quorum; they are appended in the order of the calls. Only the leader's are taken.
    fn propose(&self, records: Arc<[Record]>) -> impl Future<Output = Result<Proposed, ControllerError>> + Send;
    /// Who leads, now and later.
    fn leadership(&self) -> watch::Receiver<Leadership>;
    /// The metadata as applied on this node, now and later.
    fn image(&self) -> watch::Receiver<Arc<MetadataImage>>;
    /// What its parts count.
    fn counters(&self) -> Arc<QuorumCounters>;
    /// Asks for a snapshot, which is made in the background; nothing happens while one is being made.
    fn snapshot(&self) -> impl Future<Output = ()> + Send;
    /// Leaves the quorum and waits until the disk is not used any more.
    fn shutdown(&self) -> impl Future<Output = ()> + Send;
}
