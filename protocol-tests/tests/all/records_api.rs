//! DeleteRecords (21), OffsetForLeaderEpoch (23), DescribeLogDirs (35), DescribeProducers (61), retention. Uses the harness.

use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::PartitionResponse;
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::{
    BrokerId, DeleteRecordsRequest, DescribeLogDirsRequest, DescribeProducersRequest, OffsetForLeaderEpochRequest,
};
use protocol_tests::batch::now_ms;
use protocol_tests::ops::*;
use protocol_tests::primitive::Reader;
use protocol_tests::{Batch, Broker, Client, Record, codes, eventually};

#[test]
fn every_version_of_delete_records_moves_the_log_start() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 10);
    for version in 0..=2 {
        let offset = 3 + i64::from(version);
        let wanted = [(0, offset), (7, 0)]
            .map(|(p, o)| DeleteRecordsPartition::default().with_partition_index(p).with_offset(o));
        let known = DeleteRecordsTopic::default().with_name(topic_name(&topic)).with_partitions(wanted.to_vec());
        let unknown = known.clone().with_name(topic_name("no-such-topic"));
        let request = DeleteRecordsRequest::default().with_topics(vec![known, unknown]).with_timeout_ms(20_000);
        let answer = client.call(version, &request);
        for result in &answer.topics {
            for part in &result.partitions {
                let good = result.name.as_str() == topic && part.partition_index == 0;
                let wanted = if good { (codes::NONE, offset) } else { (codes::UNKNOWN_TOPIC_OR_PARTITION, -1) };
                assert_eq!((part.error_code, part.low_watermark), wanted, "version {version}");
            }
        }
        assert_eq!(list_offset(&mut client, &topic, 0, -2).offset, offset);
    }
}

#[test]
fn bl_115_delete_records_at_or_below_the_start_is_no_error() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 20);
    let cases = [
        (10, codes::NONE, 10),
        (10, codes::NONE, 10),
        (5, codes::NONE, 10),
        (21, codes::OFFSET_OUT_OF_RANGE, -1),
        (-2, codes::OFFSET_OUT_OF_RANGE, -1),
        (-1, codes::NONE, 20),
    ];
    for (offset, code, low) in cases {
        let result = delete_records(&mut client, &topic, 0, offset);
        assert_eq!((result.error_code, result.low_watermark), (code, low), "offset {offset}");
    }
    assert_eq!((end_offset(&mut client, &topic), append(&mut client, &topic, &Batch::of(&["v"]))), (20, 20));
}

#[test]
fn bl_115_a_compacted_topic_refuses_delete_records() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("cleanup.policy", "compact")]);
    append(&mut client, &topic, &Batch::new(vec![Record::value("v").key("k")]));
    assert_eq!(delete_records(&mut client, &topic, 0, 1).error_code, codes::POLICY_VIOLATION);
    let both = fresh_topic(&mut client, &[("cleanup.policy", "compact,delete")]);
    append(&mut client, &both, &Batch::new(vec![Record::value("v").key("k")]));
    assert_eq!(delete_records(&mut client, &both, 0, 1).error_code, codes::NONE);
}

#[test]
fn bl_044_reading_what_retention_removed_is_out_of_range() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("retention.ms", "1000"), ("segment.ms", "1000")]);
    let other = fresh_topic(&mut client, &[]);
    append(&mut client, &other, &Batch::of(&["v"]));
    append(&mut client, &topic, &Batch::new(vec![Record::value("old").at(now_ms() - 60_000)]));
    eventually("retention removes the record", SOON, || {
        (list_offset(&mut client, &topic, 0, -2).offset == 1).then_some(())
    });
    let answer = client.call(12, &fetch_request(&[(&topic, 0, 0), (&other, 0, 0)]));
    let codes_of: Vec<_> = answer.responses.iter().map(|t| (t.topic.to_string(), t.partitions[0].error_code)).collect();
    assert!(
        codes_of.contains(&(topic.clone(), codes::OFFSET_OUT_OF_RANGE)) && codes_of.contains(&(other, codes::NONE))
    );
    assert_eq!(append(&mut client, &topic, &Batch::of(&["new"])), 1);
    assert_eq!(batches(&mut client, &topic, 0, 1)[0].records[0].0, 1, "who starts again at the log start reads on");
}

#[test]
fn retention_by_size_keeps_the_newest_segments() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("retention.bytes", "1500000"), ("segment.bytes", "1048576")]);
    for _ in 0..40 {
        append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 100_000])]));
    }
    let start = eventually("retention removes segments", SOON, || {
        let start = list_offset(&mut client, &topic, 0, -2).offset;
        (start >= 10).then_some(start)
    });
    assert!(start < 40);
    assert_eq!(batches(&mut client, &topic, 0, start)[0].base_offset, start);
}

