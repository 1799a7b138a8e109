//! How members of the quorum reach each other. A quorum of one reaches nobody; asking for another member is answered
//! with "unreachable", which openraft takes as a reason to wait before it asks again.

use std::future::Future;

use base::NodeId;
use openraft::error::{Fatal, RPCError, RaftError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{RaftNetwork, RaftNetworkFactory, Snapshot, Vote};

use super::types::{Member, Types};

/// Makes connections to nobody.
pub struct NoPeers;

/// A member that cannot be reached.
pub struct NoPeer {
    target: NodeId,
}

impl NoPeer {
    fn unreachable(&self) -> Unreachable {
        Unreachable::new(&std::io::Error::other(format!("there is no way to controller {}", self.target)))
    }
}

impl RaftNetworkFactory<Types> for NoPeers {
    type Network = NoPeer;

    async fn new_client(&mut self, target: NodeId, _node: &Member) -> NoPeer {
        NoPeer { target }
    }
}

type Refused = RPCError<NodeId, Member, RaftError<NodeId>>;

impl RaftNetwork<Types> for NoPeer {
    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<NodeId>, Refused> {
        Err(self.unreachable().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<NodeId>,
        _option: RPCOption,
    ) -> Result<VoteResponse<NodeId>, Refused> {
        Err(self.unreachable().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote<NodeId>,
        _snapshot: Snapshot<Types>,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<NodeId>, StreamingError<Types, Fatal<NodeId>>> {
        Err(self.unreachable().into())
    }
}
