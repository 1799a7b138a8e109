//! Settings of a topic: what it sets itself, what it takes from its broker, and the checks before a change
//! (Kafka: LogConfig, AbstractKafkaConfig.extractLogConfigMap, KafkaConfigSchema).

use super::layers::{BrokerLayers, Lookup};
use super::setting::{ConfigKind, Setting, all, find};
use super::value::{InvalidValue, Value};

/// Why settings of a topic are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicConfigError {
    /// Not a setting of a topic.
    #[error("Unknown topic config name: {name}")]
    Unknown {
        /// What was given.
        name: String,
    },
    /// Not a value of the setting.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// The compaction lags contradict each other.
    #[error("conflict topic config setting min.compaction.lag.ms ({min_ms}) > max.compaction.lag.ms ({max_ms})")]
    CompactionLags {
        /// Effective `min.compaction.lag.ms`.
        min_ms: i64,
        /// Effective `max.compaction.lag.ms`.
        max_ms: i64,
    },
    /// A tiered topic on brokers without tiered storage.
    #[error(
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )]
    NoRemoteStorage,
}

/// Codec in which a topic stores its batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// As the producer sent them.
    Producer,
    /// Not compressed.
    Uncompressed,
    /// gzip.
    Gzip,
    /// snappy.
    Snappy,
    /// lz4.
    Lz4,
    /// zstd.
    Zstd,
}

/// Which time a record carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// That of the append.
    LogAppendTime,
}

