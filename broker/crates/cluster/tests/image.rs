//! The image: what records do to it, what is shared, what is published, and that a snapshot holds all of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use base::{NodeId, TopicId};
use cluster::image::{Loader, MetadataDelta, MetadataImage, ReplayError};
use cluster::records::*;
use cluster::{ConfigResource, Record};

const ONE: NodeId = NodeId(1);

fn id(n: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(n))
}

fn topic(name: &str, topic_id: TopicId) -> Record {
    TopicRecord { name: name.to_owned(), topic_id }.into()
}

fn partition(topic_id: TopicId, partition_id: i32) -> Record {
    PartitionRecord {
        partition_id,
        topic_id,
        replicas: vec![ONE],
        isr: vec![ONE],
        leader: ONE,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![id(99)],
        ..PartitionRecord::default()
    }
    .into()
}

fn config(resource_type: i8, resource: &str, name: &str, value: Option<&str>) -> Record {
    ConfigRecord {
        resource_type,
        resource_name: resource.to_owned(),
        name: name.to_owned(),
        value: value.map(str::to_owned),
    }
    .into()
}

fn broker(epoch: i64) -> Record {
    RegisterBrokerRecord { broker_id: ONE, broker_epoch: epoch, ..RegisterBrokerRecord::default() }.into()
}

fn replayed(image: &mut MetadataImage, records: &[Record]) -> Result<MetadataDelta, ReplayError> {
    let mut delta = MetadataDelta::default();
    records.iter().try_for_each(|record| image.replay(record, &mut delta)).map(|()| delta)
}

#[test]
fn a_topic_is_found_by_name_and_by_id_until_it_is_removed() {
    let mut image = MetadataImage::empty();
    let records =
        [topic("t.1", id(1)), partition(id(1), 0), partition(id(1), 1), config(2, "t.1", "retention.ms", Some("1"))];
    let delta = replayed(&mut image, &records).unwrap();
    assert_eq!(image.topic("t.1").unwrap().partitions().len(), 2);
    assert_eq!(&*image.topic_by_id(id(1)).unwrap().name, "t.1");
    assert_eq!(image.colliding_topic("t_1").map(|name| &**name), Some("t.1"));
    assert_eq!(image.topic_configs("t.1").get("retention.ms").map(|value| &**value), Some("1"));
    assert_eq!(delta.topics_created.len(), 1);
    assert_eq!(delta.partitions_changed.len(), 2);
    assert!(delta.configs_changed.contains(&ConfigResource::topic("t.1")));

    let delta = replayed(&mut image, &[RemoveTopicRecord { topic_id: id(1) }.into()]).unwrap();
    assert!(image.topic("t.1").is_none() && image.topic_by_id(id(1)).is_none());
    assert!(image.colliding_topic("t_1").is_none() && image.topic_configs("t.1").is_empty());
    assert_eq!(delta.topics_deleted[&id(1)].partitions().len(), 2);
}

#[test]
fn a_topic_that_came_and_went_between_two_images_is_not_mentioned() {
    let mut image = MetadataImage::empty();
    let records = [topic("t", id(1)), partition(id(1), 0), RemoveTopicRecord { topic_id: id(1) }.into()];
    assert!(replayed(&mut image, &records).unwrap().is_empty());
}

#[test]
fn a_change_of_leader_raises_both_epochs_and_a_change_of_isr_only_one() {
    let mut image = MetadataImage::empty();
    replayed(&mut image, &[topic("t", id(1)), partition(id(1), 0)]).unwrap();
    let isr = PartitionChangeRecord {
        partition_id: 0,
        topic_id: id(1),
        isr: Some(vec![ONE, NodeId(2)]),
        ..Default::default()
    };
    replayed(&mut image, &[isr.into()]).unwrap();
    let now = image.partition(id(1), 0).unwrap();
    assert_eq!((now.leader_epoch, now.partition_epoch, now.isr().len()), (0, 1, 2));
    let leader = PartitionChangeRecord { partition_id: 0, topic_id: id(1), leader: NodeId(-1), ..Default::default() };
    replayed(&mut image, &[leader.into()]).unwrap();
    let now = image.partition(id(1), 0).unwrap();
    assert_eq!((now.leader, now.leader_epoch, now.partition_epoch), (NodeId(-1), 1, 2));
}

#[test]
fn partitions_with_the_same_replicas_share_them() {
    let mut image = MetadataImage::empty();
    replayed(&mut image, &[topic("t", id(1)), partition(id(1), 0), partition(id(1), 1)]).unwrap();
    let sets = |i| std::ptr::from_ref(image.partition(id(1), i).unwrap().sets());
    assert_eq!(sets(0), sets(1));
}

#[test]
fn an_image_that_was_given_out_does_not_change() {
    let mut image = MetadataImage::empty();
    replayed(&mut image, &[topic("t", id(1)), partition(id(1), 0)]).unwrap();
    let given_out = image.clone();
    replayed(&mut image, &[partition(id(1), 1), topic("u", id(2))]).unwrap();
    assert_eq!((given_out.topic_count(), given_out.topic("t").unwrap().partitions().len()), (1, 1));
    assert_eq!((image.topic_count(), image.topic("t").unwrap().partitions().len()), (2, 2));
}

