//! The controller on a simulated disk: what was answered is there after a restart and after a power cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::{NodeId, SystemClock, TopicId};
use cluster::controller::{
    AllocateProducerIds, CreateTopics, CreateTopicsError, DeleteTopics, NewTopic, ProducerIdBlock,
};
use partition_log::disk::Disk;
use partition_log::{FileCache, RealDisk, SimDisk};
use uuid::Uuid;

use super::*;

mod snapshots;

const NODE: NodeId = NodeId(1);
/// Open files of one test.
const FILES_MAX: usize = 100;

fn id(n: u128) -> TopicId {
    TopicId(Uuid::from_u128(n))
}

/// A node that is only a controller and a broker's registration.
struct Node {
    handle: ControllerHandle,
    tasks: Tasks,
    broker_epoch: i64,
}

/// How much metadata a test keeps.
#[derive(Clone, Copy)]
struct Sizes {
    /// Between two snapshots.
    snapshot_bytes: u64,
    /// Of log and snapshots.
    retention: Retention,
}

/// One snapshot, if any, and everything kept.
const NO_SNAPSHOTS: Sizes = Sizes { snapshot_bytes: u64::MAX, retention: Retention { bytes: None, ms: None } };

fn settings(disk: Arc<dyn Disk>, dir: &Path, tasks: &Tasks, sizes: Sizes) -> ControllerSettings {
    ControllerSettings {
        node_id: NODE,
        metadata_log_dir: dir.to_owned(),
        directory_id: id(77),
        files: FileCache::new(disk, FILES_MAX),
        settings: Arc::new(BTreeMap::new()),
        endpoints: Vec::new(),
        segment_bytes: 1 << 20,
        segment_ms: i64::MAX,
        retention: sizes.retention,
        flushes: Arc::default(),
        snapshots: SnapshotRule { record_bytes: sizes.snapshot_bytes, interval_ms: 0 },
        clock: Arc::new(SystemClock::new()),
        tasks: tasks.clone(),
    }
}

impl Node {
    async fn start(disk: Arc<dyn Disk>, incarnation: u128) -> Node {
        Node::start_in(disk, Path::new("/data"), incarnation, NO_SNAPSHOTS).await
    }

    async fn start_in(disk: Arc<dyn Disk>, dir: &Path, incarnation: u128, sizes: Sizes) -> Node {
        Node::try_start(disk, dir, incarnation, sizes).await.unwrap()
    }

    async fn try_start(
        disk: Arc<dyn Disk>,
        dir: &Path,
        incarnation: u128,
        sizes: Sizes,
    ) -> Result<Node, ControllerError> {
        let made = disk.create_dir(dir).and_then(|()| disk.sync_dir(dir.parent().unwrap()));
        made.map_err(|error| ControllerError::failed(&error))?;
        let tasks = Tasks::new();
        let handle = super::start(settings(disk, dir, &tasks, sizes)).await?;
        let endpoint =
            Endpoint { name: "PLAINTEXT".into(), host: "localhost".into(), port: 9092, security_protocol: 0 };
        let broker = this_broker(NODE, id(incarnation), vec![endpoint], None, vec![id(77)]);
        let broker_epoch = handle.register(broker, Vec::new()).await?;
        handle.unfence(broker_epoch).await?;
        Ok(Node { handle, tasks, broker_epoch })
    }

    async fn create(&self, name: &str, partitions: i32) -> Result<TopicId, CreateTopicsError> {
        let topic_id = id(name.bytes().fold(1, |hash, byte| hash * 131 + u128::from(byte)));
        let topic =
            NewTopic { name: name.to_owned(), id: topic_id, partitions, replication_factor: 1, ..NewTopic::default() };
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        self.handle.run(command).await.unwrap().remove(0).map(|created| created.id)
    }

    async fn stop(self) {
        self.handle.shutdown().await;
        self.tasks.stop();
        self.tasks.wait().await;
    }
}

#[tokio::test]
async fn a_new_cluster_has_its_features_its_broker_and_its_controller() {
    let node = Node::start(Arc::new(SimDisk::new()), 1).await;
    let image = node.handle.image();
    assert_eq!(image.feature("metadata.version"), Some(33));
    assert_eq!(image.broker(NODE).map(|broker| (broker.fenced, broker.epoch)), Some((false, node.broker_epoch)));
    assert!(image.controller(NODE).is_some());
    assert_eq!(node.handle.leader(), Some(NODE));
    node.stop().await;
}

#[tokio::test]
async fn an_answered_topic_is_in_the_published_image_and_refused_the_second_time() {
    let node = Node::start(Arc::new(SimDisk::new()), 1).await;
    let topic = node.create("t", 3).await.unwrap();
    assert_eq!(node.handle.image().topic("t").map(|topic| topic.partitions().len()), Some(3));
    assert_eq!(node.create("t", 3).await, Err(CreateTopicsError::Exists("t".to_owned())));
    assert_eq!(node.handle.run(DeleteTopics { ids: vec![topic] }).await.unwrap(), [Ok(())]);
    assert!(node.handle.image().topic("t").is_none());
    node.stop().await;
}

