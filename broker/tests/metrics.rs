//! Every name that this version fills stands in one scrape of a node with a topic, a group and a request, with the labels
//! that dashboards select by.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::time::Duration;

use base::{ManualClock, NodeId, TopicId};
use cluster::Record;
use cluster::image::{MetadataDelta, MetadataImage};
use cluster::records::{Endpoint, PartitionRecord, RegisterBrokerRecord, TopicRecord};
use monedula::observe::cleaner::{CleanerSource, CleanerView, UncleanableView};
use monedula::observe::cluster::{ClusterSource, Granularity, PartitionView};
use monedula::observe::disks::{DiskSource, DiskView};
use monedula::observe::groups::{CommittedView, GroupSource, GroupView};
use monedula::observe::quorum::{QuorumSource, QuorumView};
use monedula::observe::threads::{ThreadSource, WorkerTimes};
use monedula::observe::{BrokerState, Health, Metrics, TopicCounter, Wait};

const ONE: NodeId = NodeId(1);

fn image() -> MetadataImage {
    let topic_id = TopicId(uuid::Uuid::from_u128(7));
    let endpoint = Endpoint { name: "PLAINTEXT".to_owned(), host: "here".to_owned(), port: 9092, security_protocol: 0 };
    let mut records: Vec<Record> = vec![
        RegisterBrokerRecord { broker_id: ONE, end_points: vec![endpoint], fenced: false, ..Default::default() }.into(),
        RegisterBrokerRecord { broker_id: NodeId(2), fenced: true, ..Default::default() }.into(),
        TopicRecord { name: "orders".to_owned(), topic_id }.into(),
    ];
    for (partition_id, isr, leader) in [(0, vec![ONE], ONE), (1, vec![ONE], ONE), (2, vec![], NodeId(-1))] {
        let replicas = if partition_id == 1 { vec![NodeId(2), ONE] } else { vec![ONE] };
        records.push(PartitionRecord { partition_id, topic_id, replicas, isr, leader, ..Default::default() }.into());
    }
    let mut image = MetadataImage::empty();
    let mut delta = MetadataDelta::default();
    records.iter().for_each(|record| image.replay(record, &mut delta).unwrap());
    image
}

fn partitions() -> Vec<PartitionView> {
    let view = |partition, high_watermark| PartitionView {
        topic: "orders".into(),
        partition,
        log_start_offset: 3,
        log_end_offset: 12,
        high_watermark,
        size_bytes: 4096,
        segments: 2,
        producers: 4,
    };
    vec![view(0, 12), view(1, 10)]
}

fn groups() -> Vec<GroupView> {
    let unread_since_ms = Some(1_500);
    let committed =
        |topic: &str, partition, offset| CommittedView { topic: topic.into(), partition, offset, unread_since_ms };
    let offsets = vec![committed("orders", 0, 7), committed("orders", 1, 11), committed("elsewhere", 0, 5)];
    vec![GroupView { group: "billing".into(), members: 3, offsets }]
}

fn quorum() -> QuorumView {
    QuorumView {
        state: "leader",
        epoch: 3,
        leader: Some(ONE),
        vote: Some(ONE),
        high_watermark: 40,
        log_end_offset: 41,
        commits: 9,
        commit_micros: 9_000,
        failed: false,
    }
}

fn cleaner() -> CleanerView {
    CleanerView {
        map_filled_max: 0.125,
        recopied: 0.5,
        clean_seconds_max: 2.5,
        compaction_delay_seconds_max: 4.9,
        dirty_max: 0.75,
        since_last_run_ms: 80,
        directories: vec![UncleanableView { directory: "data".to_owned(), partitions: 1, bytes: 900 }],
    }
}