#[test]
fn records_that_contradict_the_image_are_refused() {
    let mut image = MetadataImage::empty();
    let unknown_topic = replayed(&mut image, &[partition(id(1), 0)]);
    assert_eq!(unknown_topic, Err(ReplayError::UnknownTopic(id(1))));
    let gap = replayed(&mut image, &[topic("t", id(1)), partition(id(1), 1)]);
    assert_eq!(gap, Err(ReplayError::UnknownPartition { topic: id(1), partition: 1, count: 0 }));
    let twice = replayed(&mut image, &[topic("t", id(2))]);
    assert_eq!(twice, Err(ReplayError::DuplicateTopic { name: "t".to_owned(), id: id(2) }));
    let other_epoch =
        BrokerRegistrationChangeRecord { broker_id: ONE, broker_epoch: 6, fenced: -1, ..Default::default() };
    let stale = replayed(&mut image, &[broker(5), other_epoch.into()]);
    assert_eq!(stale, Err(ReplayError::UnknownBroker { id: ONE, epoch: 6 }));
}

#[test]
fn topics_are_listed_by_name_from_any_point() {
    let mut image = MetadataImage::empty();
    replayed(&mut image, &[topic("c", id(1)), topic("a", id(2)), topic("b", id(3))]).unwrap();
    let from_b: Vec<&str> = image.topics_from("aa").map(|topic| &*topic.name).collect();
    assert_eq!(from_b, ["b", "c"]);
}

#[test]
fn records_of_a_transaction_are_seen_together_or_not_at_all() {
    let mut loader = Loader::new(MetadataImage::empty());
    let begin: Record = BeginTransactionRecord::default().into();
    loader.replay(&[begin.clone(), topic("t", id(1))], 1, 0).unwrap();
    assert!(loader.publish().is_none());
    loader.replay(&[AbortTransactionRecord::default().into()], 2, 0).unwrap();
    let (image, delta) = loader.publish().unwrap();
    assert_eq!((image.topic_count(), image.offset), (0, 2));
    assert!(delta.is_empty());

    loader.replay(&[begin, topic("t", id(1)), EndTransactionRecord {}.into()], 5, 0).unwrap();
    let (image, delta) = loader.publish().unwrap();
    assert_eq!((image.topic_count(), delta.topics_created.len()), (1, 1));
    let unbalanced = loader.replay(&[EndTransactionRecord {}.into()], 6, 0);
    assert_eq!(unbalanced, Err(ReplayError::UnbalancedTransaction));
}

/// One record of each kind that leaves a trace.
fn everything() -> Vec<Record> {
    let golden = include_str!("golden/records.txt").lines().filter(|line| !line.starts_with(['#', 'c']));
    let bytes = |line: &str| -> Vec<u8> {
        let hex = line.split(' ').nth(2).unwrap();
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let keeps = |record: &Record| {
        matches!(
            record,
            Record::UserScramCredential(_)
                | Record::AccessControlEntry(_)
                | Record::DelegationToken(_)
                | Record::RegisterController(_)
                | Record::FeatureLevel(_)
                | Record::ProducerIds(_)
        )
    };
    let mut records: Vec<Record> = golden.map(|line| Record::decode(&bytes(line)).unwrap()).filter(keeps).collect();
    records.extend([
        broker(7),
        topic("t", id(1)),
        partition(id(1), 0),
        partition(id(1), 1),
        config(2, "t", "retention.ms", Some("1")),
        config(4, "", "min.insync.replicas", Some("1")),
    ]);
    let entity = vec![QuotaEntity { entity_type: "user".to_owned(), entity_name: None }];
    let quota = ClientQuotaRecord { entity, key: "producer_byte_rate".to_owned(), value: 2.0, remove: false };
    records.push(quota.into());
    records
}

#[test]
fn a_snapshot_holds_the_whole_image() {
    let mut image = MetadataImage::empty();
    replayed(&mut image, &everything()).unwrap();
    let records: Vec<Record> = image.records().collect();
    let mut again = MetadataImage::empty();
    replayed(&mut again, &records).unwrap();
    assert!(MetadataDelta::between(&image, &again).is_empty());
    assert_eq!(again.records().collect::<Vec<_>>(), records);
    assert_eq!(again.next_producer_id(), 1000);
    assert!(matches!(records[0], Record::FeatureLevel(_)), "features come first");
}

#[test]
fn a_snapshot_in_place_of_records_tells_what_changed() {
    let mut loader = Loader::new(MetadataImage::empty());
    loader
        .replay(&[topic("old", id(1)), partition(id(1), 0), topic("kept", id(2)), partition(id(2), 0)], 3, 0)
        .unwrap();
    let (mut image, _) = loader.publish().unwrap();
    let records = [
        RemoveTopicRecord { topic_id: id(1) }.into(),
        partition(id(2), 1),
        topic("new", id(3)),
        partition(id(3), 0),
        broker(9),
    ];
    replayed(&mut image, &records).unwrap();
    loader.reset(image);
    let (_, delta) = loader.publish().unwrap();
    assert_eq!(delta.topics_created.into_iter().collect::<Vec<_>>(), [id(3)]);
    assert_eq!(delta.topics_deleted.into_keys().collect::<Vec<_>>(), [id(1)]);
    assert_eq!(delta.partitions_changed.into_iter().collect::<Vec<_>>(), [(id(2), 1), (id(3), 0)]);
    assert_eq!(delta.brokers_changed.into_iter().collect::<Vec<_>>(), [ONE]);
}

#[test]
fn ten_thousand_partitions_are_taken_in_and_published_quickly() {
    let mut loader = Loader::new(MetadataImage::empty());
    for t in 0..10_000u128 {
        loader.replay(&[topic(&format!("t{t}"), id(t + 1)), partition(id(t + 1), 0)], t as i64, 0).unwrap();
        assert!(loader.publish().is_some());
    }
    assert_eq!(loader.latest().topic_count(), 10_000);
}
