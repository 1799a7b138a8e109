//! What most tests do first: names to types, topics, appends, reads, offsets, configs. Uses the client.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::delete_records_response::DeleteRecordsPartitionResult;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DeleteRecordsRequest, FetchRequest, FindCoordinatorRequest, GroupId,
    HeartbeatRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest,
    MetadataResponse, ProduceRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::batch::{Batch, Fetched, Record, parse};
use crate::client::Client;
use crate::{codes, eventually};

/// Resource type of a topic in the config APIs.
pub const TOPIC: i8 = 2;
/// Resource type of a broker in the config APIs.
pub const BROKER: i8 = 4;

/// How long a change may take to be seen.
pub const SOON: Duration = Duration::from_secs(20);

/// A string of the protocol.
pub fn s(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A topic name of the protocol.
pub fn topic_name(text: &str) -> TopicName {
    TopicName(s(text))
}

/// A group id of the protocol.
pub fn group_id(text: &str) -> GroupId {
    GroupId(s(text))
}

/// Metadata of the topics named, without creating any; of all when none is named.
pub fn metadata(client: &mut Client, topics: &[&str]) -> MetadataResponse {
    let named = topics.iter().map(|t| MetadataRequestTopic::default().with_name(Some(topic_name(t)))).collect();
    let topics = (!topics.is_empty()).then_some(named);
    client.call(12, &MetadataRequest::default().with_topics(topics).with_allow_auto_topic_creation(false))
}

/// A CreateTopics entry with replication factor 1.
pub fn creatable(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreatableTopic {
    let config = |(k, v): &(&str, &str)| CreatableTopicConfig::default().with_name(s(k)).with_value(Some(s(v)));
    CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(1)
        .with_configs(configs.iter().map(config).collect())
}

/// Creates a topic and waits until its partitions can be read; gives its id.
pub fn create_topic(client: &mut Client, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
    let request =
        CreateTopicsRequest::default().with_topics(vec![creatable(name, partitions, configs)]).with_timeout_ms(20_000);
    let answer = client.call(7, &request);
    assert_eq!(answer.topics[0].error_code, codes::NONE, "{:?}", answer.topics[0].error_message);
    await_topic(client, name, partitions);
    answer.topics[0].topic_id
}

/// Waits until every partition of the topic has a leader that answers.
pub fn await_topic(client: &mut Client, name: &str, partitions: i32) {
    for partition in 0..partitions {
        eventually("the partition has a leader", SOON, || {
            (list_offset(client, name, partition, -1).error_code == codes::NONE).then_some(())
        });
    }
}

/// A new topic of one partition, under a name of its own.
pub fn fresh_topic(client: &mut Client, configs: &[(&str, &str)]) -> String {
    let name = crate::unique("topic");
    create_topic(client, &name, 1, configs);
    name
}

/// A new topic that keeps records however old their timestamps are.
pub fn timeless_topic(client: &mut Client, configs: &[(&str, &str)]) -> String {
    fresh_topic(client, &[configs, &[("retention.ms", "-1")]].concat())
}

/// A Produce request to one partition.
pub fn produce_request(topic: &str, partition: i32, acks: i16, records: Vec<u8>) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(records.into()));
    let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(acks).with_timeout_ms(20_000).with_topic_data(vec![topic])
}

/// Sends record bytes to one partition with acks=all and gives the answer for it.
pub fn produce(client: &mut Client, topic: &str, partition: i32, records: Vec<u8>) -> PartitionProduceResponse {
    let mut answer = client.call(9, &produce_request(topic, partition, -1, records));
    answer.responses.remove(0).partition_responses.remove(0)
}

/// Appends a batch to partition 0, which must succeed; gives the base offset.
pub fn append(client: &mut Client, topic: &str, batch: &Batch) -> i64 {
    let answer = produce(client, topic, 0, batch.bytes());
    assert_eq!(answer.error_code, codes::NONE, "{answer:?}");
    answer.base_offset
}

/// Appends `n` batches of one record each, values "0", "1", ...
pub fn append_singles(client: &mut Client, topic: &str, n: usize) {
    for i in 0..n {
        append(client, topic, &Batch::new(vec![Record::value(i.to_string())]));
    }
}

/// A Fetch partition with the usual limit.
pub fn fetch_partition(partition: i32, offset: i64) -> FetchPartition {
    FetchPartition::default().with_partition(partition).with_fetch_offset(offset).with_partition_max_bytes(1 << 20)
}

/// A Fetch request without a session: (topic, partition, offset) each, answered at once.
pub fn fetch_request(wanted: &[(&str, i32, i64)]) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for (topic, partition, offset) in wanted {
        let part = fetch_partition(*partition, *offset);
        match topics.iter_mut().find(|t| t.topic.0.as_str() == *topic) {
            Some(known) => known.partitions.push(part),
            None => topics.push(FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![part])),
        }
    }
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(0)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(topics)
}