fn scrape(granularity: Granularity, is_active_controller: bool) -> String {
    let clock = Arc::new(ManualClock::at(4_000));
    let metrics = Metrics::new(clock.clone());
    let image = Arc::new(image());
    metrics.add_source(ClusterSource {
        node_id: ONE,
        image: Box::new(move || image.clone()),
        partitions: Box::new(partitions),
        offline_partitions: Box::new(|| 1),
        is_active_controller: Box::new(move || is_active_controller),
        min_insync_replicas_default: 1,
        granularity,
    });
    metrics.add_source(GroupSource {
        groups: Box::new(groups),
        partitions: Box::new(partitions),
        granularity,
        clock: clock.clone(),
    });
    metrics.add_source(CleanerSource { read: Box::new(cleaner) });
    metrics.add_source(QuorumSource::new(clock.clone(), quorum));
    metrics.add_source(ThreadSource::new(clock.clone(), || WorkerTimes { busy: Duration::ZERO, workers: 2 }));
    metrics.flushes().record(Duration::from_millis(5));
    let _fetch = metrics.wait(Wait::Fetch);
    let mut queued = metrics.queued_requests();
    queued.set(2);
    let disk = || DiskView { directory: "data".to_owned(), total_bytes: 100, free_bytes: 40 };
    metrics.add_source(DiskSource { read: Box::new(move || vec![disk()]), directories: 2 });
    let _open = metrics.connection_opened(&"PLAINTEXT".into());
    drop(metrics.connection_opened(&"PLAINTEXT".into()));
    let health = Arc::new(Health::default());
    health.set(BrokerState::Running);
    metrics.add_source(health);
    metrics.set_granularity(granularity);
    metrics.topic("orders").add(TopicCounter::BytesIn, 9);
    let index = monedula::api::entry(18).unwrap().0;
    let mut timer = metrics.request_began(index, 4, 10, Duration::ZERO);
    timer.handled(20, Duration::ZERO);
    timer.sent(Duration::ZERO, Duration::ZERO);
    metrics.answered_with(index, 0);
    metrics.scrape().unwrap()
}

