//! Brokers and controllers as they registered.

use base::{NodeId, TopicId};

use crate::DirectoryId;
use crate::records::{Endpoint, RegisterBrokerRecord, RegisterControllerRecord, SupportedFeature};

/// A registered broker.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerRegistration {
    /// The broker.
    pub id: NodeId,
    /// Number of the registration: the offset of its record.
    pub epoch: i64,
    /// Id of the run of its process.
    pub incarnation_id: TopicId,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
    /// Its rack.
    pub rack: Option<String>,
    /// True while it may not lead.
    pub fenced: bool,
    /// True while it shuts down in order.
    pub in_controlled_shutdown: bool,
    /// Its log directories that work.
    pub log_dirs: Vec<DirectoryId>,
    /// Log directories that take no new partitions; none when the broker did not say.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl BrokerRegistration {
    /// Where the broker is reached on a listener.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.name == listener)
    }

    pub(super) fn from_record(record: &RegisterBrokerRecord) -> BrokerRegistration {
        BrokerRegistration {
            id: record.broker_id,
            epoch: record.broker_epoch,
            incarnation_id: record.incarnation_id,
            endpoints: record.end_points.clone(),
            features: record.features.clone(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            log_dirs: record.log_dirs.clone(),
            cordoned_log_dirs: record.cordoned_log_dirs.clone(),
        }
    }

    pub(super) fn to_record(&self) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id: self.id,
            is_migrating_zk_broker: false,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch,
            end_points: self.endpoints.clone(),
            features: self.features.clone(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.log_dirs.clone(),
            cordoned_log_dirs: self.cordoned_log_dirs.clone(),
        }
    }
}

/// A registered controller.
#[derive(Debug, Clone, PartialEq)]
pub struct ControllerRegistration {
    /// The controller.
    pub id: NodeId,
    /// Id of the run of its process.
    pub incarnation_id: TopicId,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
}

impl ControllerRegistration {
    pub(super) fn from_record(record: &RegisterControllerRecord) -> ControllerRegistration {
        ControllerRegistration {
            id: record.controller_id,
            incarnation_id: record.incarnation_id,
            endpoints: record.end_points.clone(),
            features: record.features.clone(),
        }
    }

    pub(super) fn to_record(&self) -> RegisterControllerRecord {
        RegisterControllerRecord {
            controller_id: self.id,
            incarnation_id: self.incarnation_id,
            zk_migration_ready: false,
            end_points: self.endpoints.clone(),
            features: self.features.clone(),
        }
    }
}
