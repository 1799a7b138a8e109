//! From a topic's effective settings to those of its logs, and to the rules by which records are checked.

use std::sync::Arc;

use cluster::configs::TopicConfig;
use partition_log::LogConfig;

/// Settings of a topic's logs. `producer_id_expiration_ms` is the broker's.
pub(super) fn log_config(topic: &TopicConfig, producer_id_expiration_ms: i64) -> Arc<LogConfig> {
    let size = |bytes: i32| u64::try_from(bytes).unwrap_or(0);
    Arc::new(LogConfig {
        segment_bytes: size(topic.segment_bytes),
        segment_ms: topic.segment_ms,
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: size(topic.segment_index_bytes),
        index_interval_bytes: size(topic.index_interval_bytes),
        retention_ms: topic.retention_ms,
        retention_bytes: topic.retention_bytes,
        file_delete_delay_ms: topic.file_delete_delay_ms,
        flush_messages: topic.flush_messages,
        cleanup_delete: topic.cleanup_delete,
        cleanup_compact: topic.cleanup_compact,
        min_cleanable_dirty_ratio: topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms: topic.min_compaction_lag_ms,
        max_compaction_lag_ms: topic.max_compaction_lag_ms,
        delete_retention_ms: topic.delete_retention_ms,
        producer_id_expiration_ms,
    })
}
