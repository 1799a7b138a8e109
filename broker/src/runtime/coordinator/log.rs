//! The log of a shard as its host sees it: append and be told when it is committed, read from the start to load.

use std::future::Future;

use base::Offset;
use bytes::Bytes;

/// The log refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardLogError {
    /// Another node leads the partition now.
    #[error("this node does not lead the partition")]
    NotLeader,
    /// The partition cannot take records at present: too few replicas, no disk.
    #[error("the partition is not available: {0}")]
    Unavailable(String),
}

/// A partition of an internal topic, led by this node.
pub trait ShardLog: Send + Sync + 'static {
    /// Appends one batch and returns when it is committed.
    fn append(&self, batch: Vec<u8>) -> impl Future<Output = Result<(), ShardLogError>> + Send;

    /// Batches from `offset` on, at most about `bytes_max` of them but at least one; empty at the end of what is
    /// committed. The first batch may begin before `offset`.
    fn read(&self, offset: Offset, bytes_max: usize) -> impl Future<Output = Result<Bytes, ShardLogError>> + Send;

    /// First offset that is still there.
    fn log_start_offset(&self) -> Offset;

    /// Most bytes in one batch (`max.message.bytes` of the topic).
    fn batch_bytes_max(&self) -> usize;
}
