//! Settings of one log. Names, meanings and defaults are those of Kafka's topic settings (Kafka: TopicConfig, LogConfig).

/// Settings of one log; any may change while it is open.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is closed before it grows past this.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is closed when its first batch is older than this.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to so much is taken off `segment_ms`, another amount for each segment.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: size of an index file at which its segment is closed.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`: log bytes between two entries of an index.
    pub index_interval_bytes: u64,
    /// `retention.ms`: age at which a segment is removed; negative for never.
    pub retention_ms: i64,
    /// `retention.bytes`: size above which the oldest segments are removed; negative for never.
    pub retention_bytes: i64,
    /// `file.delete.delay.ms`: time between the removal of a segment and that of its files.
    pub file_delete_delay_ms: i64,
    /// `flush.messages`: records after which the log asks to be synced.
    pub flush_messages: i64,
    /// True when `cleanup.policy` holds `delete`.
    pub cleanup_delete: bool,
    /// True when `cleanup.policy` holds `compact`.
    pub cleanup_compact: bool,
    /// `min.cleanable.dirty.ratio`: share of bytes that were not cleaned above which a log is compacted.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: age below which a record is not compacted away.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: age above which a record asks to be compacted, whatever the ratio is.
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`: time that tombstones and markers stay after the first cleaning that saw them.
    pub delete_retention_ms: i64,
    /// `producer.id.expiration.ms`: time after which an idle producer is forgotten.
    pub producer_id_expiration_ms: i64,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
            flush_messages: i64::MAX,
            cleanup_delete: true,
            cleanup_compact: false,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: 86_400_000,
            producer_id_expiration_ms: 86_400_000,
        }
    }
}

impl LogConfig {
    /// Age at which a segment is closed (Kafka: LogConfig.maxSegmentMs): records that ask to be compacted must not lie in
    /// the active segment.
    pub(crate) fn roll_ms(&self) -> i64 {
        if self.cleanup_compact && self.max_compaction_lag_ms > 0 {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }
}
