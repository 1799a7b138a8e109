//! A partition of this node as the log of a shard.

use std::sync::Arc;

use base::Offset;
use bytes::{Bytes, BytesMut};
use partition_log::{Access, AppendError, AppendOrigin, Bound, ReadError, ReadRequest};

use super::log::{ShardLog, ShardLogError};
use crate::runtime::partition::{AppendFailure, Partition, Waiter};
use crate::tasks::Tasks;

/// A partition of an internal topic, led by this node.
pub struct PartitionShardLog(Arc<Partition>);

impl PartitionShardLog {
    /// The log of a shard in `partition`.
    pub fn new(partition: Arc<Partition>) -> Self {
        PartitionShardLog(partition)
    }

    async fn committed(&self, last_offset: Offset) {
        let waiter = Waiter::new();
        loop {
            // Added before the look, so that a change in between is not missed.
            self.0.add_waiter(&waiter);
            if self.0.reader().high_watermark() > last_offset {
                return;
            }
            waiter.changed().await;
        }
    }
}

impl ShardLog for PartitionShardLog {
    async fn append(&self, batch: Vec<u8>) -> Result<(), ShardLogError> {
        let records = BytesMut::from(Bytes::from(batch));
        let appended = self.0.append(records, AppendOrigin::Coordinator).await.map_err(append_error)?;
        self.committed(appended.last_offset).await;
        Ok(())
    }

    async fn read(&self, offset: Offset, bytes_max: usize) -> Result<Bytes, ShardLogError> {
        // What a leader holds is never taken back, so that also what is not yet committed belongs to the state.
        let request = ReadRequest { offset, max_bytes: bytes_max, min_one_batch: true, bound: Bound::LogEnd };
        let reader = self.0.reader().clone();
        let read = match reader.read(&request, Access::NoWait) {
            Err(ReadError::WouldBlock) => {
                let waited = Tasks::run_aside(move || reader.read(&request, Access::Wait)).await;
                waited.ok_or_else(|| ShardLogError::Unavailable("the read was broken off".to_owned()))?
            }
            read => read,
        };
        Ok(read.map_err(read_error)?.records)
    }

    fn log_start_offset(&self) -> Offset {
        self.0.reader().log_start_offset()
    }

    fn batch_bytes_max(&self) -> usize {
        usize::try_from(self.0.topic().config.load().max_message_bytes).unwrap_or(0)
    }
}

fn append_error(failure: AppendFailure) -> ShardLogError {
    match failure {
        AppendFailure::Closed => ShardLogError::NotLeader,
        AppendFailure::Refused(error) => match error {
            AppendError::Producer(_)
            | AppendError::Malformed(_)
            | AppendError::Corrupt { .. }
            | AppendError::Empty
            | AppendError::UnexpectedOffset { .. }
            | AppendError::LargerThanSegment { .. }
            | AppendError::Storage(_)
            | AppendError::Offline => ShardLogError::Unavailable(error.to_string()),
        },
    }
}

fn read_error(error: ReadError) -> ShardLogError {
    match error {
        ReadError::Closed => ShardLogError::NotLeader,
        ReadError::OutOfRange { .. } | ReadError::WouldBlock | ReadError::Corrupt { .. } | ReadError::Storage(_) => {
            ShardLogError::Unavailable(error.to_string())
        }
    }
}
