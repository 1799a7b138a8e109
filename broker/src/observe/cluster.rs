//! Series of the cluster and of the partitions that this node holds: the names of Kafka's ReplicaManager, Partition, Log and
//! KafkaController, and those of kafka_exporter. Computed at a scrape from the metadata image and from the partitions'
//! published views. Series of a partition come from its leader, those of the cluster from the active controller, so that a
//! sum over all nodes counts everything once.

use std::collections::HashMap;
use std::sync::Arc;

use base::{NodeId, Offset, PartitionIndex};
use cluster::image::{MetadataImage, PartitionImage, TopicImage};

use super::family::{Families, Source};

/// What a scrape reads of one partition that this node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Name of its topic.
    pub topic: Arc<str>,
    /// Its index.
    pub partition: PartitionIndex,
    /// First offset that can be read.
    pub log_start_offset: Offset,
    /// Offset of the next record.
    pub log_end_offset: Offset,
    /// Offset up to which consumers read.
    pub high_watermark: Offset,
    /// Bytes of its segments.
    pub size_bytes: u64,
    /// Number of its segments.
    pub segments: usize,
    /// Producers whose state it keeps.
    pub producers: usize,
}

/// Finest series that are shown (`monedula.metrics.topic.granularity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Granularity {
    /// Of the broker.
    None,
    /// Of topics.
    Topic,
    /// Of partitions.
    Partition,
}

impl Granularity {
    /// The value of the setting; anything unknown is the finest, which the check of the settings has made sure of.
    pub fn of(setting: &str) -> Granularity {
        match setting {
            "none" => Granularity::None,
            "topic" => Granularity::Topic,
            _ => Granularity::Partition,
        }
    }
}

/// Reads the metadata as it is now.
pub type ReadImage = Box<dyn Fn() -> Arc<MetadataImage> + Send + Sync>;
/// Reads the views of the partitions that this node holds.
pub type ReadPartitions = Box<dyn Fn() -> Vec<PartitionView> + Send + Sync>;

/// The series of the cluster as this node sees it.
pub struct ClusterSource {
    /// This node.
    pub node_id: NodeId,
    /// The metadata.
    pub image: ReadImage,
    /// The partitions that this node holds.
    pub partitions: ReadPartitions,
    /// Number of partitions of this node whose log cannot be used.
    pub offline_partitions: Box<dyn Fn() -> usize + Send + Sync>,
    /// Whether this node is the active controller.
    pub is_active_controller: Box<dyn Fn() -> bool + Send + Sync>,
    /// `min.insync.replicas` of topics that do not set it.
    pub min_insync_replicas_default: usize,
    /// Finest series that are shown.
    pub granularity: Granularity,
}

impl Source for ClusterSource {
    fn collect(&self, families: &mut Families) {
        let image = (self.image)();
        let views = (self.partitions)();
        self.replica_manager(&image, &views, families);
        isr_changes(families);
        if self.granularity == Granularity::Partition {
            self.logs(&views, families);
            self.led_partitions(&image, &views, families);
        }
        self.controller(&image, families);
    }
}

/// State of a partition's replicas.
struct Replication {
    under_replicated: bool,
    under_min_isr: bool,
    at_min_isr: bool,
}

impl ClusterSource {
    fn replication(&self, image: &MetadataImage, topic: &TopicImage, partition: &PartitionImage) -> Replication {
        let set = image.topic_configs(&topic.name).get("min.insync.replicas").and_then(|text| text.parse().ok());
        // A topic with fewer replicas than the setting demands all of them (Kafka: effectiveMinIsr).
        let min_isr = set.unwrap_or(self.min_insync_replicas_default).min(partition.replicas().len());
        let isr = partition.isr().len();
        Replication {
            under_replicated: isr < partition.replicas().len(),
            under_min_isr: isr < min_isr,
            at_min_isr: isr == min_isr,
        }
    }