/// Effective settings of a topic, as its logs need them.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// `segment.bytes`, or `internal.segment.bytes` when a test sets it.
    pub segment_bytes: i32,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: i32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: i32,
    /// `flush.messages`.
    pub flush_messages: i64,
    /// `flush.ms`.
    pub flush_ms: i64,
    /// `retention.bytes`; negative for no limit.
    pub retention_bytes: i64,
    /// `retention.ms`; -1 for no limit.
    pub retention_ms: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// `cleanup.policy` names compact.
    pub cleanup_compact: bool,
    /// `cleanup.policy` names delete.
    pub cleanup_delete: bool,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`, 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `max.message.bytes`.
    pub max_message_bytes: i32,
    /// `max.decompressed.message.bytes`.
    pub max_decompressed_message_bytes: i32,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `min.insync.replicas`.
    pub min_insync_replicas: i32,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election_enable: bool,
    /// `preallocate`.
    pub preallocate: bool,
}

impl TopicConfig {
    /// The settings of a topic that sets `overrides` itself, on a broker with these layers.
    pub fn effective(overrides: &dyn Lookup, broker: &BrokerLayers<'_>) -> TopicConfig {
        let view = View { overrides, broker };
        let policies = view.list("cleanup.policy");
        let segment_bytes = view.int("segment.bytes");
        TopicConfig {
            segment_bytes: view
                .value("internal.segment.bytes")
                .map_or(segment_bytes, |_| view.int("internal.segment.bytes")),
            segment_ms: view.long("segment.ms"),
            segment_jitter_ms: view.long("segment.jitter.ms"),
            segment_index_bytes: view.int("segment.index.bytes"),
            index_interval_bytes: view.int("index.interval.bytes"),
            flush_messages: view.long("flush.messages"),
            flush_ms: view.long("flush.ms"),
            retention_bytes: view.long("retention.bytes"),
            retention_ms: view.long("retention.ms"),
            file_delete_delay_ms: view.long("file.delete.delay.ms"),
            cleanup_compact: policies.iter().any(|policy| policy == "compact"),
            cleanup_delete: policies.iter().any(|policy| policy == "delete"),
            delete_retention_ms: view.long("delete.retention.ms"),
            min_compaction_lag_ms: view.long("min.compaction.lag.ms"),
            max_compaction_lag_ms: view.long("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio: view.double("min.cleanable.dirty.ratio"),
            max_message_bytes: view.int("max.message.bytes"),
            max_decompressed_message_bytes: view.int("max.decompressed.message.bytes"),
            message_timestamp_type: view.timestamp_type(),
            message_timestamp_before_max_ms: view.long("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms: view.long("message.timestamp.after.max.ms"),
            compression_type: view.compression_type(),
            compression_gzip_level: view.int("compression.gzip.level"),
            compression_lz4_level: view.int("compression.lz4.level"),
            compression_zstd_level: view.int("compression.zstd.level"),
            min_insync_replicas: view.int("min.insync.replicas"),
            unclean_leader_election_enable: view.boolean("unclean.leader.election.enable"),
            preallocate: view.boolean("preallocate"),
        }
    }
}

/// Effective value of one topic setting: the topic's own, the first broker synonym that has one, the default.
pub fn effective_value(setting: &Setting, overrides: &dyn Lookup, broker: &BrokerLayers<'_>) -> Option<Value> {
    overrides
        .lookup(setting.name)
        .and_then(|text| setting.parse(text).ok())
        .or_else(|| inherited_value(setting, broker))
}

/// What a topic that does not set `setting` has.
pub fn inherited_value(setting: &Setting, broker: &BrokerLayers<'_>) -> Option<Value> {
    let from_broker = setting.broker_synonyms().find_map(|(name, factor)| match broker.value(name)? {
        // A negative time means "no limit", whatever the unit it is given in (Kafka: logRetentionTimeMillis).
        Value::Number(number) if name.starts_with("log.retention.") && name != "log.retention.bytes" && number < 0 => {
            Some(Value::Number(-1))
        }
        Value::Number(number) => Some(Value::Number(number.saturating_mul(factor))),
        other => Some(other),
    });
    from_broker.or_else(|| setting.default_text().and_then(|text| setting.parse(text).ok()))
}

/// Checks what a topic would set itself after a change. Names come first, then each value, then what must fit together.
pub fn validate(overrides: &dyn Lookup, broker: &BrokerLayers<'_>) -> Result<(), TopicConfigError> {
    let mut first_error = None;
    overrides.each(&mut |name, _| {
        if find(ConfigKind::Topic, name).is_none() && first_error.is_none() {
            first_error = Some(TopicConfigError::Unknown { name: name.to_owned() });
        }
    });
    overrides.each(&mut |name, text| {
        if let (None, Some(setting)) = (&first_error, find(ConfigKind::Topic, name)) {
            first_error = setting.parse(text).err().map(TopicConfigError::Invalid);
        }
    });
    if let Some(error) = first_error {
        return Err(error);
    }
    let view = View { overrides, broker };
    let (min_ms, max_ms) = (view.long("min.compaction.lag.ms"), view.long("max.compaction.lag.ms"));
    if min_ms > max_ms {
        return Err(TopicConfigError::CompactionLags { min_ms, max_ms });
    }
    if view.boolean("remote.storage.enable") && !broker.boolean("remote.log.storage.system.enable") {
        return Err(TopicConfigError::NoRemoteStorage);
    }
    Ok(())
}

/// Names of the settings of a topic that clients may see.
pub fn visible() -> impl Iterator<Item = &'static Setting> {
    all(ConfigKind::Topic).iter().filter(|setting| !setting.internal)
}

struct View<'a> {
    overrides: &'a dyn Lookup,
    broker: &'a BrokerLayers<'a>,
}

impl View<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        effective_value(find(ConfigKind::Topic, name)?, self.overrides, self.broker)
    }

    /// Zero only for a name that the catalogue lacks, which a test excludes.
    fn long(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Number(number)) => number,
            _ => 0,
        }
    }

    fn int(&self, name: &str) -> i32 {
        // The catalogue holds values of type INT to 32 bits, so the bound is never met.
        i32::try_from(self.long(name)).unwrap_or(i32::MAX)
    }

    fn double(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Double(number)) => number,
            _ => 0.0,
        }
    }

    fn boolean(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Boolean(true))
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(entries)) => entries,
            _ => Vec::new(),
        }
    }

    fn text(&self, name: &str) -> String {
        self.value(name).map(|value| value.to_string()).unwrap_or_default()
    }

    fn timestamp_type(&self) -> TimestampType {
        match self.text("message.timestamp.type").as_str() {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        }
    }

    fn compression_type(&self) -> CompressionType {
        match self.text("compression.type").as_str() {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip,
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4,
            "zstd" => CompressionType::Zstd,
            _ => CompressionType::Producer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    fn effective(overrides: &[(&str, &str)], broker: &[(&str, &str)]) -> TopicConfig {
        TopicConfig::effective(&map(overrides), &BrokerLayers::at_start(&map(broker)))
    }

    fn refused(overrides: &[(&str, &str)]) -> String {
        validate(&map(overrides), &BrokerLayers::at_start(&())).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_kafkas() {
        let config = effective(&[], &[]);
        assert_eq!(config.retention_ms, 604_800_000);
        assert_eq!(config.segment_ms, 604_800_000);
        assert_eq!(config.segment_bytes, 1 << 30);
        assert_eq!(config.flush_ms, i64::MAX);
        assert_eq!(config.max_message_bytes, 1_048_588);
        assert_eq!(config.min_cleanable_dirty_ratio, 0.5);
        assert!(config.cleanup_delete && !config.cleanup_compact);
        assert_eq!(config.compression_type, CompressionType::Producer);
    }

    #[test]
    fn milliseconds_beat_minutes_beat_hours_beat_the_default() {
        let hours = ("log.retention.hours", "1");
        assert_eq!(effective(&[], &[hours]).retention_ms, 3_600_000);
        let minutes = ("log.retention.minutes", "2");
        assert_eq!(effective(&[], &[hours, minutes]).retention_ms, 120_000);
        let ms = ("log.retention.ms", "3");
        assert_eq!(effective(&[], &[hours, minutes, ms]).retention_ms, 3);
        assert_eq!(effective(&[("retention.ms", "4")], &[hours, minutes, ms]).retention_ms, 4);
    }

    #[test]
    fn a_negative_retention_in_hours_means_no_limit() {
        assert_eq!(effective(&[], &[("log.retention.hours", "-5")]).retention_ms, -1);
    }

    #[test]
    fn an_empty_cleanup_policy_keeps_everything() {
        let config = effective(&[("cleanup.policy", "")], &[]);
        assert!(!config.cleanup_delete && !config.cleanup_compact);
    }

    #[test]
    fn the_flush_interval_falls_back_to_that_of_the_scheduler() {
        assert_eq!(effective(&[], &[("log.flush.scheduler.interval.ms", "7")]).flush_ms, 7);
        let both = [("log.flush.scheduler.interval.ms", "7"), ("log.flush.interval.ms", "5")];
        assert_eq!(effective(&[], &both).flush_ms, 5);
    }

    #[test]
    fn bl_113_a_key_that_is_not_a_topic_setting_is_named() {
        assert_eq!(refused(&[("replication.factor", "2")]), "Unknown topic config name: replication.factor");
        assert_eq!(
            refused(&[("retention.ms", "abc")]),
            "Invalid value abc for configuration retention.ms: Not a number of type LONG"
        );
    }

    #[test]
    fn bl_152_the_old_message_format_is_no_setting() {
        assert_eq!(
            refused(&[("message.format.version", "0.9.0")]),
            "Unknown topic config name: message.format.version"
        );
    }

    #[test]
    fn lags_that_contradict_each_other_are_refused() {
        assert_eq!(
            refused(&[("min.compaction.lag.ms", "20"), ("max.compaction.lag.ms", "10")]),
            "conflict topic config setting min.compaction.lag.ms (20) > max.compaction.lag.ms (10)"
        );
    }

    #[test]
    fn a_tiered_topic_needs_brokers_with_tiered_storage() {
        assert!(refused(&[("remote.storage.enable", "true")]).starts_with("Tiered Storage functionality is disabled"));
    }

    #[test]
    fn every_setting_of_the_view_is_in_the_catalogue() {
        // Non-zero Kafka defaults prove that the names are spelt right; these are the ones whose default is zero.
        for name in ["segment.jitter.ms", "min.compaction.lag.ms", "preallocate", "internal.segment.bytes"] {
            assert!(find(ConfigKind::Topic, name).is_some(), "{name}");
        }
    }
}