/// Lines as they must stand in the scrape, or names of which any line will do.
const EXPECTED: &str = r#"
kafka_server_brokertopicmetrics_messagesin_total{topic=""} 0
kafka_server_brokertopicmetrics_bytesin_total{topic=""} 9
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 9
kafka_server_brokertopicmetrics_bytesout_total
kafka_server_brokertopicmetrics_bytesrejected_total
kafka_server_brokertopicmetrics_totalproducerequests_total
kafka_server_brokertopicmetrics_failedproducerequests_total
kafka_server_brokertopicmetrics_totalfetchrequests_total
kafka_server_brokertopicmetrics_failedfetchrequests_total
kafka_server_brokertopicmetrics_replicationbytesin_total
kafka_server_brokertopicmetrics_replicationbytesout_total
kafka_server_brokertopicmetrics_reassignmentbytesin_total
kafka_server_brokertopicmetrics_reassignmentbytesout_total
kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total
kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total
kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total
kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total
kafka_server_replicamanager_leadercount 2
kafka_server_replicamanager_partitioncount 2
kafka_server_replicamanager_underreplicatedpartitions 1
kafka_server_replicamanager_underminisrpartitioncount 0
kafka_server_replicamanager_atminisrpartitioncount 2
kafka_server_replicamanager_reassigningpartitions 0
kafka_server_replicamanager_offlinereplicacount 1
kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"} 1
kafka_log_logmanager_offlinelogdirectorycount 1
kafka_log_logcleaner_max_buffer_utilization_percent 12
kafka_log_logcleaner_cleaner_recopy_percent 50
kafka_log_logcleaner_max_clean_time_secs 2
kafka_log_logcleaner_max_compaction_delay_secs 4
kafka_log_logcleaner_deadthreadcount 0
kafka_log_logcleanermanager_max_dirty_percent 75
kafka_log_logcleanermanager_time_since_last_run_ms 80
kafka_log_logcleanermanager_uncleanable_partitions_count{logDirectory="data"} 1
kafka_log_logcleanermanager_uncleanable_bytes{logDirectory="data"} 900
monedula_scrub_bytes_total 0
monedula_scrub_damaged_batches_total 0
monedula_scrub_rounds_total 0
monedula_disk_total_bytes{dir="data"} 100
monedula_disk_free_bytes{dir="data"} 40
kafka_cluster_partition_underreplicated{topic="orders",partition="1"} 1
kafka_cluster_partition_underminisr{topic="orders",partition="0"} 0
kafka_cluster_partition_atminisr{topic="orders",partition="0"} 1
kafka_cluster_partition_replicascount{topic="orders",partition="1"} 2
kafka_cluster_partition_insyncreplicascount{topic="orders",partition="1"} 1
kafka_log_log_size{topic="orders",partition="0"} 4096
kafka_log_log_numlogsegments{topic="orders",partition="0"} 2
kafka_log_log_logstartoffset{topic="orders",partition="0"} 3
kafka_log_log_logendoffset{topic="orders",partition="0"} 12
kafka_controller_kafkacontroller_activecontrollercount 1
kafka_controller_kafkacontroller_lastappliedrecordoffset
kafka_controller_kafkacontroller_offlinepartitionscount 1
kafka_controller_kafkacontroller_preferredreplicaimbalancecount 2
kafka_controller_kafkacontroller_globaltopiccount 1
kafka_controller_kafkacontroller_globalpartitioncount 3
kafka_controller_kafkacontroller_activebrokercount 1
kafka_controller_kafkacontroller_fencedbrokercount 1
kafka_network_requestmetrics_requests_total{request="ApiVersions",version="4"} 1
kafka_network_requestmetrics_errors_total{request="ApiVersions",error="NONE"} 1
kafka_network_requestmetrics_totaltimems{request="ApiVersions",quantile="0.50"}
kafka_network_requestmetrics_totaltimems{request="ApiVersions",quantile="0.999"}
kafka_network_requestmetrics_totaltimems_count{request="ApiVersions"} 1
kafka_network_requestmetrics_requestqueuetimems{request="ApiVersions",quantile="0.99"}
kafka_network_requestmetrics_requestqueuetimems_count{request="ApiVersions"} 1
kafka_network_requestmetrics_localtimems{request="ApiVersions",quantile="0.99"}
kafka_network_requestmetrics_localtimems_count{request="ApiVersions"} 1
kafka_network_requestmetrics_responsesendtimems{request="ApiVersions",quantile="0.99"}
kafka_network_requestmetrics_responsesendtimems_count{request="ApiVersions"} 1
kafka_network_requestmetrics_requestbytes_total{request="ApiVersions"} 10
kafka_network_requestmetrics_responsebytes_total{request="ApiVersions"} 20
kafka_network_requestmetrics_remotetimems{request="ApiVersions",quantile="0.99"}
kafka_network_requestmetrics_remotetimems_count{request="ApiVersions"} 1
kafka_network_requestmetrics_responsequeuetimems{request="ApiVersions",quantile="0.99"}
kafka_network_requestmetrics_responsequeuetimems_count{request="ApiVersions"} 1
kafka_network_requestchannel_requestqueuesize 2
kafka_network_socketserver_networkprocessoravgidle_percent 1
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 1
kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Fetch"} 1
kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Produce"} 0
kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Rebalance"} 0
kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Heartbeat"} 3
kafka_server_replicamanager_produceridcount 8
kafka_server_replicamanager_isrshrinks_total 0
kafka_server_replicamanager_isrexpands_total 0
kafka_server_replicamanager_failedisrupdates_total 0
kafka_controller_controllerstats_uncleanleaderelections_total 0
kafka_controller_kafkacontroller_lastappliedrecordlagms 0
kafka_controller_kafkacontroller_metadataerrorcount 0
kafka_server_raftmetrics_current_state{current_state="leader"} 1
kafka_server_raftmetrics_current_leader 1
kafka_server_raftmetrics_current_epoch 3
kafka_server_raftmetrics_current_vote 1
kafka_server_raftmetrics_high_watermark 40
kafka_server_raftmetrics_log_end_offset 41
kafka_server_raftmetrics_append_records_rate
kafka_server_raftmetrics_commit_latency_avg
kafka_log_logflushstats_logflushrateandtimems{quantile="0.99"}
kafka_log_logflushstats_logflushrateandtimems_count 1
kafka_server_kafkaserver_linux_disk_read_bytes
kafka_server_kafkaserver_linux_disk_write_bytes
kafka_server_kafkaserver_brokerstate 3
kafka_brokers 1
kafka_broker_info{id="1",address="here:9092"} 1
kafka_topic_partitions{topic="orders"} 3
kafka_topic_partition_current_offset{topic="orders",partition="1"} 10
kafka_topic_partition_oldest_offset{topic="orders",partition="1"} 3
kafka_topic_partition_in_sync_replica{topic="orders",partition="1"} 1
kafka_topic_partition_leader{topic="orders",partition="1"} 1
kafka_topic_partition_leader_is_preferred{topic="orders",partition="1"} 0
kafka_topic_partition_replicas{topic="orders",partition="1"} 2
kafka_topic_partition_under_replicated_partition{topic="orders",partition="1"} 1
kafka_consumergroup_members{consumergroup="billing"} 3
kafka_consumergroup_current_offset{consumergroup="billing",topic="orders",partition="0"} 7
kafka_consumergroup_current_offset_sum{consumergroup="billing",topic="orders"} 18
kafka_consumergroup_lag{consumergroup="billing",topic="orders",partition="0"} 5
kafka_consumergroup_lag{consumergroup="billing",topic="orders",partition="1"} 0
monedula_consumer_group_lag_seconds{consumergroup="billing",topic="orders",partition="0"} 2.5
monedula_consumer_group_lag_seconds{consumergroup="billing",topic="orders",partition="1"} 0
kafka_consumergroup_lag_sum{consumergroup="billing",topic="orders"} 5
process_cpu_seconds_total
process_open_fds
process_max_fds
process_resident_memory_bytes
monedula_build_info
monedula_request_seconds_sum{api="ApiVersions"}
monedula_request_seconds_count{api="ApiVersions"} 1
monedula_log_dir_recovery_segments_remaining 0
"#;

