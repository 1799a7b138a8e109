//! Metadata (3), DescribeTopicPartitions (75), DescribeCluster (60), FindCoordinator (10). Uses the harness.

use kafka_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    DescribeClusterRequest, DescribeTopicPartitionsRequest, FindCoordinatorRequest, MetadataRequest, MetadataResponse,
};
use protocol_tests::ops::*;
use protocol_tests::{Broker, Client, codes, eventually, unique};
use uuid::Uuid;

/// What the field says when the operations were not asked for.
const NOT_ASKED: i32 = i32::MIN;

fn by_name(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(Some(topic_name(name)))
}

fn ask(client: &mut Client, version: i16, name: &str, create: bool) -> MetadataResponse {
    let mut request = MetadataRequest::default().with_topics(Some(vec![by_name(name)]));
    if version >= 4 {
        request = request.with_allow_auto_topic_creation(create);
    }
    client.call(version, &request)
}

#[test]
fn every_version_lists_the_broker_and_the_partitions() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 3, &[]);
    for version in 0..=13 {
        let answer = ask(&mut client, version, &topic, false);
        let node = &answer.brokers[0];
        assert_eq!((node.node_id.0, node.host.as_str(), node.port), (1, "127.0.0.1", i32::from(broker.address.port())));
        assert!(version < 1 || answer.controller_id.0 == 1);
        assert!(version < 2 || answer.cluster_id.as_ref().is_some_and(|c| c.len() == 22));
        let got = &answer.topics[0];
        assert_eq!(
            (got.error_code, got.partitions.len(), got.is_internal),
            (codes::NONE, 3, false),
            "version {version}"
        );
        assert!(version < 10 || got.topic_id == id);
        for part in &got.partitions {
            assert_eq!((part.error_code, part.leader_id.0), (codes::NONE, 1));
            assert_eq!((part.replica_nodes.len(), part.isr_nodes.len(), part.offline_replicas.len()), (1, 1, 0));
            assert!(version < 7 || part.leader_epoch == 0);
        }
    }
}

#[test]
fn bl_011_an_unknown_topic_is_named_at_every_version() {
    let mut client = Broker::shared().client();
    for version in 4..=13 {
        let answer = ask(&mut client, version, "no-such-topic", false);
        let got = &answer.topics[0];
        assert_eq!((got.error_code, got.partitions.len()), (codes::UNKNOWN_TOPIC_OR_PARTITION, 0), "version {version}");
        assert_eq!(got.name.as_ref().map(|n| n.as_str()), Some("no-such-topic"));
    }
}

#[test]
fn all_topics_or_none() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let all = client.call(12, &MetadataRequest::default().with_topics(None));
    assert!(all.topics.iter().any(|t| t.name.as_ref().is_some_and(|n| n.as_str() == topic)));
    let none = client.call(12, &MetadataRequest::default().with_topics(Some(vec![])));
    assert_eq!((none.topics.len(), none.brokers.len()), (0, 1));
    let all = client.call(0, &MetadataRequest::default().with_topics(Some(vec![])));
    assert!(!all.topics.is_empty(), "in version 0 an empty list means all");
}

