//! The controller decides: a command and the metadata at one offset become records and an answer. It changes nothing
//! itself; the host appends the records, replays them once they are committed, and only then gives the answer out.

mod alter_configs;
mod bootstrap;
mod brokers;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod elections;
mod placement;
mod producer_ids;
mod topic_name;

use base::{NodeId, Offset, TopicId};

pub use alter_configs::{AlterConfigs, AlterConfigsError, ConfigRequest, ConfigTarget};
pub use bootstrap::{Activate, FeatureRange, KRAFT_VERSION, SUPPORTED_FEATURES, bootstrap_records};
pub use brokers::{RegisterBroker, RegisterController, RegistrationError, UnfenceBroker};
pub use create_partitions::{CreatePartitions, CreatePartitionsError, PartitionsTopic};
pub use create_topics::{CreateTopics, CreateTopicsError, CreatedTopic, NewTopic};
pub use delete_topics::{DeleteTopics, DeleteTopicsError};
pub use placement::{AssignmentError, PlacementError};
pub use producer_ids::{AllocateProducerIds, PRODUCER_ID_BLOCK_LEN, ProducerIdBlock, ProducerIdsError};
pub use topic_name::{InvalidTopicName, validate_topic_name};

use crate::configs::{BrokerLayers, Lookup};
use crate::image::{ConfigResource, MetadataImage};
use crate::records::Record;

/// Most partitions that one request may make (Kafka: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;

/// What a controller decides on.
#[derive(Clone, Copy)]
pub struct Controller<'a> {
    /// The metadata, with everything that was decided before.
    pub image: &'a MetadataImage,
    /// Settings that the node was started with.
    pub settings: &'a dyn Lookup,
    /// The node that decides.
    pub node_id: NodeId,
    /// Offset that the first of the records will get.
    pub next_offset: Offset,
}

impl Controller<'_> {
    /// The settings of this node, with what was set at run time. `this_broker` is the caller's copy of the node's own
    /// dynamic settings, which the layers borrow.
    fn layers<'b>(&'b self, own: &'b ConfigResource) -> BrokerLayers<'b> {
        BrokerLayers {
            at_start: self.settings,
            all_brokers: self.image.configs(&ALL_BROKERS),
            this_broker: self.image.configs(own),
        }
    }

    fn with_layers<R>(&self, work: impl FnOnce(&BrokerLayers<'_>) -> R) -> R {
        work(&self.layers(&ConfigResource::broker(self.node_id)))
    }
}

static ALL_BROKERS: std::sync::LazyLock<ConfigResource> = std::sync::LazyLock::new(ConfigResource::all_brokers);

/// Records to append as one, and the answer for when they are committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<A> {
    /// The records; none when nothing changes.
    pub records: Vec<Record>,
    /// The answer.
    pub answer: A,
}

impl<A> Decision<A> {
    /// An answer that changes nothing.
    pub fn unchanged(answer: A) -> Decision<A> {
        Decision { records: Vec::new(), answer }
    }
}

/// Something the controller is asked to do.
pub trait Command {
    /// What the caller gets.
    type Answer;
    /// Decides; the same command on the same metadata gives the same decision.
    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer>;
}

/// Bits of an id that was drawn at random, as a seed for placement.
fn seed_of(id: TopicId) -> u64 {
    id.0.as_u128() as u64
}
