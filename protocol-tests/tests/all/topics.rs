//! CreateTopics (19), CreatePartitions (37), DeleteTopics (20): what is made, what is refused and how. Uses the harness.

use kafka_protocol::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest,
};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, codes, eventually, unique};
use uuid::Uuid;

/// Asks for the deletion of a topic; gives the code.
pub fn delete_code(client: &mut Client, topic: &str) -> i16 {
    let request = DeleteTopicsRequest::default()
        .with_topics(vec![DeleteTopicState::default().with_name(Some(topic_name(topic)))])
        .with_timeout_ms(20_000);
    client.call(6, &request).responses[0].error_code
}

/// Deletes a topic and waits until Metadata no longer knows it.
pub fn delete(client: &mut Client, topic: &str) {
    assert_eq!(delete_code(client, topic), codes::NONE);
    eventually("the topic goes away", SOON, || {
        (metadata(client, &[topic]).topics[0].error_code == codes::UNKNOWN_TOPIC_OR_PARTITION).then_some(())
    });
}

/// Creates a topic whose name was in use before.
pub fn create_again(client: &mut Client, topic: &str) -> Uuid {
    create_topic(client, topic, 1, &[])
}

fn create(client: &mut Client, version: i16, topic: CreatableTopic, validate_only: bool) -> CreatableTopicResult {
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(20_000)
        .with_validate_only(validate_only);
    client.call(version, &request).topics.remove(0)
}

fn grow(client: &mut Client, version: i16, topic: &str, count: i32) -> (i16, Option<String>) {
    let request = CreatePartitionsRequest::default()
        .with_topics(vec![
            CreatePartitionsTopic::default().with_name(topic_name(topic)).with_count(count).with_assignments(None),
        ])
        .with_timeout_ms(20_000);
    let result = client.call(version, &request).results.remove(0);
    (result.error_code, result.error_message.map(|m| m.to_string()))
}

#[test]
fn every_version_creates_a_topic() {
    let mut client = Broker::shared().client();
    for version in 2..=7 {
        let name = unique("topic");
        let result = create(&mut client, version, creatable(&name, 2, &[]), false);
        assert_eq!((result.error_code, result.name.as_str()), (codes::NONE, name.as_str()), "version {version}");
        assert!(version < 5 || (result.num_partitions, result.replication_factor) == (2, 1));
        assert_eq!((version >= 5).then_some(result.error_message).flatten(), None, "version {version}");
        assert!(version < 7 || !result.topic_id.is_nil());
        await_topic(&mut client, &name, 2);
    }
}