    fn replica_manager(&self, image: &MetadataImage, views: &[PartitionView], families: &mut Families) {
        let led: Vec<_> = all_partitions(image).filter(|(_, _, partition)| partition.leader == self.node_id).collect();
        let count = |wanted: &dyn Fn(&Replication) -> bool| {
            led.iter().filter(|(topic, _, partition)| wanted(&self.replication(image, topic, partition))).count()
        };
        let reassigning = led.iter().filter(|(_, _, partition)| is_reassigning(partition)).count();
        for (name, help, value) in [
            ("kafka_server_replicamanager_leadercount", "Partitions that this node leads", led.len()),
            ("kafka_server_replicamanager_partitioncount", "Partitions that this node holds", views.len()),
            (
                "kafka_server_replicamanager_underreplicatedpartitions",
                "Led partitions with replicas out of sync",
                count(&|r| r.under_replicated),
            ),
            (
                "kafka_server_replicamanager_underminisrpartitioncount",
                "Led partitions that refuse acks=all",
                count(&|r| r.under_min_isr),
            ),
            (
                "kafka_server_replicamanager_atminisrpartitioncount",
                "Led partitions that can lose no more replica",
                count(&|r| r.at_min_isr),
            ),
            (
                "kafka_server_replicamanager_offlinereplicacount",
                "Partitions of this node whose log cannot be used",
                (self.offline_partitions)(),
            ),
            (
                "kafka_server_replicamanager_reassigningpartitions",
                "Led partitions whose replicas are being moved",
                reassigning,
            ),
            (
                "kafka_server_replicamanager_produceridcount",
                "Producers whose state the partitions of this node keep",
                views.iter().map(|view| view.producers).sum(),
            ),
        ] {
            families.gauge(name, help).row(&[], value as f64);
        }
    }

    fn logs(&self, views: &[PartitionView], families: &mut Families) {
        for view in views {
            let partition = view.partition.to_string();
            let labels = [("topic", &*view.topic), ("partition", &*partition)];
            for (name, help, value) in [
                ("kafka_log_log_size", "Bytes of the log", view.size_bytes as f64),
                ("kafka_log_log_numlogsegments", "Segments of the log", view.segments as f64),
                ("kafka_log_log_logstartoffset", "First offset that can be read", view.log_start_offset as f64),
                ("kafka_log_log_logendoffset", "Offset of the next record", view.log_end_offset as f64),
            ] {
                families.gauge(name, help).row(&labels, value);
            }
        }
    }

    fn led_partitions(&self, image: &MetadataImage, views: &[PartitionView], families: &mut Families) {
        let views: HashMap<_, _> = views.iter().map(|view| ((&*view.topic, view.partition), view)).collect();
        for (topic, index, partition) in all_partitions(image) {
            if partition.leader != self.node_id {
                continue;
            }
            let state = self.replication(image, topic, partition);
            let text = index.to_string();
            let labels = [("topic", &*topic.name), ("partition", &*text)];
            let is = |yes: bool| f64::from(u8::from(yes));
            let preferred = partition.replicas().first() == Some(&partition.leader);
            let (replicas, isr) = (partition.replicas().len() as f64, partition.isr().len() as f64);
            for (name, help, value) in [
                (
                    "kafka_cluster_partition_underreplicated",
                    "1 if replicas are out of sync",
                    is(state.under_replicated),
                ),
                ("kafka_cluster_partition_underminisr", "1 if acks=all is refused", is(state.under_min_isr)),
                ("kafka_cluster_partition_atminisr", "1 if no more replica may be lost", is(state.at_min_isr)),
                ("kafka_cluster_partition_replicascount", "Assigned replicas", replicas),
                ("kafka_cluster_partition_insyncreplicascount", "Replicas in sync", isr),
                ("kafka_topic_partition_replicas", "Assigned replicas", replicas),
                ("kafka_topic_partition_in_sync_replica", "Replicas in sync", isr),
                ("kafka_topic_partition_leader", "Node id of the leader", f64::from(partition.leader.0)),
                ("kafka_topic_partition_leader_is_preferred", "1 if the first replica leads", is(preferred)),
                (
                    "kafka_topic_partition_under_replicated_partition",
                    "1 if replicas are out of sync",
                    is(state.under_replicated),
                ),
            ] {
                families.gauge(name, help).row(&labels, value);
            }
            if let Some(view) = views.get(&(&*topic.name, index)) {
                for (name, help, offset) in [
                    ("kafka_topic_partition_current_offset", "Offset up to which consumers read", view.high_watermark),
                    ("kafka_topic_partition_oldest_offset", "First offset that can be read", view.log_start_offset),
                ] {
                    families.gauge(name, help).row(&labels, offset as f64);
                }
            }
        }
    }

