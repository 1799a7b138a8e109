//! The node as handlers see it: the settings and the handles to the owners of its state.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Clock, Entropy, NodeId};
use cluster::configs::BrokerLayers;
use cluster::controller::{FeatureRange, KRAFT_VERSION, SUPPORTED_FEATURES};
use cluster::{ConfigResource, MetadataImage};

use crate::config::Config;
use crate::observe::Metrics;
use crate::runtime::answer_bytes::AnswerBytes;
use crate::runtime::controller::ControllerHandle;
use crate::runtime::controller::store::batches::KRAFT_VERSION_LEVEL;
use crate::runtime::coordinator::GroupCoordinator;
use crate::runtime::fetch_sessions::FetchSessions;
use crate::runtime::partition::Partitions;
use crate::runtime::producer_ids::ProducerIds;
use crate::security::Authorizer;

/// Everything that a request can reach.
pub struct Node {
    /// `node.id`.
    pub node_id: NodeId,
    /// Id of the cluster, as Kafka writes it.
    pub cluster_id: Arc<str>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where random values come from.
    pub entropy: Arc<dyn Entropy>,
    /// Decides what sessions may do.
    pub authorizer: Authorizer,
    /// Counters of the node.
    pub metrics: Arc<Metrics>,
    /// Settings, as they were at the start.
    pub config: Arc<Config>,
    /// The metadata as it is in force on this node: what it says of partitions here, the partitions do.
    pub image: Arc<ArcSwap<MetadataImage>>,
    /// Changes the metadata.
    pub controller: ControllerHandle,
    /// The partitions of this node.
    pub partitions: Arc<Partitions>,
    /// Ids for producers.
    pub producer_ids: ProducerIds,
    /// The groups of this node.
    pub groups: Arc<GroupCoordinator>,
    /// What clients have asked to be remembered of their fetches.
    pub fetch_sessions: FetchSessions,
    /// Records that answers hold.
    pub answer_bytes: AnswerBytes,
}

/// Features as ApiVersions tells them.
pub struct Features {
    /// What this node can work at.
    pub supported: &'static [FeatureRange],
    /// What the cluster works at.
    pub finalized: Vec<(String, i16)>,
    /// Metadata offset at which the finalized levels were read.
    pub epoch: i64,
}

impl Node {
    /// The metadata as it is in force on this node.
    pub fn image(&self) -> Arc<MetadataImage> {
        self.image.load_full()
    }

    /// Returns when everything that the controller has agreed on so far is in force on this node, so that a client that
    /// asks next sees what it was told.
    pub async fn settled(&self) {
        self.partitions.applied(self.controller.image().offset).await;
    }

    /// Features as ApiVersions tells them.
    pub fn features(&self) -> Features {
        let image = self.image.load();
        // The level of this one stands in the raft log and not among the metadata records.
        let raft = (KRAFT_VERSION, KRAFT_VERSION_LEVEL);
        let finalized = image.features().filter(|(_, level)| *level > 0).chain([raft]);
        Features {
            supported: SUPPORTED_FEATURES,
            finalized: finalized.map(|(name, level)| (name.to_owned(), level)).collect(),
            epoch: image.offset,
        }
    }

    /// Looks a setting of this broker up in all its layers, those of run time first.
    pub fn with_layers<R>(&self, look: impl FnOnce(&BrokerLayers<'_>) -> R) -> R {
        let image = self.image.load();
        look(&BrokerLayers {
            at_start: &*self.config.settings,
            all_brokers: image.configs(&ConfigResource::all_brokers()),
            this_broker: image.configs(&ConfigResource::broker(self.node_id)),
        })
    }

    /// Most connections in all, and from `ip` (`max.connections`, `max.connections.per.ip` and its overrides).
    pub fn connection_limits(&self, ip: IpAddr) -> (usize, usize) {
        self.with_layers(|layers| {
            let limit = |name: &str| layers.number(name).and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
            let of_ip = layers.list("max.connections.per.ip.overrides").iter().find_map(|entry| {
                let (host, count) = entry.rsplit_once(':')?;
                let matches = host.trim().parse::<IpAddr>().is_ok_and(|named| named == ip);
                if matches { count.trim().parse().ok() } else { None }
            });
            (limit("max.connections"), of_ip.unwrap_or_else(|| limit("max.connections.per.ip")))
        })
    }
}
