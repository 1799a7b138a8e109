//! What the controller decides, with Kafka's words for what it refuses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;

use base::{NodeId, TopicId};
use cluster::configs::{AlterOp, Alteration};
use cluster::controller::*;
use cluster::image::{MetadataDelta, MetadataImage};
use cluster::records::Record;
use cluster::{ConfigResource, ResourceKind};

const ONE: NodeId = NodeId(1);

fn id(n: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(n))
}

/// A cluster whose decisions take effect at once.
struct World {
    image: MetadataImage,
    settings: BTreeMap<String, String>,
    next_offset: i64,
}

impl World {
    fn empty() -> World {
        World { image: MetadataImage::empty(), settings: BTreeMap::new(), next_offset: 0 }
    }

    fn with_brokers(count: i32) -> World {
        let mut world = World::empty();
        world.run(&Activate { bootstrap: bootstrap_records() });
        for n in 1..=count {
            let epoch = world.run(&register(n, n as u128)).unwrap();
            world.run(&UnfenceBroker { broker_id: NodeId(n), broker_epoch: epoch }).unwrap();
        }
        world
    }

    fn decide<C: Command>(&self, command: &C) -> Decision<C::Answer> {
        let controller =
            Controller { image: &self.image, settings: &self.settings, node_id: ONE, next_offset: self.next_offset };
        command.decide(&controller)
    }

    fn run<C: Command>(&mut self, command: &C) -> C::Answer {
        let decision = self.decide(command);
        let mut delta = MetadataDelta::default();
        for record in &decision.records {
            self.image.replay(record, &mut delta).unwrap();
        }
        self.next_offset += decision.records.len() as i64;
        decision.answer
    }

    fn create(&mut self, name: &str, partitions: i32) {
        let topic = NewTopic { partitions, ..new_topic(name) };
        self.run(&CreateTopics { topics: vec![topic], validate_only: false })[0].clone().unwrap();
    }

    fn refusal(&self, topic: NewTopic) -> String {
        let decision = self.decide(&CreateTopics { topics: vec![topic], validate_only: false });
        assert!(decision.records.is_empty());
        decision.answer[0].clone().unwrap_err().to_string()
    }

    fn partitions_refusal(&self, count: i32, assignments: Option<Vec<Vec<NodeId>>>) -> String {
        let topics = vec![PartitionsTopic { name: "t".to_owned(), count, assignments }];
        let decision = self.decide(&CreatePartitions { topics, validate_only: false });
        assert!(decision.records.is_empty());
        decision.answer[0].clone().unwrap_err().to_string()
    }
}

fn register(n: i32, incarnation: u128) -> RegisterBroker {
    RegisterBroker {
        broker_id: NodeId(n),
        incarnation_id: id(incarnation),
        features: SUPPORTED_FEATURES.iter().map(|feature| feature.to_supported()).collect(),
        log_dirs: vec![id(100 + n as u128)],
        ..RegisterBroker::default()
    }
}

fn new_topic(name: &str) -> NewTopic {
    let id = id(name.bytes().fold(7, |hash, byte| hash * 31 + u128::from(byte)));
    NewTopic { name: name.to_owned(), id, partitions: 1, replication_factor: -1, ..NewTopic::default() }
}

fn assigned(assignments: &[(i32, &[i32])]) -> NewTopic {
    let list = assignments.iter().map(|(index, brokers)| (*index, brokers.iter().map(|b| NodeId(*b)).collect()));
    NewTopic { partitions: -1, assignments: list.collect(), ..new_topic("a") }
}

#[test]
fn a_topic_record_is_followed_by_its_configs_and_its_partitions() {
    let world = World::with_brokers(1);
    let configs = vec![("retention.ms".to_owned(), Some("1000".to_owned()))];
    let topic = NewTopic { partitions: 2, configs, ..new_topic("t") };
    let decision = world.decide(&CreateTopics { topics: vec![topic], validate_only: false });
    let kinds: Vec<u32> = decision.records.iter().map(Record::kind).collect();
    assert_eq!(kinds, [2, 4, 3, 3]);
    let created = decision.answer[0].as_ref().unwrap();
    assert_eq!((created.partitions, created.replication_factor), (2, 1));
    let Record::Partition(partition) = &decision.records[3] else { panic!("another kind") };
    assert_eq!((partition.partition_id, partition.leader, partition.leader_epoch), (1, ONE, 0));
    assert_eq!(partition.directories, [id(101)]);
}

