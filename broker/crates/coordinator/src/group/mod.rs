//! The group coordinator: classic groups of any protocol type and committed offsets, as Kafka's GroupMetadataManager,
//! ClassicGroup and OffsetMetadataManager rule them. One machine owns one partition of `__consumer_offsets`.

mod classic;
pub mod command;
mod config;
mod consumer_protocol;
mod error;
mod machine;
mod offsets;
mod views;

use std::sync::Arc;

pub use classic::State;
pub use command::{Answer, Command};
pub use config::GroupConfig;
pub use error::GroupError;
pub use machine::{GroupMachine, Soft};
pub use views::{GroupSummary, SummaryOffset};

/// `group.id`.
pub type GroupId = Arc<str>;
/// Id of a member, given out by the coordinator; empty when a client has none yet.
pub type MemberId = Arc<str>;
/// `group.instance.id` of a static member.
pub type InstanceId = Arc<str>;
