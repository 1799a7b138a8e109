//! Hosts of coordinators. One owner task per loaded shard (a partition of an internal topic): it gives commands to its
//! machine, appends the records, and hands out the answers when the records are committed. Knows the machines of crate
//! `coordinator` and a log through [`ShardLog`]; knows nothing of sockets or wire messages.

mod append;
mod codes;
mod error;
mod groups;
pub mod hosted;
mod load;
mod log;
mod owner;
mod shard;

#[cfg(test)]
mod testing;

pub use codes::{coordinator_code, group_code, group_code_or_none};
pub use error::CoordinatorError;
pub use groups::{GroupCoordinator, GroupHandle, Leadership};
pub use log::{ShardLog, ShardLogError};
pub use shard::{Asked, Shard, ShardOwnership, ShardStatus, start_shard};
