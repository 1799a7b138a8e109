//! The cluster's metadata at one offset of the metadata log. Made of persistent maps: a clone costs a few pointers and
//! shares everything, so an image is published as it is and the next one is built beside it.

mod delta;
mod loader;
mod nodes;
mod replay;
mod snapshot;
mod topics;

use std::sync::Arc;

use base::{LeaderEpoch, NodeId, Offset, PartitionIndex, ProducerId, TopicId};
use imbl::OrdMap;

pub use delta::MetadataDelta;
pub use loader::Loader;
pub use nodes::{BrokerRegistration, ControllerRegistration};
pub use replay::ReplayError;
pub use topics::{PartitionImage, ReplicaSets, TopicImage};

use crate::records::{AccessControlEntryRecord, DelegationTokenRecord, QuotaEntity, UserScramCredentialRecord};

/// Name of the feature whose level says which records may be written.
pub const METADATA_VERSION: &str = "metadata.version";

/// Whose dynamic settings they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i8)]
pub enum ResourceKind {
    /// A topic.
    Topic = 2,
    /// A broker, or all brokers when the name is empty.
    Broker = 4,
    /// A subscription to client metrics.
    ClientMetrics = 16,
    /// A group.
    Group = 32,
}

impl ResourceKind {
    /// The kind with this code of Kafka's ConfigResource.Type.
    pub fn from_code(code: i8) -> Option<ResourceKind> {
        [ResourceKind::Topic, ResourceKind::Broker, ResourceKind::ClientMetrics, ResourceKind::Group]
            .into_iter()
            .find(|kind| *kind as i8 == code)
    }
}

/// Something that has dynamic settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its name.
    pub name: Arc<str>,
}

impl ConfigResource {
    /// The settings of a topic.
    pub fn topic(name: impl Into<Arc<str>>) -> ConfigResource {
        ConfigResource { kind: ResourceKind::Topic, name: name.into() }
    }

    /// The settings of one broker.
    pub fn broker(id: NodeId) -> ConfigResource {
        ConfigResource { kind: ResourceKind::Broker, name: id.to_string().into() }
    }

    /// The default of the settings of all brokers.
    pub fn all_brokers() -> ConfigResource {
        ConfigResource { kind: ResourceKind::Broker, name: "".into() }
    }
}

/// Dynamic settings of one resource, by name.
pub type ConfigMap = OrdMap<Arc<str>, Arc<str>>;

/// The metadata up to and including one offset.
#[derive(Debug, Clone, Default)]
pub struct MetadataImage {
    /// Offset of the last record that the image contains, -1 before the first.
    pub offset: Offset,
    /// Epoch of that record.
    pub epoch: LeaderEpoch,
    topics: OrdMap<TopicId, Arc<TopicImage>>,
    topic_ids: OrdMap<Arc<str>, TopicId>,
    /// Names that contain `.` or `_`, by their form in which both are the same.
    collisions: OrdMap<Arc<str>, Arc<str>>,
    configs: OrdMap<ConfigResource, ConfigMap>,
    no_configs: ConfigMap,
    brokers: OrdMap<NodeId, Arc<BrokerRegistration>>,
    controllers: OrdMap<NodeId, Arc<ControllerRegistration>>,
    features: OrdMap<Arc<str>, i16>,
    next_producer_id: ProducerId,
    client_quotas: OrdMap<QuotaKey, OrdMap<Arc<str>, f64>>,
    scram: OrdMap<(Arc<str>, i8), Arc<UserScramCredentialRecord>>,
    acls: OrdMap<TopicId, Arc<AccessControlEntryRecord>>,
    delegation_tokens: OrdMap<Arc<str>, Arc<DelegationTokenRecord>>,
}

impl MetadataImage {
    /// The image of an empty log.
    pub fn empty() -> MetadataImage {
        MetadataImage { offset: -1, epoch: -1, ..MetadataImage::default() }
    }

    /// A topic by its name.
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    /// A topic by its id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// All topics in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.topic_ids.values().filter_map(|id| self.topics.get(id))
    }

    /// Topics whose names are `name` or follow it, in the order of their names.
    pub fn topics_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<TopicImage>> + use<'a> {
        let name: Arc<str> = name.into();
        self.topic_ids.range(name..).filter_map(|(_, id)| self.topics.get(id))
    }

    /// Number of topics.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// A partition by topic id and index.
    pub fn partition(&self, topic: TopicId, index: PartitionIndex) -> Option<&PartitionImage> {
        self.topics.get(&topic)?.partition(index)
    }

    /// An existing topic whose name differs from `name` in `.` and `_` only, or is `name` (Kafka: metrics cannot tell
    /// such names apart).
    pub fn colliding_topic(&self, name: &str) -> Option<&Arc<str>> {
        self.collisions.get(collision_form(name)?.as_str())
    }

    /// Dynamic settings of a resource; empty when it has none.
    pub fn configs(&self, resource: &ConfigResource) -> &ConfigMap {
        self.configs.get(resource).unwrap_or(&self.no_configs)
    }

    /// Dynamic settings of a topic; empty when it has none.
    pub fn topic_configs(&self, name: &str) -> &ConfigMap {
        self.configs(&ConfigResource::topic(name))
    }

    /// Resources that have dynamic settings.
    pub fn configured(&self) -> impl Iterator<Item = (&ConfigResource, &ConfigMap)> {
        self.configs.iter()
    }

    /// Registered brokers in the order of their ids, fenced ones included.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<BrokerRegistration>> {
        self.brokers.values()
    }

    /// A registered broker.
    pub fn broker(&self, id: NodeId) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&id)
    }

    /// True for a broker that may lead: registered, not fenced, not shutting down.
    pub fn is_active(&self, id: NodeId) -> bool {
        self.broker(id).is_some_and(|broker| !broker.fenced && !broker.in_controlled_shutdown)
    }

    /// Registered controllers in the order of their ids.
    pub fn controllers(&self) -> impl Iterator<Item = &Arc<ControllerRegistration>> {
        self.controllers.values()
    }

    /// A registered controller.
    pub fn controller(&self, id: NodeId) -> Option<&Arc<ControllerRegistration>> {
        self.controllers.get(&id)
    }

    /// Finalized level of a feature; none means 0.
    pub fn feature(&self, name: &str) -> Option<i16> {
        self.features.get(name).copied()
    }

    /// Finalized levels in the order of their names.
    pub fn features(&self) -> impl Iterator<Item = (&str, i16)> {
        self.features.iter().map(|(name, level)| (&**name, *level))
    }

    /// The first producer id that no block contains yet.
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }

    /// SCRAM credentials by user and mechanism.
    pub fn scram_credentials(&self) -> impl Iterator<Item = &Arc<UserScramCredentialRecord>> {
        self.scram.values()
    }

    /// Access control entries by id.
    pub fn acls(&self) -> impl Iterator<Item = &Arc<AccessControlEntryRecord>> {
        self.acls.values()
    }
}

/// The form in which `.` and `_` are the same, for a name that has one of them (Kafka: Topic.unifyCollisionChars).
fn collision_form(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}

/// Parts of the name of a quota's entity, sorted: type and name, or none for the default of the type.
type QuotaKey = Vec<(Arc<str>, Option<Arc<str>>)>;

/// A quota entity as a key that has an order.
fn quota_key(entity: &[QuotaEntity]) -> QuotaKey {
    let mut key: QuotaKey = entity
        .iter()
        .map(|part| (part.entity_type.as_str().into(), part.entity_name.as_deref().map(Into::into)))
        .collect();
    key.sort();
    key
}
