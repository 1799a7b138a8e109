//! Messages of Kafka 4.4 that crate kafka-protocol does not know at their newest version: where a version added fields
//! we define the message ourselves, with the `message!` macro; where it changed only a meaning, it is the crate's, read
//! and written at its own newest version. Field names are those of Kafka's JSON schemas, in snake case.

#[macro_use]
mod definition;
mod field;

pub mod api_versions;
pub mod delete_groups;
pub mod describe_log_dirs;
pub mod offset_commit;
pub mod offset_fetch;

#[cfg(test)]
mod tests;

use kafka_protocol::messages;

use super::clamped::Clamped;

pub use api_versions::ApiVersionsRequest;
pub use delete_groups::DeleteGroupsResponse;
pub use describe_log_dirs::DescribeLogDirsResponse;
pub use field::FieldError;
pub use offset_commit::{OffsetCommitRequest, OffsetCommitResponse};
pub use offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};

/// The answer to ApiVersions up to version 5, whose layout is that of version 4.
pub type ApiVersionsResponse = Clamped<messages::ApiVersionsResponse, 4>;
/// ListOffsets up to version 11, which adds the special timestamp -6 (KIP-1023).
pub type ListOffsetsRequest = Clamped<messages::ListOffsetsRequest, 10>;
/// The answer to it, whose layout is that of version 10.
pub type ListOffsetsResponse = Clamped<messages::ListOffsetsResponse, 10>;
/// DeleteGroups up to version 3, which adds a message to the answer only.
pub type DeleteGroupsRequest = Clamped<messages::DeleteGroupsRequest, 2>;
/// DescribeLogDirs up to version 5, which adds a field to the answer only.
pub type DescribeLogDirsRequest = Clamped<messages::DescribeLogDirsRequest, 4>;
