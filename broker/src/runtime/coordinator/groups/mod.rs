//! The group coordinator of this node: one shard for each partition of `__consumer_offsets` that it leads. Groups are
//! reached only with proof of permission.

mod handle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::hash::coordinator_partition;
use base::topics::GROUP_METADATA_TOPIC;
use base::{Clock, LeaderEpoch, PartitionIndex, TopicId};
use coordinator::group::command::{DescribedGroup, ListGroups, ListedGroup};
use coordinator::group::{Answer, Command, GroupConfig, GroupError, GroupMachine, GroupSummary};

use tokio::sync::Notify;

use crate::config::GroupsConfig;
use crate::runtime::coordinator::error::CoordinatorError;
use crate::runtime::coordinator::log::ShardLog;
use crate::runtime::coordinator::shard::{Asked, Shard, ShardOwnership, start_shard};
use crate::security::{Authorized, GroupId};
use crate::tasks::Tasks;

pub use handle::GroupHandle;

/// Longest wait of a scrape for one shard.
const INSPECT_LIMIT: Duration = Duration::from_secs(1);

/// A partition of `__consumer_offsets` that this node leads.
pub struct Leadership<L> {
    /// Id of the topic.
    pub topic_id: TopicId,
    /// Index of the partition.
    pub partition: PartitionIndex,
    /// Epoch of the leadership.
    pub leader_epoch: LeaderEpoch,
    /// Its log.
    pub log: Arc<L>,
}

#[derive(Clone)]
struct Led {
    of: (TopicId, LeaderEpoch),
    shard: Shard<GroupMachine>,
    ownership: Arc<ShardOwnership>,
}

#[derive(Default)]
struct Published {
    /// Partitions of `__consumer_offsets`; 0 while the topic does not exist.
    partition_count: i32,
    shards: BTreeMap<PartitionIndex, Led>,
}

/// The groups that this node coordinates.
pub struct GroupCoordinator {
    config: GroupConfig,
    commit_timeout: Duration,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    published: ArcSwap<Published>,
    topic_wanted: Notify,
}

impl GroupCoordinator {
    /// No group yet, under the settings of the node.
    pub fn from_config(config: &GroupsConfig, clock: Arc<dyn Clock>, tasks: Tasks) -> Self {
        let millis = u64::try_from(config.commit_timeout_ms).unwrap_or(0);
        let rules = GroupConfig {
            session_timeout_min_ms: config.session_timeout_min_ms,
            session_timeout_max_ms: config.session_timeout_max_ms,
            group_size_max: usize::try_from(config.members_max).unwrap_or(0),
            initial_rebalance_delay_ms: config.initial_rebalance_delay_ms,
            offset_metadata_len_max: usize::try_from(config.offset_metadata_bytes_max).unwrap_or(0),
            offsets_retention_ms: config.offsets_retention_ms,
            offsets_retention_check_interval_ms: config.offsets_retention_check_interval_ms,
            ..GroupConfig::default()
        };
        GroupCoordinator::new(rules, Duration::from_millis(millis), clock, tasks)
    }

    /// No group yet. `commit_timeout` is `offsets.commit.timeout.ms`.
    pub fn new(config: GroupConfig, commit_timeout: Duration, clock: Arc<dyn Clock>, tasks: Tasks) -> Self {
        GroupCoordinator {
            config,
            commit_timeout,
            clock,
            tasks,
            published: ArcSwap::default(),
            topic_wanted: Notify::new(),
        }
    }

    /// Takes over the leaderships that this node now has, all of them: shards that are new are loaded, shards that are
    /// gone are unloaded. Called by the one task that follows the metadata.
    pub fn set_leaderships<L: ShardLog>(&self, partition_count: i32, led: Vec<Leadership<L>>) {
        let before = self.published.load();
        let mut shards = BTreeMap::new();
        for Leadership { topic_id, partition, leader_epoch, log } in led {
            let of = (topic_id, leader_epoch);
            // Under another epoch somebody else may have led in between, and then what is loaded is out of date.
            let (shard, ownership) = match before.shards.get(&partition).filter(|led| led.of == of) {
                Some(led) => (led.shard.clone(), led.ownership.clone()),
                None => self.load_shard(partition, log),
            };
            shards.insert(partition, Led { of, shard, ownership });
        }
        self.published.store(Arc::new(Published { partition_count, shards }));
    }

    fn load_shard<L: ShardLog>(
        &self,
        partition: PartitionIndex,
        log: Arc<L>,
    ) -> (Shard<GroupMachine>, Arc<ShardOwnership>) {
        let name = format!("{GROUP_METADATA_TOPIC}-{partition}");
        let config = self.config.clone();
        let machine = move || GroupMachine::new(config.clone());
        let (shard, ownership) = start_shard(&self.tasks, name, log, machine, self.clock.clone());
        (shard, Arc::new(ownership))
    }

    /// Somebody looks for a group and `__consumer_offsets` does not exist yet.
    pub fn want_topic(&self) {
        self.topic_wanted.notify_one();
    }

    /// Returns when `__consumer_offsets` shall be made.
    pub async fn topic_wanted(&self) {
        self.topic_wanted.notified().await;
    }

