//! Settings as the parts of the node take them: typed, with the unit in the name. Read once at start; a setting that can
//! change at run time is read again through `BrokerLayers`.

use std::path::PathBuf;

use base::NodeId;
use cluster::configs::rule::voter;
use cluster::configs::{BrokerLayers, Value};

use super::settings::Settings;

/// Bytes of requests in memory, all connections together, when `queued.max.request.bytes` is -1. Kafka has no bound then;
/// one is needed so that many honest connections cannot use up the memory.
pub const QUEUED_REQUEST_BYTES_DEFAULT: i64 = 256 * 1024 * 1024;

/// Connections and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetConfig {
    /// `socket.request.max.bytes`.
    pub request_bytes_max: i32,
    /// `queued.max.request.bytes`, or the built-in budget.
    pub queued_request_bytes_max: i64,
    /// `connections.max.idle.ms`; negative for never.
    pub connection_idle_max_ms: i64,
    /// `fetch.max.bytes`.
    pub fetch_bytes_max: i32,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_sessions_max: i32,
}

/// Directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageConfig {
    /// `log.dirs`, or else `log.dir`.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, or else the first of `log_dirs`.
    pub metadata_log_dir: PathBuf,
    /// `monedula.storage.auto.format`.
    pub auto_format: bool,
}

impl StorageConfig {
    /// Every directory that holds data, each once, the metadata log's among them.
    pub fn all_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.log_dirs.clone();
        if !dirs.contains(&self.metadata_log_dir) {
            dirs.push(self.metadata_log_dir.clone());
        }
        dirs
    }
}

/// Making and deleting topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicsConfig {
    /// `auto.create.topics.enable`.
    pub auto_create: bool,
    /// `delete.topic.enable`.
    pub delete_enable: bool,
    /// `num.partitions`.
    pub partitions: i32,
    /// `default.replication.factor`.
    pub replication_factor: i16,
}

/// Care for the logs of all topics; what a topic can set itself is in `cluster::configs::TopicConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogsConfig {
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval_ms: i64,
    /// `log.flush.scheduler.interval.ms`.
    pub flush_check_interval_ms: i64,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub recovery_point_checkpoint_interval_ms: i32,
    /// `log.flush.start.offset.checkpoint.interval.ms`.
    pub start_offset_checkpoint_interval_ms: i32,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval_ms: i64,
    /// `monedula.scrub.bytes.per.second`; 0 for no scrub.
    pub scrub_bytes_per_second: i64,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i32,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_expiration_check_interval_ms: i32,
}

/// Compaction, as far as it is no matter of single topics (Kafka: CleanerConfig).
#[derive(Debug, Clone, PartialEq)]
pub struct CleanerConfig {
    /// `log.cleaner.enable`.
    pub enable: bool,
    /// `log.cleaner.threads`: logs that are cleaned at a time.
    pub threads: usize,
    /// `log.cleaner.dedupe.buffer.size`: memory of all cleanings together, in bytes.
    pub dedupe_buffer_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`.
    pub buffer_load_factor: f64,
    /// `log.cleaner.io.max.bytes.per.second`.
    pub io_bytes_per_second_max: f64,
    /// `log.cleaner.backoff.ms`.
    pub backoff_ms: u64,
}

/// Groups and their offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsConfig {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max_ms: i32,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`.
    pub members_max: i32,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_bytes_max: i32,
    /// `offsets.commit.timeout.ms`.
    pub commit_timeout_ms: i32,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval_ms: i64,
}

/// An internal topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalTopicConfig {
    /// Partitions.
    pub partitions: i32,
    /// Replicas.
    pub replication_factor: i16,
    /// Segment size in bytes.
    pub segment_bytes: i32,
    /// Replicas in sync that a write needs; `None` leaves it to the topic.
    pub min_insync_replicas: Option<i32>,
}

/// The metadata log and the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataConfig {
    /// `metadata.log.segment.bytes`, or `internal.metadata.log.segment.bytes`.
    pub segment_bytes: i32,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// `metadata.max.retention.bytes`.
    pub retention_bytes: i64,
    /// `metadata.max.retention.ms`.
    pub retention_ms: i64,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub bytes_between_snapshots: i64,
    /// `metadata.log.max.snapshot.interval.ms`.
    pub snapshot_interval_max_ms: i64,
    /// `controller.quorum.voters`.
    pub voters: Vec<Voter>,
}

