//! What every other crate speaks of: ids, offsets, epochs, time, randomness and the limits that hold for a whole node.
//! Depends on nothing of this project; no I/O but the two system implementations of its own seams.

pub mod clock;
pub mod entropy;
pub mod hash;
pub mod ids;
pub mod limits;
pub mod topics;

pub use clock::{Clock, ManualClock, SystemClock};
pub use entropy::{Entropy, SeededEntropy, SystemEntropy};
pub use ids::{
    LeaderEpoch, NodeId, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicId, TopicPartition,
};