#[test]
fn every_name_that_dashboards_know_is_in_a_scrape() {
    let text = scrape(Granularity::Partition, true);
    let missing: Vec<&str> =
        EXPECTED.lines().filter(|wanted| !text.lines().any(|line| line.starts_with(*wanted))).collect();
    assert!(missing.is_empty(), "missing: {missing:#?} in\n{text}");
}

#[test]
fn no_name_is_shown_that_the_list_does_not_have() {
    let known = |name: &str| {
        let starts = |line: &str| line.split(['{', ' ']).next() == Some(name);
        EXPECTED.lines().any(starts) || name.starts_with("process_")
    };
    let text = scrape(Granularity::Partition, true);
    for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).filter_map(|rest| rest.split(' ').next()) {
        assert!(known(name), "{name} is not in the list");
    }
}

#[test]
fn a_partition_without_leader_or_a_topic_of_another_node_has_no_series_that_would_count_twice() {
    let text = scrape(Granularity::Partition, true);
    assert!(!text.contains("kafka_topic_partition_leader{topic=\"orders\",partition=\"2\"}"));
    assert!(!text.contains("kafka_consumergroup_lag{consumergroup=\"billing\",topic=\"elsewhere\""));
    assert!(text.contains("kafka_consumergroup_current_offset{consumergroup=\"billing\",topic=\"elsewhere\""));
}

#[test]
fn only_the_active_controller_shows_series_of_the_cluster() {
    let text = scrape(Granularity::Partition, false);
    assert!(text.contains("kafka_controller_kafkacontroller_activecontrollercount 0"));
    for name in ["kafka_brokers", "kafka_topic_partitions", "kafka_controller_kafkacontroller_globaltopiccount"] {
        assert!(!text.contains(&format!("\n{name} ")) && !text.contains(&format!("\n{name}{{")), "{name}");
    }
}

#[test]
fn a_coarser_setting_leaves_the_finer_series_out() {
    let topics = scrape(Granularity::Topic, true);
    assert!(!topics.contains("partition=\""));
    assert!(topics.contains("kafka_consumergroup_lag_sum{") && topics.contains("kafka_topic_partitions{"));
    let node = scrape(Granularity::None, true);
    assert!(!node.contains("kafka_topic_partitions") && !node.contains("kafka_consumergroup_lag"));
    assert!(!node.contains("orders"));
    assert!(node.contains("kafka_server_replicamanager_leadercount 2"));
}
