//! One request of every API at each of its versions, where it has an array once with one and once with two elements in it.
//! The first byte in which the two differ belongs to the count, so that the count can be made a lie. What the requests ask
//! for does not exist, so that nothing comes of them and most answers are errors. Uses the harness.

use std::ops::RangeInclusive;

use bytes::Bytes;
use kafka_protocol::messages as m;
use kafka_protocol::protocol::Request;
use protocol_tests::client::{decode, encode};
use protocol_tests::ops::*;

/// A request body with one and with two elements.
pub struct Sample {
    pub name: &'static str,
    pub key: i16,
    pub version: i16,
    pub header_version: i16,
    pub one: Vec<u8>,
    pub two: Vec<u8>,
    /// Reads the answer's frame, which must end where its version says, for a request with this correlation id.
    pub read: fn(Bytes, i16, i32) -> String,
    /// True at the lowest and the highest version.
    is_end: bool,
}

/// `one` with another count; `two` shows where the count is.
pub fn lying_count(one: &[u8], two: &[u8], header_version: i16, count: i32) -> Vec<u8> {
    let at = one.iter().zip(two).position(|(a, b)| a != b).expect("the counts differ");
    if header_version == 2 {
        // A compact array: the count plus one as a varint of one byte.
        let lie = protocol_tests::primitive::Writer::new().uvarint((count as u32).wrapping_add(1)).0;
        return [&one[..at], &lie, &one[at + 1..]].concat();
    }
    [&one[..at - 3], &count.to_be_bytes(), &one[at + 1..]].concat()
}

fn read<R: Request<Response: std::fmt::Debug>>(frame: Bytes, version: i16, correlation_id: i32) -> String {
    format!("{:?}", decode::<R>(frame, version, correlation_id))
}

fn both<R: Request<Response: std::fmt::Debug>>(
    name: &'static str,
    versions: RangeInclusive<i16>,
    build: impl Fn(i16, usize) -> R,
) -> Vec<Sample> {
    let sample = |version: i16| Sample {
        name,
        key: R::KEY,
        version,
        header_version: R::header_version(version),
        one: encode(version, &build(version, 1)),
        two: encode(version, &build(version, 2)),
        read: read::<R>,
        is_end: version == *versions.start() || version == *versions.end(),
    };
    versions.clone().map(sample).collect()
}

/// Every API of this broker whose request has an array, at its lowest and its highest version.
pub fn samples() -> Vec<Sample> {
    with_array().into_iter().filter(|s| s.is_end).collect()
}

/// Every API of this broker at every version that the typed messages have.
pub fn every_version() -> Vec<Sample> {
    with_array().into_iter().chain(without_array()).collect()
}

fn with_array() -> Vec<Sample> {
    [topics(), records(), groups(), configs()].into_iter().flatten().collect()
}