#[test]
fn bl_109_validate_only_tells_what_creation_would() {
    let mut client = Broker::shared().client();
    let existing = fresh_topic(&mut client, &[]);
    let fresh = unique("topic");
    let cases = [
        (creatable(&existing, 1, &[]), codes::TOPIC_ALREADY_EXISTS),
        (creatable(&fresh, 1, &[]).with_replication_factor(3), codes::INVALID_REPLICATION_FACTOR),
        (creatable(&fresh, 1, &[("retention.ms", "abc")]), codes::INVALID_CONFIG),
        (creatable(&fresh, 1, &[("no.such.key", "1")]), codes::INVALID_CONFIG),
        (creatable(&fresh, 1, &[]), codes::NONE),
    ];
    for (topic, code) in cases {
        let result = create(&mut client, 7, topic.clone(), true);
        assert_eq!(result.error_code, code, "{topic:?}");
    }
    assert_eq!(metadata(&mut client, &[&fresh]).topics[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn bl_110_counts_that_one_node_cannot_have() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let cases = [
        (creatable(&name, 1, &[]).with_replication_factor(3), codes::INVALID_REPLICATION_FACTOR),
        (creatable(&name, 1, &[]).with_replication_factor(0), codes::INVALID_REPLICATION_FACTOR),
        (creatable(&name, 1, &[]).with_replication_factor(-2), codes::INVALID_REPLICATION_FACTOR),
        (creatable(&name, 0, &[]), codes::INVALID_PARTITIONS),
        (creatable(&name, -2, &[]), codes::INVALID_PARTITIONS),
    ];
    for (topic, code) in cases {
        let result = create(&mut client, 7, topic.clone(), false);
        assert_eq!(result.error_code, code, "{topic:?}");
        assert!(result.error_message.is_some_and(|m| !m.is_empty()), "BL-119: {topic:?}");
    }
    assert_eq!(metadata(&mut client, &[&name]).topics[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn minus_one_takes_the_brokers_defaults() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let result = create(&mut client, 7, creatable(&name, -1, &[]).with_replication_factor(-1), false);
    assert_eq!((result.error_code, result.num_partitions, result.replication_factor), (codes::NONE, 1, 1));
}

#[test]
fn names_that_no_topic_may_have() {
    let mut client = Broker::shared().client();
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a b", "a/b", "a:b", "\u{e4}", &long] {
        let result = create(&mut client, 7, creatable(name, 1, &[]), false);
        assert_eq!(result.error_code, codes::INVALID_TOPIC_EXCEPTION, "{name:?}");
    }
    let name = format!("{}{}", unique("topic"), "x".repeat(200));
    assert_eq!(create(&mut client, 7, creatable(&name, 1, &[]), false).error_code, codes::NONE);
}

#[test]
fn names_that_differ_only_in_dot_and_underscore_collide() {
    let mut client = Broker::shared().client();
    let base = unique("topic");
    assert_eq!(create(&mut client, 7, creatable(&format!("{base}.x"), 1, &[]), false).error_code, codes::NONE);
    let result = create(&mut client, 7, creatable(&format!("{base}_x"), 1, &[]), false);
    assert_eq!(result.error_code, codes::INVALID_TOPIC_EXCEPTION);
}

#[test]
fn a_name_twice_in_one_request_is_an_invalid_request() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let topics = vec![creatable(&name, 1, &[]), creatable(&name, 1, &[])];
    let answer = client.call(7, &CreateTopicsRequest::default().with_topics(topics).with_timeout_ms(20_000));
    assert_eq!(answer.topics.iter().map(|t| t.error_code).collect::<Vec<_>>(), [codes::INVALID_REQUEST]);
}

#[test]
fn an_assignment_names_the_brokers() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let on = |partition: i32, ids: &[i32]| {
        CreatableReplicaAssignment::default()
            .with_partition_index(partition)
            .with_broker_ids(ids.iter().map(|i| BrokerId(*i)).collect())
    };
    let with = |parts| creatable(&name, -1, &[]).with_replication_factor(-1).with_assignments(parts);
    for wrong in [vec![on(0, &[99])], vec![on(0, &[1, 1])], vec![on(1, &[1])], vec![on(0, &[])]] {
        let result = create(&mut client, 7, with(wrong.clone()), false);
        assert_eq!(result.error_code, codes::INVALID_REPLICA_ASSIGNMENT, "{wrong:?}");
    }
    let both = creatable(&name, 2, &[]).with_assignments(vec![on(0, &[1])]);
    assert_eq!(create(&mut client, 7, both, false).error_code, codes::INVALID_REQUEST);
    assert_eq!(create(&mut client, 7, with(vec![on(0, &[1]), on(1, &[1])]), false).error_code, codes::NONE);
    await_topic(&mut client, &name, 2);
}

#[test]
fn bl_112_the_answer_lists_every_config_of_the_topic() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let result = create(&mut client, 7, creatable(&name, 1, &[("retention.ms", "12345")]), false);
    let configs = result.configs.expect("a list");
    await_topic(&mut client, &name, 1);
    let described = crate::configs::describe(&mut client, TOPIC, &name);
    let mut one: Vec<_> = configs.iter().map(|c| c.name.to_string()).collect();
    let mut two: Vec<_> = described.configs.iter().map(|c| c.name.to_string()).collect();
    one.sort();
    two.sort();
    assert_eq!(one, two);
    assert!(one.len() > 25);
    let retention = configs.iter().find(|c| c.name.as_str() == "retention.ms").unwrap();
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("12345"), 1));
}