#[test]
fn defaults_come_from_the_settings() {
    let mut world = World::with_brokers(3);
    world.settings =
        [("num.partitions", "4"), ("default.replication.factor", "2")].map(|(n, v)| (n.into(), v.into())).into();
    let topic = NewTopic { partitions: -1, ..new_topic("t") };
    let answer = world.run(&CreateTopics { topics: vec![topic], validate_only: false });
    assert_eq!(answer[0].as_ref().map(|created| (created.partitions, created.replication_factor)), Ok((4, 2)));
}

#[test]
fn bl_109_validation_refuses_what_creation_would_and_makes_nothing() {
    let mut world = World::with_brokers(1);
    world.create("t", 1);
    let topics = vec![new_topic("t"), NewTopic { replication_factor: 3, ..new_topic("u") }, new_topic("v")];
    let decision = world.decide(&CreateTopics { topics, validate_only: true });
    assert!(decision.records.is_empty());
    assert_eq!(decision.answer[0], Err(CreateTopicsError::Exists("t".to_owned())));
    assert!(matches!(decision.answer[1], Err(CreateTopicsError::Placement { replication_factor: 3, .. })));
    assert!(decision.answer[2].is_ok());
}

#[test]
fn bl_110_numbers_that_cannot_be_are_refused_by_what_is_wrong_with_them() {
    let world = World::with_brokers(1);
    let positive = "Replication factor must be larger than 0, or -1 to use the default value.";
    assert_eq!(world.refusal(NewTopic { replication_factor: 0, ..new_topic("t") }), positive);
    assert_eq!(world.refusal(NewTopic { replication_factor: -2, ..new_topic("t") }), positive);
    let partitions = "Number of partitions was set to an invalid non-positive value.";
    assert_eq!(world.refusal(NewTopic { partitions: 0, replication_factor: 3, ..new_topic("t") }), partitions);
    let brokers = "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached \
                   because only 1 broker(s) are registered or some brokers have all their log directories cordoned.";
    assert_eq!(world.refusal(NewTopic { replication_factor: 3, ..new_topic("t") }), brokers);
}

#[test]
fn bl_110_two_of_three_brokers_is_fine() {
    let mut world = World::with_brokers(3);
    let topic = NewTopic { partitions: 6, replication_factor: 2, ..new_topic("t") };
    assert!(world.run(&CreateTopics { topics: vec![topic], validate_only: false })[0].is_ok());
    let leaders = |broker| world.image.topic("t").unwrap().partitions().iter().filter(|p| p.leader == broker).count();
    assert_eq!([1, 2, 3].map(|n| leaders(NodeId(n))), [2, 2, 2]);
}

#[test]
fn bl_119_every_refused_topic_says_why() {
    let mut world = World::with_brokers(1);
    world.create("a.b", 1);
    assert_eq!(world.refusal(new_topic("a_b")), "Topic 'a_b' collides with existing topic: a.b");
    assert_eq!(world.refusal(new_topic("a.b")), "Topic 'a.b' already exists.");
    assert_eq!(world.refusal(new_topic("..")), "Topic name is invalid: '..' is not allowed");
    let with = |name: &str, value: Option<&str>| NewTopic {
        configs: vec![(name.to_owned(), value.map(str::to_owned))],
        ..new_topic("t")
    };
    assert_eq!(world.refusal(with("foo", Some("bar"))), "Unknown topic config name: foo");
    let number = "Invalid value abc for configuration retention.ms: Not a number of type LONG";
    assert_eq!(world.refusal(with("retention.ms", Some("abc"))), number);
    assert_eq!(world.refusal(with("retention.ms", None)), "Null value not supported for topic configs: retention.ms");
    let many = NewTopic { partitions: 10_001, ..new_topic("t") };
    assert_eq!(world.refusal(many), "Excessively large number of partitions per request.");
}