/// Versions whose request has no array.
fn without_array() -> Vec<Sample> {
    [
        both("FindCoordinator", 0..=3, |_, _| m::FindCoordinatorRequest::default().with_key(s("g"))),
        both("Heartbeat", 0..=4, |_, _| {
            m::HeartbeatRequest::default().with_group_id(group_id("g")).with_group_instance_id(None)
        }),
        both("LeaveGroup", 0..=2, |_, _| m::LeaveGroupRequest::default().with_group_id(group_id("g"))),
        both("ListGroups", 0..=3, |_, _| m::ListGroupsRequest::default()),
        both("ApiVersions", 0..=4, |_, _| m::ApiVersionsRequest::default()),
        both("InitProducerId", 0..=5, |_, _| {
            m::InitProducerIdRequest::default().with_transactional_id(Some(m::TransactionalId(s(""))))
        }),
        both("DescribeCluster", 0..=2, |version, _| {
            m::DescribeClusterRequest::default().with_endpoint_type(if version < 1 { 1 } else { 2 })
        }),
        both("ListConfigResources", 0..=0, |_, _| m::ListConfigResourcesRequest::default()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn topics() -> Vec<Sample> {
    let name = |_| topic_name("no-such-topic");
    [
        both("Metadata", 0..=13, |_, n| {
            let topic = m::metadata_request::MetadataRequestTopic::default().with_name(Some(topic_name("a/b")));
            m::MetadataRequest::default().with_topics(Some(vec![topic; n])).with_allow_auto_topic_creation(true)
        }),
        both("CreateTopics", 2..=7, |_, n| {
            m::CreateTopicsRequest::default().with_topics(vec![creatable("t", 1, &[]); n]).with_validate_only(true)
        }),
        both("CreatePartitions", 0..=3, |_, n| {
            let topic = m::create_partitions_request::CreatePartitionsTopic::default().with_name(topic_name("t"));
            m::CreatePartitionsRequest::default().with_topics(vec![topic; n]).with_validate_only(true)
        }),
        both("DeleteTopics", 1..=6, |version, n| {
            let state =
                m::delete_topics_request::DeleteTopicState::default().with_name(Some(topic_name("no-such-topic")));
            let request = m::DeleteTopicsRequest::default();
            if version < 6 {
                request.with_topic_names((0..n).map(name).collect())
            } else {
                request.with_topics(vec![state; n])
            }
        }),
        both("DescribeTopicPartitions", 0..=0, |_, n| {
            let topic = m::describe_topic_partitions_request::TopicRequest::default().with_name(name(0));
            m::DescribeTopicPartitionsRequest::default().with_topics(vec![topic; n])
        }),
        both("DescribeLogDirs", 1..=4, |_, n| {
            let topic = m::describe_log_dirs_request::DescribableLogDirTopic::default().with_topic(topic_name("t"));
            m::DescribeLogDirsRequest::default().with_topics(Some(vec![topic; n]))
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn records() -> Vec<Sample> {
    let batch = Bytes::from(protocol_tests::Batch::of(&["v"]).bytes());
    [
        both("Produce", 3..=13, |version, n| {
            let mut request = produce_request(if version < 13 { "no-such-topic" } else { "" }, 0, 1, batch.to_vec());
            request.topic_data = vec![request.topic_data[0].clone(); n];
            request
        }),
        both("Fetch", 4..=18, |version, n| {
            let mut request = fetch_request(&[(if version < 13 { "t" } else { "" }, 0, 0)]);
            request.topics = vec![request.topics[0].clone(); n];
            request
        }),
        both("ListOffsets", 1..=10, |_, n| {
            let mut request = list_offsets_request("t", 0, -1);
            request.topics = vec![request.topics[0].clone(); n];
            request
        }),
        both("DeleteRecords", 0..=2, |_, n| {
            let part = m::delete_records_request::DeleteRecordsPartition::default();
            let topic = m::delete_records_request::DeleteRecordsTopic::default()
                .with_name(topic_name("no-such-topic"))
                .with_partitions(vec![part]);
            m::DeleteRecordsRequest::default().with_topics(vec![topic; n])
        }),
        both("OffsetForLeaderEpoch", 2..=4, |version, n| {
            let part = m::offset_for_leader_epoch_request::OffsetForLeaderPartition::default();
            let topic = m::offset_for_leader_epoch_request::OffsetForLeaderTopic::default()
                .with_topic(topic_name("t"))
                .with_partitions(vec![part]);
            let request = m::OffsetForLeaderEpochRequest::default().with_topics(vec![topic; n]);
            if version < 3 { request } else { request.with_replica_id(m::BrokerId(-1)) }
        }),
        both("DescribeProducers", 0..=0, |_, n| {
            let topic = m::describe_producers_request::TopicRequest::default()
                .with_name(topic_name("t"))
                .with_partition_indexes(vec![0]);
            m::DescribeProducersRequest::default().with_topics(vec![topic; n])
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn groups() -> Vec<Sample> {
    use m::leave_group_request::MemberIdentity;
    [
        both("FindCoordinator", 4..=6, |_, n| {
            m::FindCoordinatorRequest::default().with_coordinator_keys(vec![s("g"); n])
        }),
        both("JoinGroup", 0..=9, |_, n| {
            let protocol = m::join_group_request::JoinGroupRequestProtocol::default().with_name(s("range"));
            let request = m::JoinGroupRequest::default().with_group_id(group_id("g")).with_group_instance_id(None);
            request.with_session_timeout_ms(1).with_protocols(vec![protocol; n])
        }),
        both("SyncGroup", 0..=5, |_, n| {
            let assignment = m::sync_group_request::SyncGroupRequestAssignment::default();
            let request = m::SyncGroupRequest::default().with_group_id(group_id("g")).with_group_instance_id(None);
            request.with_protocol_type(None).with_protocol_name(None).with_assignments(vec![assignment; n])
        }),
        both("LeaveGroup", 3..=5, |_, n| {
            m::LeaveGroupRequest::default()
                .with_group_id(group_id("g"))
                .with_members(vec![MemberIdentity::default(); n])
        }),
        both("OffsetCommit", 2..=9, |_, n| {
            let mut request =
                protocol_tests::group::commit_request("g", "no-such-topic", 0, 1).with_group_instance_id(None);
            request.topics = vec![request.topics[0].clone(); n];
            request
        }),
        both("OffsetFetch", 1..=9, |version, n| {
            use m::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic};
            let topic = OffsetFetchRequestTopic::default().with_name(topic_name("t"));
            let group = OffsetFetchRequestGroup::default().with_group_id(group_id("g")).with_member_id(None);
            let request = m::OffsetFetchRequest::default();
            if version < 8 {
                request.with_group_id(group_id("g")).with_topics(Some(vec![topic; n]))
            } else {
                request.with_groups(vec![group; n])
            }
        }),
        both("OffsetDelete", 0..=0, |_, n| {
            let topic = m::offset_delete_request::OffsetDeleteRequestTopic::default().with_name(topic_name("t"));
            m::OffsetDeleteRequest::default().with_group_id(group_id("g")).with_topics(vec![topic; n])
        }),
        both("DescribeGroups", 0..=6, |_, n| m::DescribeGroupsRequest::default().with_groups(vec![group_id("g"); n])),
        both("ListGroups", 4..=5, |_, n| m::ListGroupsRequest::default().with_states_filter(vec![s("Stable"); n])),
        both("DeleteGroups", 0..=2, |_, n| {
            m::DeleteGroupsRequest::default().with_groups_names(vec![group_id("no-such-group"); n])
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn configs() -> Vec<Sample> {
    [
        both("DescribeConfigs", 1..=4, |_, n| {
            let resource = m::describe_configs_request::DescribeConfigsResource::default().with_resource_type(TOPIC);
            m::DescribeConfigsRequest::default().with_resources(vec![resource; n])
        }),
        both("AlterConfigs", 0..=2, |_, n| {
            // Apache Kafka never answers when a resource is named twice.
            let resource = |i| {
                m::alter_configs_request::AlterConfigsResource::default()
                    .with_resource_type(TOPIC)
                    .with_resource_name(s(&format!("no-such-topic-{i}")))
            };
            m::AlterConfigsRequest::default().with_resources((0..n).map(resource).collect()).with_validate_only(true)
        }),
        both("IncrementalAlterConfigs", 0..=1, |_, n| {
            let resource = |i| {
                m::incremental_alter_configs_request::AlterConfigsResource::default()
                    .with_resource_type(TOPIC)
                    .with_resource_name(s(&format!("no-such-topic-{i}")))
            };
            let request = m::IncrementalAlterConfigsRequest::default().with_validate_only(true);
            request.with_resources((0..n).map(resource).collect())
        }),
        both("ListConfigResources", 1..=1, |_, n| {
            m::ListConfigResourcesRequest::default().with_resource_types(vec![2; n])
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