#[test]
fn bl_119_create_partitions_says_why_it_refuses() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    create_topic(&mut client, &topic, 3, &[]);
    for (count, code) in
        [(2, codes::INVALID_PARTITIONS), (3, codes::INVALID_PARTITIONS), (-1, codes::INVALID_PARTITIONS)]
    {
        let (got, message) = grow(&mut client, 3, &topic, count);
        assert_eq!(got, code, "count {count}");
        assert!(message.is_some_and(|m| !m.is_empty()));
    }
    let (got, _) = grow(&mut client, 3, "no-such-topic", 5);
    assert_eq!(got, codes::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn every_version_of_create_partitions_grows_the_topic() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in 0..=3 {
        let count = i32::from(version) + 2;
        assert_eq!(grow(&mut client, version, &topic, count).0, codes::NONE, "version {version}");
        await_topic(&mut client, &topic, count);
    }
    let answer = produce(&mut client, &topic, 4, Batch::of(&["v"]).bytes());
    assert_eq!((answer.error_code, answer.base_offset), (codes::NONE, 0));
}

#[test]
fn create_partitions_takes_an_assignment() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for (ids, code) in [(vec![99], codes::INVALID_REPLICA_ASSIGNMENT), (vec![1], codes::NONE)] {
        let brokers = ids.into_iter().map(BrokerId).collect();
        let assignment = CreatePartitionsAssignment::default().with_broker_ids(brokers);
        let wanted = CreatePartitionsTopic::default()
            .with_name(topic_name(&topic))
            .with_count(2)
            .with_assignments(Some(vec![assignment]));
        let request = CreatePartitionsRequest::default().with_topics(vec![wanted]).with_timeout_ms(20_000);
        assert_eq!(client.call(3, &request).results[0].error_code, code);
    }
}

#[test]
fn bl_127_adding_partitions_keeps_configs_and_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 3, &[("cleanup.policy", "compact")]);
    assert_eq!(grow(&mut client, 3, &topic, 6).0, codes::NONE);
    await_topic(&mut client, &topic, 6);
    assert_eq!(metadata(&mut client, &[&topic]).topics[0].topic_id, id);
    assert_eq!(crate::configs::value(&mut client, TOPIC, &topic, "cleanup.policy"), ("compact".into(), 1));
    let answer = produce(&mut client, &topic, 5, Batch::of(&["no key"]).bytes());
    assert_eq!(answer.error_code, codes::INVALID_RECORD, "the new partitions compact too");
}

#[test]
fn every_version_of_delete_topics_deletes() {
    let mut client = Broker::shared().client();
    for version in 1..=6 {
        let topic = fresh_topic(&mut client, &[]);
        let mut request = DeleteTopicsRequest::default().with_timeout_ms(20_000);
        if version < 6 {
            request = request.with_topic_names(vec![topic_name(&topic), topic_name("no-such-topic")]);
        } else {
            let by_name = |n: &str| DeleteTopicState::default().with_name(Some(topic_name(n)));
            request = request.with_topics(vec![by_name(&topic), by_name("no-such-topic")]);
        }
        let answer = client.call(version, &request);
        let mut got: Vec<_> =
            answer.responses.iter().map(|r| (r.name.clone().unwrap().to_string(), r.error_code)).collect();
        got.sort();
        let mut wanted =
            vec![(topic.clone(), codes::NONE), ("no-such-topic".into(), codes::UNKNOWN_TOPIC_OR_PARTITION)];
        wanted.sort();
        assert_eq!(got, wanted, "version {version}");
    }
}

#[test]
fn a_topic_named_twice_for_deletion_is_an_invalid_request_and_stays() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in [1, 6] {
        let mut request = DeleteTopicsRequest::default().with_timeout_ms(20_000);
        if version < 6 {
            request = request.with_topic_names(vec![topic_name(&topic); 2]);
        } else {
            request = request.with_topics(vec![DeleteTopicState::default().with_name(Some(topic_name(&topic))); 2]);
        }
        let codes_of: Vec<i16> = client.call(version, &request).responses.iter().map(|r| r.error_code).collect();
        assert_eq!(codes_of, [codes::INVALID_REQUEST], "version {version}");
        assert_eq!(metadata(&mut client, &[&topic]).topics[0].error_code, codes::NONE);
    }
}