/// Fetches one partition and gives the answer for it, which may be an error.
pub fn fetch(client: &mut Client, topic: &str, partition: i32, offset: i64) -> PartitionData {
    let mut answer = client.call(12, &fetch_request(&[(topic, partition, offset)]));
    assert_eq!(answer.error_code, codes::NONE);
    answer.responses.remove(0).partitions.remove(0)
}

/// The batches of one partition from `offset` on.
pub fn batches(client: &mut Client, topic: &str, partition: i32, offset: i64) -> Vec<Fetched> {
    let data = fetch(client, topic, partition, offset);
    assert_eq!(data.error_code, codes::NONE);
    parse(&data.records.unwrap_or_default())
}

/// Every record of a partition from its start, in order.
pub fn read_all(client: &mut Client, topic: &str, partition: i32) -> Vec<(i64, Record)> {
    let mut next = list_offset(client, topic, partition, -2).offset;
    let end = list_offset(client, topic, partition, -1).offset;
    let mut records = Vec::new();
    while next < end {
        let got = batches(client, topic, partition, next);
        let last = got.last().unwrap_or_else(|| panic!("nothing at offset {next} of {end}"));
        let reached = last.base_offset + i64::from(last.last_offset_delta) + 1;
        records.extend(got.into_iter().flat_map(|b| b.records).filter(|(offset, _)| *offset >= next));
        next = reached;
    }
    records
}

/// A ListOffsets request for one partition.
pub fn list_offsets_request(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    let part = ListOffsetsPartition::default().with_partition_index(partition).with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![part]);
    ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
}

/// ListOffsets for one partition; `timestamp` may be one of the special ones.
pub fn list_offset(client: &mut Client, topic: &str, partition: i32, timestamp: i64) -> ListOffsetsPartitionResponse {
    let mut answer = client.call(8, &list_offsets_request(topic, partition, timestamp));
    answer.topics.remove(0).partitions.remove(0)
}

/// The end offset of partition 0.
pub fn end_offset(client: &mut Client, topic: &str) -> i64 {
    list_offset(client, topic, 0, -1).offset
}

/// DeleteRecords of one partition.
pub fn delete_records(client: &mut Client, topic: &str, partition: i32, offset: i64) -> DeleteRecordsPartitionResult {
    let part = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(offset);
    let topic = DeleteRecordsTopic::default().with_name(topic_name(topic)).with_partitions(vec![part]);
    let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(20_000);
    client.call(2, &request).topics.remove(0).partitions.remove(0)
}

/// A producer id and epoch for an idempotent producer.
pub fn producer_id(client: &mut Client) -> (i64, i16) {
    let request = InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(60_000);
    eventually("a producer id", SOON, || {
        let answer = client.call(4, &request);
        (answer.error_code == codes::NONE).then_some((answer.producer_id.0, answer.producer_epoch))
    })
}

/// IncrementalAlterConfigs: operation 0 sets, 1 deletes, 2 appends, 3 subtracts. Gives the code and message.
pub fn alter_configs(
    client: &mut Client,
    kind: i8,
    name: &str,
    changes: &[(&str, i8, Option<&str>)],
) -> (i16, Option<String>) {
    let change = |(key, operation, value): &(&str, i8, Option<&str>)| {
        AlterableConfig::default().with_name(s(key)).with_config_operation(*operation).with_value(value.map(s))
    };
    let resource = AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(s(name))
        .with_configs(changes.iter().map(change).collect());
    let answer = client.call(1, &IncrementalAlterConfigsRequest::default().with_resources(vec![resource]));
    (answer.responses[0].error_code, answer.responses[0].error_message.as_ref().map(|m| m.to_string()))
}

/// Waits until the group coordinator of every partition of the offsets topic answers.
///
/// With four partitions and Java's string hash, these four names lie on one partition each.
pub fn await_coordinator(client: &mut Client) {
    for group in ["a", "b", "c", "d"] {
        eventually("the group coordinator loads", Duration::from_secs(60), || {
            let found = client.call(3, &FindCoordinatorRequest::default().with_key(s(group)));
            let beat = HeartbeatRequest::default().with_group_id(group_id(group)).with_member_id(s("nobody"));
            let ready = found.error_code == codes::NONE && client.call(3, &beat).error_code == codes::UNKNOWN_MEMBER_ID;
            ready.then_some(())
        });
    }
}

/// Record bytes of a fetched partition, empty when there are none.
pub fn record_bytes(data: &PartitionData) -> Bytes {
    data.records.clone().unwrap_or_default()
}
