//! Which shard a group belongs to, and what several shards answer together.

use std::sync::Arc;
use std::time::Duration;

use base::TopicId;
use base::hash::coordinator_partition;
use coordinator::group::GroupConfig;
use coordinator::group::command::{CommitOffsets, FetchOffsets, ListGroups, OffsetToCommit};

use super::{GroupCoordinator, Leadership};
use crate::runtime::coordinator::CoordinatorError;
use crate::runtime::coordinator::testing::{MemoryLog, TestClock};
use crate::security::{Authorized, Authorizer, GroupId, Operation, Session};
use crate::tasks::Tasks;

const PARTITIONS: i32 = 4;

struct Bed {
    groups: GroupCoordinator,
    logs: Vec<Arc<MemoryLog>>,
}

impl Bed {
    fn new() -> Self {
        let clock = Arc::new(TestClock::default());
        let groups = GroupCoordinator::new(GroupConfig::default(), Duration::from_secs(5), clock, Tasks::new());
        Bed { groups, logs: (0..PARTITIONS).map(|_| Arc::new(MemoryLog::default())).collect() }
    }

    /// Leads `partitions`, and waits until they are loaded.
    async fn lead(&self, partitions: &[i32]) {
        let led = partitions.iter().map(|partition| Leadership {
            topic_id: TopicId::ZERO,
            partition: *partition,
            leader_epoch: 0,
            log: self.logs[*partition as usize].clone(),
        });
        self.groups.set_leaderships(PARTITIONS, led.collect());
        for shard in self.groups.shards() {
            shard.loaded().await;
        }
    }

    async fn commit(&self, group: &str, topic: &str) -> Result<(), CoordinatorError> {
        let offset =
            OffsetToCommit { topic: topic.into(), partition: 0, offset: 7, leader_epoch: -1, metadata: "".into() };
        let commit = CommitOffsets {
            group_id: group.into(),
            member_id: "".into(),
            instance_id: None,
            generation: -1,
            retention_ms: None,
            knows_group_not_found: true,
            offsets: vec![offset],
        };
        assert_eq!(self.groups.group(&allowed(group))?.commit(commit).await?, Ok(vec![None]));
        Ok(())
    }

    async fn topics_of(&self, group: &str) -> Vec<Arc<str>> {
        let fetch = FetchOffsets { group_id: group.into(), topics: None, require_stable: false };
        let topics = self.groups.group(&allowed(group)).unwrap().fetch(fetch).await.unwrap();
        topics.into_iter().map(|topic| topic.topic).collect()
    }
}

fn allowed(group: &str) -> Authorized<GroupId> {
    let peer = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let session = Session::anonymous("PLAINTEXT".into(), peer);
    Authorizer.may(&session, Operation::Read, GroupId(group.into())).unwrap()
}

/// A group of each partition.
fn names() -> Vec<String> {
    let of =
        |partition| (0..).map(|n| format!("g{n}")).find(|name| coordinator_partition(name, PARTITIONS) == partition);
    (0..PARTITIONS).map(|partition| of(partition).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_group_belongs_to_the_shard_of_its_hash() {
    let bed = Bed::new();
    bed.lead(&[0, 1, 2, 3]).await;
    for (partition, name) in names().iter().enumerate() {
        let before = bed.logs[partition].batch_count();
        bed.commit(name, "t").await.unwrap();
        assert_eq!(bed.logs[partition].batch_count(), before + 1);
    }
    let listed = bed.groups.list(&ListGroups::default()).await.unwrap();
    assert_eq!(listed.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_led_elsewhere_is_not_coordinated_here() {
    let bed = Bed::new();
    let names = names();
    assert_eq!(bed.commit(&names[0], "t").await, Err(CoordinatorError::NotCoordinator));
    bed.lead(&[0, 2]).await;
    bed.commit(&names[0], "t").await.unwrap();
    assert_eq!(bed.commit(&names[1], "t").await, Err(CoordinatorError::NotCoordinator));
    bed.lead(&[1]).await;
    assert_eq!(bed.commit(&names[0], "t").await, Err(CoordinatorError::NotCoordinator));
    bed.lead(&[0, 1]).await;
    assert_eq!(bed.topics_of(&names[0]).await, ["t".into()], "it was loaded from its log");
}

#[tokio::test(start_paused = true)]
async fn groups_of_several_shards_are_described_and_deleted_in_the_order_asked() {
    let bed = Bed::new();
    bed.lead(&[0, 1, 2]).await;
    let names = names();
    for name in &names[..2] {
        bed.commit(name, "t").await.unwrap();
    }
    let asked: Vec<_> = [3, 1, 2, 0].iter().map(|index: &usize| allowed(&names[*index])).collect();
    let described = bed.groups.describe(&asked).await;
    let states: Vec<_> = described.iter().map(|group| group.as_ref().map(|group| group.state)).collect();
    assert_eq!(states, [Err(&CoordinatorError::NotCoordinator), Ok("Empty"), Ok("Dead"), Ok("Empty")]);
    let deleted = bed.groups.delete(&asked).await;
    let outcomes: Vec<_> = deleted.iter().map(|outcome| outcome.as_ref().map(Option::is_none)).collect();
    assert_eq!(outcomes, [Err(&CoordinatorError::NotCoordinator), Ok(true), Ok(false), Ok(true)]);
}

#[tokio::test(start_paused = true)]
async fn offsets_of_deleted_topics_go_in_every_shard() {
    let bed = Bed::new();
    bed.lead(&[0, 1, 2, 3]).await;
    let names = names();
    for name in &names {
        bed.commit(name, "gone").await.unwrap();
        bed.commit(name, "kept").await.unwrap();
    }
    bed.groups.topics_deleted(vec![("gone".into(), TopicId::ZERO)]).await;
    for name in &names {
        assert_eq!(bed.topics_of(name).await, ["kept".into()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_loading_hears_of_deleted_topics_too() {
    let bed = Bed::new();
    let names = names();
    bed.lead(&[0]).await;
    bed.commit(&names[0], "gone").await.unwrap();
    bed.lead(&[]).await;
    let log = bed.logs[0].clone();
    let again = Leadership { topic_id: TopicId::ZERO, partition: 0, leader_epoch: 1, log };
    bed.groups.set_leaderships(PARTITIONS, vec![again]);
    bed.groups.topics_deleted(vec![("gone".into(), TopicId::ZERO)]).await;
    bed.groups.shards()[0].loaded().await;
    assert!(bed.topics_of(&names[0]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_in_a_shard_that_moves_away_is_sent_to_look_for_it() {
    let bed = Bed::new();
    let names = names();
    bed.lead(&[0]).await;
    bed.logs[0].hold();
    let commit = bed.commit(&names[0], "t");
    let moved = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        bed.groups.set_leaderships::<MemoryLog>(PARTITIONS, Vec::new());
    };
    let (outcome, ()) = tokio::join!(commit, moved);
    assert_eq!(outcome, Err(CoordinatorError::NotCoordinator));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metrics_see_every_group() {
    let bed = Arc::new(Bed::new());
    bed.lead(&[0, 1]).await;
    for name in &names()[..2] {
        bed.commit(name, "t").await.unwrap();
    }
    let summaries = tokio::task::block_in_place(|| bed.groups.summaries_blocking());
    let mut offsets: Vec<_> = summaries.iter().map(|group| (&*group.group_id, group.offsets[0].offset)).collect();
    offsets.sort_unstable();
    assert_eq!(offsets.len(), 2);
    assert!(offsets.iter().all(|(_, offset)| *offset == 7));
}
