//! Live partitions. Log threads own the logs and are the only ones to change them; the keeper follows the metadata and
//! makes, opens and deletes logs; everybody else holds a [`Partition`], which appends through its thread's queue and
//! reads the published log without asking anybody.

mod appends;
mod checkpoints;
mod cleaner;
mod keeper;
mod live;
mod log_thread;
mod registry;
mod scrub;
mod settings;
mod waiters;

pub use keeper::{Keeper, KeeperSettings, LogDir, MetadataChange};
pub use live::{AppendFailure, Partition, Topic};
pub use log_thread::LogThread;
pub use registry::{LookupError, Partitions, TopicEntry};
pub use scrub::Scrub;
pub use waiters::{Ready, Subscription, Waiter};