#[test]
fn a_topic_can_be_deleted_by_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    for (asked, code) in [(Uuid::from_u128(5), codes::UNKNOWN_TOPIC_ID), (id, codes::NONE)] {
        let state = DeleteTopicState::default().with_name(None).with_topic_id(asked);
        let request = DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(20_000);
        let answer = client.call(6, &request);
        assert_eq!((answer.responses[0].error_code, answer.responses[0].topic_id), (code, asked));
    }
}

#[test]
fn bl_074_a_topic_made_again_is_empty_and_has_a_new_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let first = create_topic(&mut client, &topic, 1, &[]);
    append_singles(&mut client, &topic, 3);
    delete(&mut client, &topic);
    let answer = produce(&mut client, &topic, 0, Batch::of(&["v"]).bytes());
    assert_eq!(answer.error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    let second = create_again(&mut client, &topic);
    assert_ne!(first, second);
    assert_eq!(end_offset(&mut client, &topic), 0);
    assert_eq!(append(&mut client, &topic, &Batch::of(&["v"])), 0);
}

#[test]
fn bl_068_who_produces_at_once_to_a_new_topic_is_told_only_to_try_again() {
    let mut client = Broker::shared().client();
    let passing = [codes::UNKNOWN_TOPIC_OR_PARTITION, codes::LEADER_NOT_AVAILABLE, codes::NOT_LEADER_OR_FOLLOWER];
    for round in 0..10 {
        let name = unique("topic");
        if round % 2 == 0 {
            let result = create(&mut client, 7, creatable(&name, 3, &[]), false);
            assert_eq!(result.error_code, codes::NONE);
        } else {
            let asked = MetadataRequestTopic::default().with_name(Some(topic_name(&name)));
            client.call(12, &MetadataRequest::default().with_topics(Some(vec![asked])));
        }
        eventually("the append succeeds", SOON, || {
            let answer = produce(&mut client, &name, 0, Batch::of(&["v"]).bytes());
            assert!(answer.error_code == codes::NONE || passing.contains(&answer.error_code), "{answer:?}");
            (answer.error_code == codes::NONE).then_some(())
        });
        assert_eq!(end_offset(&mut client, &name), 1);
    }
}

#[test]
fn bl_119_create_topics_says_why_it_refuses() {
    let mut client = Broker::shared().client();
    let name = unique("topic");
    let existing = fresh_topic(&mut client, &[]);
    let nowhere = CreatableReplicaAssignment::default().with_broker_ids(vec![BrokerId(99)]);
    let cases = [
        (creatable(&existing, 1, &[]), codes::TOPIC_ALREADY_EXISTS),
        (creatable("a/b", 1, &[]), codes::INVALID_TOPIC_EXCEPTION),
        (creatable(&name, 1, &[("retention.ms", "abc")]), codes::INVALID_CONFIG),
        (creatable(&name, 1, &[("no.such.key", "1")]), codes::INVALID_CONFIG),
        (creatable(&name, 0, &[]), codes::INVALID_PARTITIONS),
        (creatable(&name, 1, &[]).with_replication_factor(9), codes::INVALID_REPLICATION_FACTOR),
        (
            creatable(&name, -1, &[]).with_replication_factor(-1).with_assignments(vec![nowhere]),
            codes::INVALID_REPLICA_ASSIGNMENT,
        ),
    ];
    for version in 2..=7 {
        for (topic, code) in &cases {
            let result = create(&mut client, version, topic.clone(), false);
            assert_eq!(result.error_code, *code, "v{version} {topic:?}");
            assert!(result.error_message.is_some_and(|m| m.len() > 10), "v{version} {topic:?}");
        }
    }
}
