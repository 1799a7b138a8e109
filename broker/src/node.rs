//! The node as handlers see it: the settings and the handles to the owners of its state.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Clock, Entropy, NodeId};
use cluster::MetadataImage;

use crate::config::Config;
use crate::observe::Metrics;
use crate::runtime::coordinator::GroupCoordinator;
use crate::runtime::fetch_sessions::FetchSessions;
use crate::runtime::partition::Partitions;
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
    /// The metadata of the cluster, as of now.
    pub image: Arc<ArcSwap<MetadataImage>>,
    /// The partitions of this node.
    pub partitions: Arc<Partitions>,
    /// What clients have asked to be remembered of their fetches.
    pub fetch_sessions: FetchSessions,
    /// The groups that this node coordinates.
    pub groups: Arc<GroupCoordinator>,
}

/// Levels of a feature that this node can work at.
#[derive(Debug, Clone, Copy)]
pub struct FeatureRange {
    /// Name of the feature.
    pub name: &'static str,
    /// Lowest level.
    pub min: i16,
    /// Highest level.
    pub max: i16,
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
    /// Features as ApiVersions tells them.
    pub fn features(&self) -> Features {
        Features { supported: &[], finalized: Vec::new(), epoch: -1 }
    }

    /// Most connections in all, and from `ip`.
    pub fn connection_limits(&self, _ip: IpAddr) -> (usize, usize) {
        (usize::MAX, usize::MAX)
    }
}
