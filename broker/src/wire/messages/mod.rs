//! Messages at versions that crate kafka-protocol does not know. Each reads and writes all versions that are served;
//! the layouts come from the JSON schemas of Kafka 4.4.

pub mod delete_groups;
pub mod offset_commit;
pub mod offset_fetch;
pub mod parts;