#[test]
fn an_assignment_that_cannot_be_is_refused() {
    let world = World::with_brokers(2);
    let unknown = "The manual partition assignment includes broker 9, but no such broker is registered.";
    assert_eq!(world.refusal(assigned(&[(0, &[9])])), unknown);
    let repeated = "The manual partition assignment includes the broker 1 more than once.";
    assert_eq!(world.refusal(assigned(&[(0, &[1, 1])])), repeated);
    let empty = "The manual partition assignment includes an empty replica list.";
    assert_eq!(world.refusal(assigned(&[(0, &[])])), empty);
    let gap = "partitions should be a consecutive 0-based integer sequence";
    assert_eq!(world.refusal(assigned(&[(1, &[1])])), gap);
    let twice = "Found multiple manual partition assignments for partition 0";
    assert_eq!(world.refusal(assigned(&[(0, &[1]), (0, &[1])])), twice);
    let lengths = "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent \
                   with previous partitions, which have 1 replica(s).";
    assert_eq!(world.refusal(assigned(&[(0, &[1]), (1, &[1, 2])])), lengths);
    let both = NewTopic { partitions: 1, ..assigned(&[(0, &[1])]) };
    let text = "A manual partition assignment was specified, but numPartitions was not set to -1.";
    assert_eq!(world.refusal(both), text);
}

#[test]
fn an_assignment_decides_the_leader() {
    let mut world = World::with_brokers(2);
    let topic = assigned(&[(1, &[1, 2]), (0, &[2, 1])]);
    world.run(&CreateTopics { topics: vec![topic], validate_only: false })[0].clone().unwrap();
    let leaders: Vec<i32> = world.image.topic("a").unwrap().partitions().iter().map(|p| p.leader.0).collect();
    assert_eq!(leaders, [2, 1]);
}

#[test]
fn bl_127_new_partitions_leave_the_topics_id_and_configs_alone() {
    let mut world = World::with_brokers(1);
    let configs = vec![("cleanup.policy".to_owned(), Some("compact".to_owned()))];
    let topic = NewTopic { configs, ..new_topic("t") };
    world.run(&CreateTopics { topics: vec![topic], validate_only: false })[0].clone().unwrap();
    let before = world.image.topic("t").unwrap().id;
    let topics = vec![PartitionsTopic { name: "t".to_owned(), count: 6, assignments: None }];
    assert_eq!(world.run(&CreatePartitions { topics, validate_only: false }), [Ok(())]);
    let topic = world.image.topic("t").unwrap();
    assert_eq!((topic.id, topic.partitions().len()), (before, 6));
    assert_eq!(world.image.topic_configs("t").get("cleanup.policy").map(|value| &**value), Some("compact"));
}

#[test]
fn bl_119_every_refused_number_of_partitions_says_why() {
    let mut world = World::with_brokers(1);
    world.create("t", 2);
    assert_eq!(world.partitions_refusal(2, None), "Topic already has 2 partition(s).");
    let fewer = "The topic t currently has 2 partition(s); -1 would not be an increase.";
    assert_eq!(world.partitions_refusal(-1, None), fewer);
    let many = "Excessively large number of additional partitions per request.";
    assert_eq!(world.partitions_refusal(20_000, None), many);
    let count = "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.";
    assert_eq!(world.partitions_refusal(4, Some(vec![vec![ONE]])), count);
    let unknown = "The manual partition assignment includes broker 7, but no such broker is registered.";
    assert_eq!(world.partitions_refusal(3, Some(vec![vec![NodeId(7)]])), unknown);
    let missing = vec![PartitionsTopic { name: "nope".to_owned(), count: 3, assignments: None }];
    let answer = world.decide(&CreatePartitions { topics: missing, validate_only: false }).answer;
    assert_eq!(answer, [Err(CreatePartitionsError::UnknownTopic)]);
}

#[test]
fn a_deleted_topic_is_gone_and_its_name_free() {
    let mut world = World::with_brokers(1);
    world.create("t", 1);
    let old = world.image.topic("t").unwrap().id;
    let answer = world.run(&DeleteTopics { ids: vec![old, id(42)] });
    assert_eq!(answer, [Ok(()), Err(DeleteTopicsError::UnknownTopicId)]);
    assert!(world.image.topic("t").is_none());
    world.create("t", 1);
}

#[test]
fn a_new_cluster_begins_with_kafkas_features_in_one_transaction() {
    let world = World::empty();
    let records = world.decide(&Activate { bootstrap: bootstrap_records() }).records;
    let kinds: Vec<u32> = records.iter().map(Record::kind).collect();
    assert_eq!(kinds, [23, 12, 12, 12, 12, 12, 12, 4, 24]);
    let world = World::with_brokers(0);
    assert_eq!(world.image.feature("metadata.version"), Some(33));
    assert!(world.decide(&Activate { bootstrap: bootstrap_records() }).records.is_empty(), "only once");
}

