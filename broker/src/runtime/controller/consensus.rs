//! What the controller needs of a quorum: records go in, and come out applied, in one order, on every node. Behind it
//! stands openraft, whose names appear below `raft/` only.

use std::sync::Arc;

use base::{LeaderEpoch, NodeId, Offset};
use cluster::{MetadataImage, Record};
use tokio::sync::watch;

use super::ControllerError;

/// Who leads the quorum, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leadership {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The leader.
    pub leader: Option<NodeId>,
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
    /// Bytes of the batches that were applied since the last snapshot was begun, those of the log that the node found at
    /// its start included.
    fn bytes_since_snapshot(&self) -> u64;
    /// Asks for a snapshot, which is made in the background; nothing happens while one is being made.
    fn snapshot(&self) -> impl Future<Output = ()> + Send;
    /// Leaves the quorum and waits until the disk is not used any more.
    fn shutdown(&self) -> impl Future<Output = ()> + Send;
}