fn end_of_epoch(
    client: &mut Client,
    version: i16,
    topic: &str,
    partition: i32,
    current: i32,
    asked: i32,
) -> (i16, i32, i64) {
    let part = OffsetForLeaderPartition::default()
        .with_partition(partition)
        .with_current_leader_epoch(current)
        .with_leader_epoch(asked);
    let wanted = OffsetForLeaderTopic::default().with_topic(topic_name(topic)).with_partitions(vec![part]);
    let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![wanted]);
    if version >= 3 {
        request = request.with_replica_id(BrokerId(-1));
    }
    let answer = client.call(version, &request);
    let part = &answer.topics[0].partitions[0];
    (part.error_code, part.leader_epoch, part.end_offset)
}

#[test]
fn every_version_of_offset_for_leader_epoch_gives_the_end_of_the_epoch() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 3);
    for version in 2..=4 {
        assert_eq!(end_of_epoch(&mut client, version, &topic, 0, -1, 0), (codes::NONE, 0, 3));
        assert_eq!(end_of_epoch(&mut client, version, &topic, 0, 0, 0), (codes::NONE, 0, 3));
        assert_eq!(end_of_epoch(&mut client, version, &topic, 0, -1, 9), (codes::NONE, -1, -1), "an epoch to come");
        assert_eq!(end_of_epoch(&mut client, version, &topic, 0, 5, 0).0, codes::UNKNOWN_LEADER_EPOCH);
        assert_eq!(end_of_epoch(&mut client, version, &topic, 4, -1, 0), (codes::UNKNOWN_TOPIC_OR_PARTITION, -1, -1));
        assert_eq!(end_of_epoch(&mut client, version, "no-such-topic", 0, -1, 0).0, codes::UNKNOWN_TOPIC_OR_PARTITION);
    }
}

#[test]
fn every_version_of_describe_log_dirs_tells_the_size() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 5000])]));
    let wanted = DescribableLogDirTopic::default().with_topic(topic_name(&topic)).with_partitions(vec![0]);
    for version in 1..=4 {
        let answer = client.call(version, &DescribeLogDirsRequest::default().with_topics(Some(vec![wanted.clone()])));
        let dir = &answer.results[0];
        assert_eq!((answer.error_code, dir.error_code, answer.results.len()), (codes::NONE, codes::NONE, 1));
        assert_eq!(dir.log_dir.as_str(), broker.dir.join("data").to_str().unwrap());
        let part = &dir.topics[0].partitions[0];
        assert_eq!((part.partition_index, part.offset_lag, part.is_future_key), (0, 0, false));
        assert!(part.partition_size > 5000 && part.partition_size < 6000);
        assert!(version < 4 || (dir.total_bytes > dir.usable_bytes && dir.usable_bytes > 0));
    }
    let all = client.call(4, &DescribeLogDirsRequest::default().with_topics(None));
    assert!(all.results[0].topics.iter().any(|t| t.name.as_str() == topic));
}

#[test]
fn version_5_of_describe_log_dirs_tells_whether_the_directory_is_cordoned() {
    let mut client = Broker::shared().client();
    let answer = client.call_flexible(35, 5, &[1, 0]);
    let mut reader = Reader(&answer);
    assert_eq!((reader.i32(), reader.i16(), reader.compact_count()), (0, codes::NONE, 1));
    assert_eq!(reader.i16(), codes::NONE);
    assert!(reader.compact_string().is_some());
    assert_eq!(reader.compact_count(), 0, "no topics were asked for");
    assert!(reader.i64() > 0 && reader.i64() > 0);
    assert!(!reader.bool(), "not cordoned");
    assert_eq!((reader.tags().len(), reader.tags().len()), (0, 0));
    reader.end();
}

fn producers(client: &mut Client, topic: &str, partition: i32) -> PartitionResponse {
    let wanted = TopicRequest::default().with_name(topic_name(topic)).with_partition_indexes(vec![partition]);
    client.call(0, &DescribeProducersRequest::default().with_topics(vec![wanted])).topics.remove(0).partitions.remove(0)
}

#[test]
fn describe_producers_tells_the_last_sequence() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["no producer id"]));
    assert!(producers(&mut client, &topic, 0).active_producers.is_empty());
    let (id, epoch) = producer_id(&mut client);
    append(&mut client, &topic, &Batch::of(&["a", "b", "c"]).producer(id, epoch, 0));
    let answer = producers(&mut client, &topic, 0);
    assert_eq!((answer.error_code, answer.active_producers.len()), (codes::NONE, 1));
    let p = &answer.active_producers[0];
    assert_eq!((p.producer_id.0, p.producer_epoch, p.last_sequence), (id, i32::from(epoch), 2));
    assert_eq!((p.coordinator_epoch, p.current_txn_start_offset), (-1, -1));
    assert!((now_ms() - p.last_timestamp).abs() < 60_000);
    assert_eq!(producers(&mut client, &topic, 3).error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(producers(&mut client, "no-such-topic", 0).error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
}