#[test]
fn the_epoch_of_a_broker_is_the_offset_of_its_registration_and_stays_for_the_same_run() {
    let mut world = World::with_brokers(1);
    let epoch = world.image.broker(ONE).unwrap().epoch;
    assert_eq!(world.run(&register(1, 1)), Ok(epoch));
    assert!(!world.image.broker(ONE).unwrap().fenced);
    let next = world.next_offset;
    assert_eq!(world.run(&register(1, 2)), Ok(next));
    assert!(world.image.broker(ONE).unwrap().fenced);
    let stale = UnfenceBroker { broker_id: ONE, broker_epoch: epoch };
    assert_eq!(world.run(&stale), Err(RegistrationError::StaleBrokerEpoch { id: ONE, epoch }));
}

#[test]
fn a_broker_that_starts_again_leads_with_a_higher_epoch() {
    let mut world = World::with_brokers(1);
    world.create("t", 1);
    let broker_epoch = world.run(&register(1, 2)).unwrap();
    let partition = world.image.topic("t").unwrap().partition(0).unwrap().clone();
    assert_eq!((partition.leader, partition.leader_epoch, partition.isr()), (NodeId(-1), 1, &[ONE][..]));
    world.run(&UnfenceBroker { broker_id: ONE, broker_epoch }).unwrap();
    let partition = world.image.topic("t").unwrap().partition(0).unwrap();
    assert_eq!((partition.leader, partition.leader_epoch), (ONE, 2));
}

#[test]
fn when_a_leader_is_gone_another_in_sync_replica_leads() {
    let mut world = World::with_brokers(2);
    let topic = assigned(&[(0, &[1, 2])]);
    world.run(&CreateTopics { topics: vec![topic], validate_only: false })[0].clone().unwrap();
    world.run(&register(1, 9)).unwrap();
    let partition = world.image.topic("a").unwrap().partition(0).unwrap();
    assert_eq!((partition.leader, partition.isr()), (NodeId(2), &[NodeId(2)][..]));
}

#[test]
fn a_node_that_lacks_a_feature_of_the_cluster_is_refused() {
    let world = World::with_brokers(0);
    let broker = RegisterBroker { features: Vec::new(), ..register(1, 1) };
    assert!(matches!(world.decide(&broker).answer, Err(RegistrationError::Feature { .. })));
    let twice = RegisterBroker { log_dirs: vec![id(1), id(1)], ..register(1, 1) };
    assert_eq!(world.decide(&twice).answer, Err(RegistrationError::Directories(ONE)));
}

#[test]
fn producer_ids_are_handed_out_once_in_blocks_of_a_thousand() {
    let mut world = World::with_brokers(1);
    let broker_epoch = world.image.broker(ONE).unwrap().epoch;
    let ask = AllocateProducerIds { broker_id: ONE, broker_epoch };
    let firsts = [world.run(&ask), world.run(&ask)].map(|block| block.unwrap().first);
    assert_eq!(firsts, [0, 1000]);
    let stale = AllocateProducerIds { broker_epoch: broker_epoch + 1, ..ask };
    assert!(matches!(world.run(&stale), Err(ProducerIdsError::StaleBrokerEpoch { .. })));
}

#[test]
fn bl_113_settings_of_a_topic_are_checked_before_they_change() {
    let mut world = World::with_brokers(1);
    world.create("t", 1);
    let set = |resource: ConfigResource, name: &str, value: &str| AlterConfigs {
        targets: vec![ConfigTarget {
            resource,
            request: ConfigRequest::Incremental(vec![Alteration {
                name: name.to_owned(),
                op: AlterOp::Set,
                value: Some(value.to_owned()),
            }]),
        }],
        validate_only: false,
    };
    let refusal = |command: AlterConfigs| world.decide(&command).answer[0].clone().unwrap_err().to_string();
    let topic = || ConfigResource::topic("t");
    assert_eq!(refusal(set(topic(), "replication.factor", "2")), "Unknown topic config name: replication.factor");
    let missing = refusal(set(ConfigResource::topic("nope"), "retention.ms", "1"));
    assert_eq!(missing, "The topic 'nope' does not exist.");
    assert_eq!(refusal(set(ConfigResource::broker(NodeId(9)), "num.io.threads", "9")), "No node with id 9 found.");
    let group = ConfigResource { kind: ResourceKind::Group, name: "".into() };
    assert_eq!(refusal(set(group, "x", "1")), "Default group resources are not allowed.");
    assert_eq!(world.run(&set(topic(), "retention.ms", "5")), [Ok(())]);
    assert_eq!(world.image.topic_configs("t").get("retention.ms").map(|value| &**value), Some("5"));
}
