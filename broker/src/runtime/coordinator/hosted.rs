//! Brings groups and partitions together: the shards' logs are partitions of `__consumer_offsets`, the leaderships come
//! from the metadata, and the topic itself is made when somebody first looks for a group.

use std::sync::Arc;
use std::time::Duration;

use base::topics::GROUP_METADATA_TOPIC;
use base::{Entropy, NodeId, Offset, TopicId};
use bytes::{Bytes, BytesMut};
use cluster::controller::{CreateTopics, CreateTopicsError, NewTopic};
use cluster::{MetadataDelta, MetadataImage};
use partition_log::{Access, AppendError, AppendOrigin, Bound, ReadError, ReadRequest};

use super::groups::{GroupCoordinator, Leadership};
use super::log::{ShardLog, ShardLogError};
use crate::config::InternalTopicConfig;
use crate::runtime::controller::ControllerHandle;
use crate::runtime::partition::{AppendFailure, Partition, Partitions, Waiter};
use crate::tasks::{StopSignal, Tasks};

/// Pause after an attempt to make the topic, so that clients that ask again and again do not press the controller.
const TOPIC_ATTEMPT_PAUSE: Duration = Duration::from_millis(100);

impl ShardLog for Partition {
    async fn append(&self, batch: Vec<u8>) -> Result<(), ShardLogError> {
        let records = BytesMut::from(Bytes::from(batch));
        let appended = Partition::append(self, records, AppendOrigin::Coordinator).await.map_err(append_error)?;
        committed(self, appended.last_offset).await;
        Ok(())
    }

    async fn read(&self, offset: Offset, bytes_max: usize) -> Result<Bytes, ShardLogError> {
        // What a leader holds is never taken back, so that also what is not yet committed belongs to the state.
        let request = ReadRequest { offset, max_bytes: bytes_max, min_one_batch: true, bound: Bound::LogEnd };
        let read = match self.reader().read(&request, Access::NoWait) {
            Err(ReadError::WouldBlock) => {
                let reader = self.reader().clone();
                let waited = Tasks::run_aside(move || reader.read(&request, Access::Wait)).await;
                waited.ok_or_else(|| ShardLogError::Unavailable("the read was broken off".to_owned()))?
            }
            read => read,
        };
        Ok(read.map_err(read_error)?.records)
    }

    fn log_start_offset(&self) -> Offset {
        self.reader().log_start_offset()
    }

    fn batch_bytes_max(&self) -> usize {
        usize::try_from(self.topic().config.load().max_message_bytes).unwrap_or(0)
    }
}

/// Returns when every in-sync replica has the record.
async fn committed(partition: &Partition, last_offset: Offset) {
    let waiter = Waiter::new();
    loop {
        // Added before the look, so that a change in between is not missed.
        partition.add_waiter(&waiter);
        if partition.reader().high_watermark() > last_offset {
            return;
        }
        waiter.changed().await;
    }
}

fn append_error(failure: AppendFailure) -> ShardLogError {
    match failure {
        AppendFailure::Closed => ShardLogError::NotLeader,
        AppendFailure::Refused(error) => match error {
            AppendError::Producer(_)
            | AppendError::Malformed(_)
            | AppendError::Corrupt { .. }
            | AppendError::Empty
            | AppendError::UnexpectedOffset { .. }
            | AppendError::LargerThanSegment { .. }
            | AppendError::Storage(_)
            | AppendError::Offline => ShardLogError::Unavailable(error.to_string()),
        },
    }
}

fn read_error(error: ReadError) -> ShardLogError {
    match error {
        ReadError::Closed => ShardLogError::NotLeader,
        ReadError::OutOfRange { .. } | ReadError::WouldBlock | ReadError::Corrupt { .. } | ReadError::Storage(_) => {
            ShardLogError::Unavailable(error.to_string())
        }
    }
}

/// Puts the leaderships of `image` in force and forgets offsets of deleted topics. The partitions of `image` are open.
pub async fn follow(
    groups: &GroupCoordinator,
    partitions: &Partitions,
    node_id: NodeId,
    image: &MetadataImage,
    delta: &MetadataDelta,
) {
    take_leaderships(groups, partitions, node_id, image, delta);
    if !delta.topics_deleted.is_empty() {
        let deleted = delta.topics_deleted.iter().map(|(id, topic)| (topic.name.clone(), *id));
        groups.topics_deleted(deleted.collect()).await;
    }
}

fn take_leaderships(
    groups: &GroupCoordinator,
    partitions: &Partitions,
    node_id: NodeId,
    image: &MetadataImage,
    delta: &MetadataDelta,
) {
    let Some(topic) = image.topic(GROUP_METADATA_TOPIC) else {
        if delta.topics_deleted.values().any(|topic| &*topic.name == GROUP_METADATA_TOPIC) {
            groups.set_leaderships::<Partition>(0, Vec::new());
        }
        return;
    };
    if !delta.partitions_changed.iter().any(|(id, _)| *id == topic.id) {
        return;
    }
    let held = partitions.topics().into_iter().find(|entry| entry.topic.id == topic.id);
    let held = held.iter().flat_map(|entry| entry.partitions.iter().flatten());
    let led = held.filter_map(|partition| {
        let state = topic.partition(partition.index()).filter(|state| state.leader == node_id)?;
        Some(Leadership {
            topic_id: topic.id,
            partition: partition.index(),
            leader_epoch: state.leader_epoch,
            log: partition.clone(),
        })
    });
    groups.set_leaderships(i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX), led.collect());
}

/// Makes `__consumer_offsets` when somebody looks for a group and it does not exist.
pub async fn make_topic_when_wanted(
    groups: Arc<GroupCoordinator>,
    controller: ControllerHandle,
    config: InternalTopicConfig,
    entropy: Arc<dyn Entropy>,
    mut stop: StopSignal,
) {
    loop {
        tokio::select! {
            () = stop.stopped() => return,
            () = groups.topic_wanted() => {}
        }
        if controller.image().topic(GROUP_METADATA_TOPIC).is_none() {
            make_topic(&controller, &config, &*entropy).await;
            tokio::time::sleep(TOPIC_ATTEMPT_PAUSE).await;
        }
    }
}

async fn make_topic(controller: &ControllerHandle, config: &InternalTopicConfig, entropy: &dyn Entropy) {
    let command = CreateTopics { topics: vec![offsets_topic(config, TopicId(entropy.uuid()))], validate_only: false };
    match controller.run(command).await {
        Ok(outcomes) => {
            for outcome in outcomes {
                match outcome {
                    Ok(_) | Err(CreateTopicsError::Exists(_)) => {}
                    Err(error) => {
                        tracing::error!(%error, "{GROUP_METADATA_TOPIC} cannot be made, and groups wait for it; look at offsets.topic.replication.factor")
                    }
                }
            }
        }
        Err(error) => tracing::warn!(%error, "{GROUP_METADATA_TOPIC} could not be made now; groups have to wait"),
    }
}

/// The topic with its settings (Kafka: GroupCoordinatorService.groupMetadataTopicConfigs).
fn offsets_topic(config: &InternalTopicConfig, id: TopicId) -> NewTopic {
    let set = |name: &str, value: String| (name.to_owned(), Some(value));
    NewTopic {
        name: GROUP_METADATA_TOPIC.to_owned(),
        id,
        partitions: config.partitions,
        replication_factor: config.replication_factor,
        assignments: Vec::new(),
        configs: vec![
            set("cleanup.policy", "compact".to_owned()),
            set("compression.type", "producer".to_owned()),
            set("segment.bytes", config.segment_bytes.to_string()),
        ],
    }
}
