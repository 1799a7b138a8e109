//! The cluster's metadata: records in Kafka's KRaft schemas, the image that they replay into, and the controller that
//! decides which records a request becomes. Pure: no I/O, no clock, no randomness; knows `base` only.

pub mod configs;
pub mod controller;
pub mod image;
pub mod records;
pub mod releases;
mod schema;
pub mod wire;

pub use image::{ConfigMap, ConfigResource, MetadataDelta, MetadataImage, ResourceKind};
pub use records::Record;

/// Id of a log directory (`directory.id` in meta.properties).
pub type DirectoryId = base::TopicId;