#[test]
fn bl_067_auto_creation_follows_the_clients_flag() {
    let mut client = Broker::shared().client();
    let topic = unique("auto");
    for _ in 0..3 {
        assert_eq!(ask(&mut client, 4, &topic, false).topics[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    }
    for (version, topic) in (0..=13).map(|version| (version, unique("auto"))) {
        let first = ask(&mut client, version, &topic, true).topics[0].error_code;
        assert!(
            [codes::UNKNOWN_TOPIC_OR_PARTITION, codes::LEADER_NOT_AVAILABLE, codes::NONE].contains(&first),
            "{first}"
        );
        eventually("the topic is made", SOON, || {
            (ask(&mut client, version, &topic, true).topics[0].error_code == codes::NONE).then_some(())
        });
        await_topic(&mut client, &topic, 1);
    }
}

#[test]
fn the_log_of_the_metadata_is_not_made_a_topic() {
    let mut client = Broker::shared().client();
    let topic = unique("auto");
    ask(&mut client, 12, "__cluster_metadata", true);
    // What is asked for later is made later.
    eventually("the topic is made", SOON, || {
        (ask(&mut client, 12, &topic, true).topics[0].error_code == codes::NONE).then_some(())
    });
    let answer = ask(&mut client, 12, "__cluster_metadata", false);
    assert_eq!(answer.topics[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn bl_067_an_invalid_name_is_not_created() {
    let mut client = Broker::shared().client();
    for name in ["bad/name", "..", ""] {
        assert_eq!(ask(&mut client, 12, name, true).topics[0].error_code, codes::INVALID_TOPIC_EXCEPTION, "{name:?}");
    }
}

#[test]
fn bl_067_the_broker_setting_off_means_never() {
    let own = [("auto.create.topics.enable", "false"), ("delete.topic.enable", "false")];
    let broker = Broker::start(&own);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    assert_eq!(crate::topics::delete_code(&mut client, &topic), codes::TOPIC_DELETION_DISABLED);
    for version in [0, 3, 12] {
        for _ in 0..5 {
            assert_eq!(
                ask(&mut client, version, "wanted", true).topics[0].error_code,
                codes::UNKNOWN_TOPIC_OR_PARTITION
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

#[test]
fn bl_070_the_offsets_topic_is_internal() {
    let mut client = Broker::shared().client();
    let all = client.call(12, &MetadataRequest::default().with_topics(None));
    let offsets = all.topics.iter().find(|t| t.name.as_ref().is_some_and(|n| n.as_str() == "__consumer_offsets"));
    let offsets = offsets.expect("it is listed");
    assert_eq!((offsets.is_internal, offsets.partitions.len()), (true, 4));
}

#[test]
fn bl_073_operations_are_told_when_asked() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in 8..=13 {
        for asked in [false, true] {
            let mut request = MetadataRequest::default().with_topics(Some(vec![by_name(&topic)]));
            request = request.with_include_topic_authorized_operations(asked);
            if version <= 10 {
                request = request.with_include_cluster_authorized_operations(asked);
            }
            let answer = client.call(version, &request);
            // READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11
            let wanted = if asked { 0b1101_1111_1000 } else { NOT_ASKED };
            assert_eq!(answer.topics[0].topic_authorized_operations, wanted, "version {version}");
            if version <= 10 {
                assert_eq!(answer.cluster_authorized_operations != NOT_ASKED, asked, "version {version}");
            }
        }
    }
}

#[test]
fn bl_074_topics_by_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    for (asked, code, name) in
        [(id, codes::NONE, Some(topic.as_str())), (Uuid::from_u128(3), codes::UNKNOWN_TOPIC_ID, None)]
    {
        let wanted = MetadataRequestTopic::default().with_name(None).with_topic_id(asked);
        let answer = client.call(12, &MetadataRequest::default().with_topics(Some(vec![wanted])));
        assert_eq!((answer.topics[0].error_code, answer.topics[0].topic_id), (code, asked));
        assert_eq!(answer.topics[0].name.as_ref().map(|n| n.as_str()), name);
    }
}

#[test]
fn bl_074_a_deleted_topic_is_in_no_list_and_its_id_is_unknown() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    crate::topics::delete(&mut client, &topic);
    for version in [10, 12, 13] {
        let all = client.call(version, &MetadataRequest::default().with_topics(None));
        assert!(all.topics.iter().all(|t| t.topic_id != id && t.name.as_ref().is_none_or(|n| n.as_str() != topic)));
    }
    let wanted = MetadataRequestTopic::default().with_name(None).with_topic_id(id);
    let answer = client.call(12, &MetadataRequest::default().with_topics(Some(vec![wanted])));
    assert_eq!(answer.topics[0].error_code, codes::UNKNOWN_TOPIC_ID);
}

#[test]
fn bl_118_describe_cluster_at_every_version() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let cluster = metadata(&mut client, &[]).cluster_id;
    for version in 0..=2 {
        for asked in [false, true] {
            let request = DescribeClusterRequest::default().with_include_cluster_authorized_operations(asked);
            let answer = client.call(version, &request);
            assert_eq!((answer.error_code, Some(answer.cluster_id)), (codes::NONE, cluster.clone()));
            assert_eq!((answer.controller_id.0, answer.brokers.len()), (1, 1));
            let node = &answer.brokers[0];
            assert_eq!((node.broker_id.0, node.port), (1, i32::from(broker.address.port())));
            // CREATE 5, ALTER 7, DESCRIBE 8, CLUSTER_ACTION 9, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11, IDEMPOTENT_WRITE 12
            let wanted = if asked { 0b1_1111_1010_0000 } else { NOT_ASKED };
            assert_eq!(answer.cluster_authorized_operations, wanted, "version {version}");
        }
    }
}

#[test]
fn bl_118_a_broker_does_not_describe_controllers() {
    let mut client = Broker::shared().client();
    for (kind, code) in [(2, codes::MISMATCHED_ENDPOINT_TYPE), (77, codes::UNSUPPORTED_ENDPOINT_TYPE)] {
        let answer = client.call(1, &DescribeClusterRequest::default().with_endpoint_type(kind));
        assert_eq!(answer.error_code, code);
        assert!(answer.error_message.is_some());
    }
}

/// Name, code and number of partitions of each topic, and where the next page begins.
type Page = (Vec<(String, i16, usize)>, Option<(String, i32)>);

fn describe(client: &mut Client, topics: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> Page {
    let cursor = cursor.map(|(t, p)| Cursor::default().with_topic_name(topic_name(t)).with_partition_index(p));
    let request = DescribeTopicPartitionsRequest::default()
        .with_topics(topics.iter().map(|t| TopicRequest::default().with_name(topic_name(t))).collect())
        .with_response_partition_limit(limit)
        .with_cursor(cursor);
    let answer = client.call(0, &request);
    let topics = answer
        .topics
        .iter()
        .map(|t| (t.name.clone().map(|n| n.to_string()).unwrap_or_default(), t.error_code, t.partitions.len()))
        .collect();
    (topics, answer.next_cursor.map(|c| (c.topic_name.to_string(), c.partition_index)))
}

#[test]
fn describe_topic_partitions_pages_in_name_order() {
    let mut client = Broker::shared().client();
    let base = unique("paged");
    let (one, two) = (format!("{base}.a"), format!("{base}.b"));
    create_topic(&mut client, &two, 3, &[]);
    create_topic(&mut client, &one, 2, &[]);
    let (got, next) = describe(&mut client, &[&two, &one], 2000, None);
    assert_eq!(got, [(one.clone(), 0, 2), (two.clone(), 0, 3)]);
    assert_eq!(next, None);
    let (got, next) = describe(&mut client, &[&two, &one], 3, None);
    assert_eq!((got, next), (vec![(one.clone(), 0, 2), (two.clone(), 0, 1)], Some((two.clone(), 1))));
    let (got, next) = describe(&mut client, &[&two, &one], 3, Some((&two, 1)));
    assert_eq!((got, next), (vec![(two.clone(), 0, 2)], None));
}

#[test]
fn describe_topic_partitions_names_what_is_unknown() {
    let mut client = Broker::shared().client();
    let (got, _) = describe(&mut client, &["no-such-topic"], 10, None);
    assert_eq!(got, [("no-such-topic".to_owned(), codes::UNKNOWN_TOPIC_OR_PARTITION, 0)]);
    let topic = fresh_topic(&mut client, &[]);
    let (all, _) = describe(&mut client, &[], 2000, None);
    assert!(all.iter().any(|(name, ..)| *name == topic), "an empty list means all");
}

#[test]
fn every_version_of_find_coordinator_finds_this_broker() {
    let broker = Broker::shared();
    let mut client = broker.client();
    for version in 0..=6 {
        let mut request = FindCoordinatorRequest::default();
        if version < 4 {
            request = request.with_key(s("group"));
        } else {
            request = request.with_coordinator_keys(vec![s("one"), s("two")]);
        }
        let answer = client.call(version, &request);
        if version < 4 {
            assert_eq!((answer.error_code, answer.node_id.0), (codes::NONE, 1), "version {version}");
            assert_eq!((answer.host.as_str(), answer.port), ("127.0.0.1", i32::from(broker.address.port())));
        } else {
            let got: Vec<_> =
                answer.coordinators.iter().map(|c| (c.key.to_string(), c.error_code, c.node_id.0)).collect();
            assert_eq!(got, [("one".to_owned(), 0, 1), ("two".to_owned(), 0, 1)], "version {version}");
        }
    }
}

#[test]
fn find_coordinator_refuses_a_key_type_that_does_not_exist() {
    let mut client = Broker::shared().client();
    let request = FindCoordinatorRequest::default().with_key(s("group")).with_key_type(9);
    assert_eq!(client.call(3, &request).error_code, codes::INVALID_REQUEST);
}
