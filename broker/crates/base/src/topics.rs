//! Topics whose names mean something to the cluster (Kafka: org.apache.kafka.common.internals.Topic).

/// Committed offsets and group metadata.
pub const GROUP_METADATA_TOPIC: &str = "__consumer_offsets";
/// Transactions.
pub const TRANSACTION_STATE_TOPIC: &str = "__transaction_state";
/// State of share groups.
pub const SHARE_GROUP_STATE_TOPIC: &str = "__share_group_state";
/// The metadata log, which is not a topic to clients.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

/// True for topics that coordinators write and clients may only read.
pub fn is_internal_topic(name: &str) -> bool {
    [GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC].contains(&name)
}
