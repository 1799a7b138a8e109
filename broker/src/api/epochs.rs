//! The fencing of requests by leader epoch that Fetch, ListOffsets and OffsetForLeaderEpoch have in common (KIP-320).

use base::LeaderEpoch;
use kafka_protocol::ResponseError;

use crate::runtime::partition::Partition;

/// Compares the epoch that a client believes in with the partition's; -1 asks for no comparison.
///
/// # Errors
/// The client is behind (it has to refresh its metadata) or ahead (this node has to).
pub fn check_leader_epoch(believed: LeaderEpoch, partition: &Partition) -> Result<(), ResponseError> {
    match believed {
        -1 => Ok(()),
        epoch if epoch < partition.leader_epoch() => Err(ResponseError::FencedLeaderEpoch),
        epoch if epoch > partition.leader_epoch() => Err(ResponseError::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}
