//! The group coordinator follows the metadata: it loads the shards that this node leads, removes the offsets of deleted
//! topics, and has `__consumer_offsets` made when it is first needed.

use std::sync::Arc;
use std::time::Duration;

use base::{Entropy, NodeId, TopicId};
use cluster::controller::{CreateTopics, CreateTopicsError, NewTopic};
use cluster::{MetadataDelta, MetadataImage};

use super::groups::{GroupCoordinator, Leadership, OFFSETS_TOPIC};
use super::partition_log::PartitionShardLog;
use crate::config::InternalTopicConfig;
use crate::runtime::controller::{ControllerHandle, MetadataFollower};
use crate::runtime::partition::Partitions;
use crate::security::{Authorizer, TopicName};

/// Pause after an attempt to make the topic, so that clients that ask again and again do not press the controller.
const TOPIC_ATTEMPT_PAUSE: Duration = Duration::from_millis(100);

/// What the follower works with.
pub struct FollowSettings {
    /// The coordinator.
    pub groups: Arc<GroupCoordinator>,
    /// This node.
    pub node_id: NodeId,
    /// The partitions of this node.
    pub partitions: Arc<Partitions>,
    /// Gives leave to the node's own work.
    pub authorizer: Authorizer,
}

/// Follows the metadata until the controller ends.
pub async fn follow(settings: FollowSettings, mut metadata: MetadataFollower) {
    while let Some((image, delta)) = metadata.changed().await {
        // The logs of new partitions are open only when the change is in force here.
        settings.partitions.applied(image.offset).await;
        settings.take_leaderships(&image, &delta);
        let deleted: Vec<(Arc<str>, TopicId)> =
            delta.topics_deleted.iter().map(|(id, topic)| (topic.name.clone(), *id)).collect();
        if !deleted.is_empty() {
            settings.groups.topics_deleted(deleted).await;
        }
    }
}

impl FollowSettings {
    fn take_leaderships(&self, image: &MetadataImage, delta: &MetadataDelta) {
        let Some(topic) = image.topic(OFFSETS_TOPIC) else {
            if self.groups.is_loaded() {
                self.groups.set_leaderships::<PartitionShardLog>(0, Vec::new());
            }
            return;
        };
        if !delta.partitions_changed.iter().any(|(id, _)| *id == topic.id) {
            return;
        }
        let name = self.authorizer.for_the_node_itself(TopicName(topic.name.clone()));
        let mut led = Vec::new();
        for (partition, state) in (0..).zip(topic.partitions()) {
            if state.leader != self.node_id {
                continue;
            }
            match self.partitions.get(&name, partition) {
                Ok(found) => led.push(Leadership {
                    topic_id: topic.id,
                    partition,
                    leader_epoch: state.leader_epoch,
                    log: Arc::new(PartitionShardLog::new(found)),
                }),
                Err(error) => tracing::error!(partition, %error, "groups of this partition cannot be served"),
            }
        }
        // The count fits: Kafka's records count partitions in 32 bits.
        self.groups.set_leaderships(topic.partitions().len() as i32, led);
    }
}

/// Has `__consumer_offsets` made whenever somebody needs it and it is not there.
pub async fn make_topic_when_wanted(
    groups: Arc<GroupCoordinator>,
    controller: ControllerHandle,
    config: InternalTopicConfig,
    entropy: Arc<dyn Entropy>,
) {
    loop {
        groups.topic_wanted().await;
        if controller.image().topic(OFFSETS_TOPIC).is_none() {
            make_topic(&controller, &config, &*entropy).await;
            tokio::time::sleep(TOPIC_ATTEMPT_PAUSE).await;
        }
    }
}

async fn make_topic(controller: &ControllerHandle, config: &InternalTopicConfig, entropy: &dyn Entropy) {
    let setting = |name: &str, value: String| (name.to_owned(), Some(value));
    let topic = NewTopic {
        name: OFFSETS_TOPIC.to_owned(),
        id: TopicId(entropy.uuid()),
        partitions: config.partitions,
        replication_factor: config.replication_factor,
        assignments: Vec::new(),
        configs: vec![
            setting("cleanup.policy", "compact".to_owned()),
            setting("compression.type", "producer".to_owned()),
            setting("segment.bytes", config.segment_bytes.to_string()),
        ],
    };
    match controller.run(CreateTopics { topics: vec![topic], validate_only: false }).await {
        Ok(outcomes) => {
            for outcome in outcomes {
                match outcome {
                    Ok(_) | Err(CreateTopicsError::Exists(_)) => {}
                    Err(error) => tracing::error!(%error, "{OFFSETS_TOPIC} cannot be made (offsets.topic.*)"),
                }
            }
        }
        Err(error) => tracing::warn!(%error, "{OFFSETS_TOPIC} could not be made now"),
    }
}