/// A controller of the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Its `node.id`.
    pub id: NodeId,
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Reads typed values. The zero that stands in for a missing one is never seen: a test builds every section from the
/// catalogue alone and looks at what has no default.
struct Reader<'a>(BrokerLayers<'a>);

impl Reader<'_> {
    fn long(&self, name: &str) -> i64 {
        self.0.number(name).unwrap_or_default()
    }

    /// The catalogue holds INT and SHORT values within their bounds.
    fn int(&self, name: &str) -> i32 {
        i32::try_from(self.long(name)).unwrap_or(i32::MAX)
    }

    fn short(&self, name: &str) -> i16 {
        i16::try_from(self.long(name)).unwrap_or(i16::MAX)
    }

    fn double(&self, name: &str) -> f64 {
        self.0.double(name).unwrap_or_default()
    }

    fn boolean(&self, name: &str) -> bool {
        self.0.boolean(name)
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.0.list(name)
    }
}

impl NetConfig {
    /// From the effective settings of a broker.
    pub fn read(layers: BrokerLayers<'_>) -> NetConfig {
        let reader = Reader(layers);
        let queued = reader.long("queued.max.request.bytes");
        NetConfig {
            request_bytes_max: reader.int("socket.request.max.bytes"),
            queued_request_bytes_max: if queued > 0 { queued } else { QUEUED_REQUEST_BYTES_DEFAULT },
            connection_idle_max_ms: reader.long("connections.max.idle.ms"),
            fetch_bytes_max: reader.int("fetch.max.bytes"),
            fetch_sessions_max: reader.int("max.incremental.fetch.session.cache.slots"),
        }
    }
}

impl StorageConfig {
    pub(super) fn read(settings: &Settings) -> StorageConfig {
        let layers = settings.layers();
        let reader = Reader(layers);
        let mut log_dirs: Vec<PathBuf> = reader.list("log.dirs").into_iter().map(PathBuf::from).collect();
        if log_dirs.is_empty() {
            log_dirs = reader.list("log.dir").into_iter().map(PathBuf::from).collect();
        }
        let metadata = layers.text("metadata.log.dir").map(PathBuf::from);
        let metadata_log_dir = metadata.or_else(|| log_dirs.first().cloned()).unwrap_or_default();
        StorageConfig { log_dirs, metadata_log_dir, auto_format: reader.boolean("monedula.storage.auto.format") }
    }
}

impl TopicsConfig {
    /// From the effective settings of a broker.
    pub fn read(layers: BrokerLayers<'_>) -> TopicsConfig {
        let reader = Reader(layers);
        TopicsConfig {
            auto_create: reader.boolean("auto.create.topics.enable"),
            delete_enable: reader.boolean("delete.topic.enable"),
            partitions: reader.int("num.partitions"),
            replication_factor: reader.short("default.replication.factor"),
        }
    }
}

impl LogsConfig {
    /// From the effective settings of a broker.
    pub fn read(layers: BrokerLayers<'_>) -> LogsConfig {
        let reader = Reader(layers);
        LogsConfig {
            retention_check_interval_ms: reader.long("log.retention.check.interval.ms"),
            flush_check_interval_ms: reader.long("log.flush.scheduler.interval.ms"),
            recovery_point_checkpoint_interval_ms: reader.int("log.flush.offset.checkpoint.interval.ms"),
            start_offset_checkpoint_interval_ms: reader.int("log.flush.start.offset.checkpoint.interval.ms"),
            high_watermark_checkpoint_interval_ms: reader.long("replica.high.watermark.checkpoint.interval.ms"),
            scrub_bytes_per_second: reader.long("monedula.scrub.bytes.per.second"),
            producer_id_expiration_ms: reader.int("producer.id.expiration.ms"),
            producer_id_expiration_check_interval_ms: reader.int("producer.id.expiration.check.interval.ms"),
        }
    }
}