    /// The topics are gone: their offsets are removed from every group, before anything that is asked later.
    pub async fn topics_deleted(&self, topics: Vec<(Arc<str>, TopicId)>) {
        for shard in self.shards() {
            shard.post(Command::TopicsDeleted(topics.clone())).await;
        }
    }

    fn shards(&self) -> Vec<Shard<GroupMachine>> {
        self.published.load().shards.values().map(|led| led.shard.clone()).collect()
    }

    fn shard_of(&self, group_id: &str) -> Result<Shard<GroupMachine>, CoordinatorError> {
        let published = self.published.load();
        if published.partition_count == 0 {
            return Err(CoordinatorError::NotCoordinator);
        }
        let partition = coordinator_partition(group_id, published.partition_count);
        let led = published.shards.get(&partition).ok_or(CoordinatorError::NotCoordinator)?;
        Ok(led.shard.clone())
    }

    /// The handle to a group that the session may use.
    ///
    /// # Errors
    /// This node does not coordinate the group.
    pub fn group(&self, group: &Authorized<GroupId>) -> Result<GroupHandle, CoordinatorError> {
        let group_id = group.get().0.clone();
        Ok(GroupHandle::new(self.shard_of(&group_id)?, group_id, self.commit_timeout))
    }

    /// Describes groups, in the order given.
    pub async fn describe(&self, groups: &[Authorized<GroupId>]) -> Vec<Result<DescribedGroup, CoordinatorError>> {
        self.each_by_shard(groups, Command::Describe, |answer| match answer {
            Answer::Describe(described) => Ok(described),
            _ => Err(CoordinatorError::OtherAnswer),
        })
        .await
    }

    /// Deletes groups; one outcome for each, in the order given.
    pub async fn delete(&self, groups: &[Authorized<GroupId>]) -> Vec<Result<Option<GroupError>, CoordinatorError>> {
        self.each_by_shard(groups, Command::DeleteGroups, |answer| match answer {
            Answer::DeleteGroups(deleted) => Ok(deleted.into_iter().map(|(_, error)| error).collect()),
            _ => Err(CoordinatorError::OtherAnswer),
        })
        .await
    }

    /// Asks each shard once about those of the groups that are its own.
    async fn each_by_shard<T>(
        &self,
        groups: &[Authorized<GroupId>],
        command: impl Fn(Vec<Arc<str>>) -> Command,
        outcomes: impl Fn(Answer) -> Result<Vec<T>, CoordinatorError>,
    ) -> Vec<Result<T, CoordinatorError>> {
        let count = self.published.load().partition_count.max(1);
        let mut by_partition: BTreeMap<PartitionIndex, Vec<usize>> = BTreeMap::new();
        for (place, group) in groups.iter().enumerate() {
            by_partition.entry(coordinator_partition(&group.get().0, count)).or_default().push(place);
        }
        let mut asked = Vec::with_capacity(by_partition.len());
        for places in by_partition.into_values() {
            let ids: Vec<Arc<str>> = places.iter().map(|place| groups[*place].get().0.clone()).collect();
            let begun = match ids.first().map_or(Err(CoordinatorError::NotCoordinator), |id| self.shard_of(id)) {
                Ok(shard) => shard.begin(command(ids)).await,
                Err(error) => Err(error),
            };
            asked.push((places, begun));
        }
        let mut results: Vec<Result<T, CoordinatorError>> =
            groups.iter().map(|_| Err(CoordinatorError::OtherAnswer)).collect();
        for (places, begun) in asked {
            match self.answer_of(begun).await.and_then(&outcomes) {
                Ok(values) => {
                    for (place, value) in places.into_iter().zip(values) {
                        results[place] = Ok(value);
                    }
                }
                Err(error) => places.into_iter().for_each(|place| results[place] = Err(error.clone())),
            }
        }
        results
    }

    async fn answer_of(
        &self,
        begun: Result<Asked<GroupMachine>, CoordinatorError>,
    ) -> Result<Answer, CoordinatorError> {
        let answer = begun?.answer();
        tokio::time::timeout(self.commit_timeout, answer).await.unwrap_or(Err(CoordinatorError::NotAvailable))
    }

    /// The groups that this node coordinates and `filter` lets pass.
    ///
    /// # Errors
    /// A shard is still loading: the list would be incomplete.
    pub async fn list(&self, filter: &ListGroups) -> Result<Vec<ListedGroup>, CoordinatorError> {
        let mut asked = Vec::new();
        for shard in self.shards() {
            asked.push(shard.begin(Command::List(filter.clone())).await);
        }
        let mut groups = Vec::new();
        for begun in asked {
            match self.answer_of(begun).await {
                Ok(Answer::List(listed)) => groups.extend(listed),
                Ok(_) => return Err(CoordinatorError::OtherAnswer),
                // The shard has just moved: another node lists its groups.
                Err(CoordinatorError::NotCoordinator) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(groups)
    }

    /// The groups as metrics show them. Blocks the thread, which must not be one that answers requests. Shards that are
    /// not loaded, or too busy, are left out.
    pub fn summaries_blocking(&self) -> Vec<GroupSummary> {
        let shards = self.shards().into_iter();
        shards.filter_map(|shard| shard.inspect_blocking(INSPECT_LIMIT, GroupMachine::summaries)).flatten().collect()
    }
}