#[tokio::test]
async fn commands_that_wait_together_do_not_see_a_stale_image() {
    let node = Node::start(Arc::new(SimDisk::new()), 1).await;
    let ask = AllocateProducerIds { broker_id: NODE, broker_epoch: node.broker_epoch };
    let (a, b, c) = tokio::join!(node.handle.run(ask), node.handle.run(ask), node.handle.run(ask));
    let mut firsts: Vec<i64> =
        [a, b, c].map(|block| block.unwrap().map(|ProducerIdBlock { first, .. }| first).unwrap()).into();
    firsts.sort_unstable();
    assert_eq!(firsts, [0, 1000, 2000]);
    node.stop().await;
}

#[tokio::test]
async fn everything_is_there_after_a_restart_in_a_higher_epoch() {
    let disk = SimDisk::new();
    let node = Node::start(Arc::new(disk.clone()), 1).await;
    let topic = node.create("t", 2).await.unwrap();
    let epoch = node.handle.image().epoch;
    node.stop().await;

    let node = Node::start(Arc::new(disk), 2).await;
    let image = node.handle.image();
    assert_eq!(image.topic("t").map(|found| found.id), Some(topic));
    assert!(image.epoch > epoch, "{} after {epoch}", image.epoch);
    let partition = image.partition(topic, 0).unwrap();
    assert_eq!((partition.leader, partition.leader_epoch), (NODE, 2));
    node.stop().await;
}

#[tokio::test]
async fn what_was_answered_survives_a_power_cut() {
    for seed in 0..5 {
        let disk = SimDisk::new();
        let node = Node::start(Arc::new(disk.clone()), 1).await;
        for n in 0..5 {
            node.create(&format!("t{n}"), 1).await.unwrap();
        }
        let after = disk.after_power_cut(seed);
        node.stop().await;
        let node = Node::start(Arc::new(after), 2).await;
        assert_eq!(node.handle.image().topic_count(), 5, "seed {seed}");
        node.stop().await;
    }
}

/// Starts a node and makes topics until the power is cut; gives the names of those that were answered.
async fn make_topics_until_the_cut(disk: &SimDisk, sizes: Sizes) -> Vec<String> {
    let mut answered = Vec::new();
    let started = Node::try_start(Arc::new(disk.clone()), Path::new("/data"), 1, sizes).await;
    let Ok(node) = started else { return answered };
    for n in 0..8 {
        let name = format!("t{n}");
        let topic =
            NewTopic { name: name.clone(), id: id(n + 1), partitions: 1, replication_factor: 1, ..NewTopic::default() };
        match node.handle.run(CreateTopics { topics: vec![topic], validate_only: false }).await {
            Ok(_) => answered.push(name),
            Err(_) => break,
        }
    }
    node.stop().await;
    answered
}

#[tokio::test]
async fn a_power_cut_at_any_operation_loses_nothing_that_was_answered() {
    let often = Sizes { snapshot_bytes: 600, ..NO_SNAPSHOTS };
    let kept_short = Sizes { retention: Retention { bytes: Some(1_500), ms: None }, ..often };
    for sizes in [NO_SNAPSHOTS, often, kept_short] {
        let whole = SimDisk::new();
        assert_eq!(make_topics_until_the_cut(&whole, sizes).await.len(), 8);
        for operation in 1..=whole.operations() {
            let disk = SimDisk::new();
            disk.crash_at(operation);
            let answered = make_topics_until_the_cut(&disk, sizes).await;
            let after = disk.after_power_cut(operation);
            let node = Node::start(Arc::new(after), 2).await;
            let image = node.handle.image();
            for name in &answered {
                assert!(image.topic(name).is_some(), "{name} is lost after a cut at operation {operation}");
            }
            node.stop().await;
        }
    }
}

#[tokio::test]
async fn a_follower_sees_everything_once_however_late_it_looks() {
    let node = Node::start(Arc::new(SimDisk::new()), 1).await;
    let mut follower = node.handle.follow();
    let kept = node.create("kept", 2).await.unwrap();
    let gone = node.create("gone", 1).await.unwrap();
    node.handle.run(DeleteTopics { ids: vec![gone] }).await.unwrap()[0].clone().unwrap();
    let (image, delta) = follower.changed().await.unwrap();
    assert_eq!(delta.topics_created.into_iter().collect::<Vec<_>>(), [kept]);
    assert!(delta.topics_deleted.is_empty() && delta.brokers_changed.contains(&NODE));
    assert_eq!(image.topic_count(), 1);
    node.handle.run(DeleteTopics { ids: vec![kept] }).await.unwrap()[0].clone().unwrap();
    let (_, delta) = follower.changed().await.unwrap();
    assert_eq!(delta.topics_deleted.into_keys().collect::<Vec<_>>(), [kept]);
    node.stop().await;
}

#[tokio::test]
async fn the_only_voter_leads_without_waiting_for_an_election_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let clock = SystemClock::new();
    for incarnation in 1..=2 {
        let begin = clock.monotonic();
        let node = Node::start_in(Arc::new(RealDisk), dir.path(), incarnation, NO_SNAPSHOTS).await;
        assert!(clock.monotonic() - begin < Duration::from_millis(900));
        node.stop().await;
    }
}