impl CleanerConfig {
    /// From the effective settings of a broker.
    pub fn read(layers: BrokerLayers<'_>) -> CleanerConfig {
        let reader = Reader(layers);
        let size = |name| usize::try_from(reader.long(name)).unwrap_or(0);
        CleanerConfig {
            enable: reader.boolean("log.cleaner.enable"),
            threads: size("log.cleaner.threads"),
            dedupe_buffer_bytes: size("log.cleaner.dedupe.buffer.size"),
            buffer_load_factor: reader.double("log.cleaner.io.buffer.load.factor"),
            io_bytes_per_second_max: reader.double("log.cleaner.io.max.bytes.per.second"),
            backoff_ms: u64::try_from(reader.long("log.cleaner.backoff.ms")).unwrap_or(0),
        }
    }
}

impl GroupsConfig {
    /// From the effective settings of a broker.
    pub fn read(layers: BrokerLayers<'_>) -> GroupsConfig {
        let reader = Reader(layers);
        GroupsConfig {
            session_timeout_min_ms: reader.int("group.min.session.timeout.ms"),
            session_timeout_max_ms: reader.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms: reader.int("group.initial.rebalance.delay.ms"),
            members_max: reader.int("group.max.size"),
            offset_metadata_bytes_max: reader.int("offset.metadata.max.bytes"),
            commit_timeout_ms: reader.int("offsets.commit.timeout.ms"),
            offsets_retention_ms: reader.long("offsets.retention.minutes").saturating_mul(60_000),
            offsets_retention_check_interval_ms: reader.long("offsets.retention.check.interval.ms"),
        }
    }
}

impl InternalTopicConfig {
    /// `offsets.topic.*`.
    pub fn offsets(layers: BrokerLayers<'_>) -> InternalTopicConfig {
        let reader = Reader(layers);
        InternalTopicConfig {
            partitions: reader.int("offsets.topic.num.partitions"),
            replication_factor: reader.short("offsets.topic.replication.factor"),
            segment_bytes: reader.int("offsets.topic.segment.bytes"),
            min_insync_replicas: None,
        }
    }

    /// `transaction.state.log.*`.
    pub fn transactions(layers: BrokerLayers<'_>) -> InternalTopicConfig {
        let reader = Reader(layers);
        InternalTopicConfig {
            partitions: reader.int("transaction.state.log.num.partitions"),
            replication_factor: reader.short("transaction.state.log.replication.factor"),
            segment_bytes: reader.int("transaction.state.log.segment.bytes"),
            min_insync_replicas: Some(reader.int("transaction.state.log.min.isr")),
        }
    }
}

impl MetadataConfig {
    pub(super) fn read(settings: &Settings) -> MetadataConfig {
        let layers = settings.layers();
        let reader = Reader(layers);
        let for_tests =
            layers.value("internal.metadata.log.segment.bytes").is_some_and(|v| matches!(v, Value::Number(_)));
        let segment = if for_tests { "internal.metadata.log.segment.bytes" } else { "metadata.log.segment.bytes" };
        let owned = |entry: &String| voter(entry).map(|(id, host, port)| (id, host.to_owned(), port));
        let voters = reader.list("controller.quorum.voters").iter().filter_map(owned).collect::<Vec<_>>();
        MetadataConfig {
            segment_bytes: reader.int(segment),
            segment_ms: reader.long("metadata.log.segment.ms"),
            retention_bytes: reader.long("metadata.max.retention.bytes"),
            retention_ms: reader.long("metadata.max.retention.ms"),
            bytes_between_snapshots: reader.long("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_interval_max_ms: reader.long("metadata.log.max.snapshot.interval.ms"),
            voters: voters.into_iter().map(|(id, host, port)| Voter { id: NodeId(id), host, port }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_every_section_has_kafkas_defaults() {
        let settings = Settings::default();
        let layers = settings.layers();
        let text = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            NetConfig::read(layers),
            CleanerConfig::read(layers),
            TopicsConfig::read(layers),
            LogsConfig::read(layers),
            GroupsConfig::read(layers),
            InternalTopicConfig::offsets(layers),
            InternalTopicConfig::transactions(layers),
            MetadataConfig::read(&settings),
        );
        // A misspelt name reads as zero or false.
        let zeros: Vec<&str> =
            text.split([',', '{']).filter(|field| field.trim_end_matches([' ', '}']).ends_with(": 0")).collect();
        assert!(zeros.is_empty(), "{zeros:?}");
        assert!(!text.contains("false"), "{text}");
        assert_eq!(NetConfig::read(layers).request_bytes_max, 104_857_600);
        assert_eq!(GroupsConfig::read(layers).offsets_retention_ms, 7 * 24 * 3_600_000);
    }
}