    fn controller(&self, image: &MetadataImage, families: &mut Families) {
        let active = (self.is_active_controller)();
        let name = "kafka_controller_kafkacontroller_activecontrollercount";
        families.gauge(name, "1 on the active controller").row(&[], f64::from(u8::from(active)));
        families
            .gauge(
                "kafka_controller_kafkacontroller_lastappliedrecordoffset",
                "Offset of the last metadata record applied",
            )
            .row(&[], image.offset as f64);
        if !active {
            return;
        }
        families
            .gauge(
                "kafka_controller_kafkacontroller_lastappliedrecordlagms",
                "Milliseconds that the applied metadata is behind; 0 on the active controller",
            )
            .row(&[], 0.0);
        families
            .counter("kafka_controller_controllerstats_uncleanleaderelections_total", "Leaders that were not in sync")
            .row(&[], 0.0);
        let partitions = || all_partitions(image).map(|(_, _, partition)| partition);
        let unfenced = image.brokers().filter(|broker| !broker.fenced).count();
        for (name, help, value) in [
            ("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster", image.topic_count()),
            (
                "kafka_controller_kafkacontroller_globalpartitioncount",
                "Partitions of the cluster",
                partitions().count(),
            ),
            (
                "kafka_controller_kafkacontroller_offlinepartitionscount",
                "Partitions without leader",
                partitions().filter(|p| p.leader.0 < 0).count(),
            ),
            (
                "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
                "Partitions that another than the first replica leads",
                partitions().filter(|p| p.replicas().first() != Some(&p.leader)).count(),
            ),
            ("kafka_controller_kafkacontroller_activebrokercount", "Brokers that serve", unfenced),
            (
                "kafka_controller_kafkacontroller_fencedbrokercount",
                "Brokers that are registered and do not serve",
                image.brokers().count() - unfenced,
            ),
        ] {
            families.gauge(name, help).row(&[], value as f64);
        }
        families.gauge("kafka_brokers", "Brokers that serve").row(&[], unfenced as f64);
        broker_addresses(image, families);
        if self.granularity >= Granularity::Topic {
            for topic in image.topics() {
                families
                    .gauge("kafka_topic_partitions", "Partitions of the topic")
                    .row(&[("topic", &topic.name)], topic.partitions().len() as f64);
            }
        }
    }
}

/// A partition of one replica has nobody to leave its in-sync replicas or to come back to them, so that these stay zero.
fn isr_changes(families: &mut Families) {
    for (name, help) in [
        ("kafka_server_replicamanager_isrshrinks_total", "Times that in-sync replicas became fewer"),
        ("kafka_server_replicamanager_isrexpands_total", "Times that in-sync replicas became more"),
        ("kafka_server_replicamanager_failedisrupdates_total", "Changes of in-sync replicas that were refused"),
    ] {
        families.counter(name, help).row(&[], 0.0);
    }
}

fn broker_addresses(image: &MetadataImage, families: &mut Families) {
    for broker in image.brokers() {
        let id = broker.id.to_string();
        for endpoint in broker.endpoints.iter().take(1) {
            let address = format!("{}:{}", endpoint.host, endpoint.port);
            families
                .gauge("kafka_broker_info", "First address of the broker")
                .row(&[("id", &id), ("address", &address)], 1.0);
        }
    }
}

fn all_partitions(image: &MetadataImage) -> impl Iterator<Item = (&Arc<TopicImage>, PartitionIndex, &PartitionImage)> {
    image.topics().flat_map(|topic| {
        topic.partitions().iter().enumerate().map(move |(index, partition)| (topic, index as PartitionIndex, partition))
    })
}

fn is_reassigning(partition: &PartitionImage) -> bool {
    !partition.sets().adding_replicas.is_empty() || !partition.sets().removing_replicas.is_empty()
}
