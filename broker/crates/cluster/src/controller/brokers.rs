//! Registration of brokers and controllers (Kafka: ClusterControlManager).

use base::{NodeId, TopicId};

use super::elections::{broker_back, broker_gone};
use super::{Command, Controller, Decision};
use crate::DirectoryId;
use crate::records::{
    BrokerRegistrationChangeRecord, Endpoint, RegisterBrokerRecord, RegisterControllerRecord, SupportedFeature,
};

/// A broker says that it is there. It stays fenced until it has caught up with the metadata.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegisterBroker {
    /// The broker.
    pub broker_id: NodeId,
    /// Id of this run of its process.
    pub incarnation_id: TopicId,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
    /// Its rack.
    pub rack: Option<String>,
    /// Its log directories.
    pub log_dirs: Vec<DirectoryId>,
}

/// Why a registration is refused or does not count any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// A broker without a log directory, or with a repeated one.
    #[error("broker {0} names no log directory, or one of them twice")]
    Directories(NodeId),
    /// Another broker has the directory.
    #[error("Broker {other} is already registered with directory {directory}")]
    ForeignDirectory {
        /// The other broker.
        other: NodeId,
        /// The directory.
        directory: DirectoryId,
    },
    /// A feature of the cluster is at a level that the node does not know.
    #[error("node {node} does not support {feature} at level {level}, which the cluster has")]
    Feature {
        /// The node.
        node: NodeId,
        /// The feature.
        feature: String,
        /// Its level.
        level: i16,
    },
    /// The broker registered again since, or never.
    #[error("broker {id} is not registered with epoch {epoch}")]
    StaleBrokerEpoch {
        /// The broker.
        id: NodeId,
        /// Epoch that it gave.
        epoch: i64,
    },
}

impl Command for RegisterBroker {
    /// The epoch of the registration.
    type Answer = Result<i64, RegistrationError>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        if let Err(error) = self.check(on) {
            return Decision::unchanged(Err(error));
        }
        let existing = on.image.broker(self.broker_id);
        let same_run = existing.filter(|broker| broker.incarnation_id == self.incarnation_id);
        // A new run of the process has forgotten what it led; its leadership ends before it may begin again.
        let mut records = match same_run {
            Some(_) => Vec::new(),
            None => broker_gone(on.image, self.broker_id),
        };
        let broker_epoch = same_run.map_or(on.next_offset + records.len() as i64, |broker| broker.epoch);
        let record = RegisterBrokerRecord {
            broker_id: self.broker_id,
            is_migrating_zk_broker: false,
            incarnation_id: self.incarnation_id,
            broker_epoch,
            end_points: self.endpoints.clone(),
            features: self.features.clone(),
            rack: self.rack.clone(),
            fenced: same_run.is_none_or(|broker| broker.fenced),
            in_controlled_shutdown: same_run.is_some_and(|broker| broker.in_controlled_shutdown),
            log_dirs: self.log_dirs.clone(),
            cordoned_log_dirs: Some(Vec::new()),
        };
        records.push(record.into());
        Decision { records, answer: Ok(broker_epoch) }
    }
}

impl RegisterBroker {
    fn check(&self, on: &Controller<'_>) -> Result<(), RegistrationError> {
        let mut directories = self.log_dirs.clone();
        directories.sort_unstable();
        directories.dedup();
        if directories.is_empty() || directories.len() != self.log_dirs.len() {
            return Err(RegistrationError::Directories(self.broker_id));
        }
        for broker in on.image.brokers().filter(|broker| broker.id != self.broker_id) {
            if let Some(directory) = broker.log_dirs.iter().find(|directory| self.log_dirs.contains(directory)) {
                return Err(RegistrationError::ForeignDirectory { other: broker.id, directory: *directory });
            }
        }
        check_features(self.broker_id, &self.features, on)
    }
}

fn check_features(node: NodeId, supported: &[SupportedFeature], on: &Controller<'_>) -> Result<(), RegistrationError> {
    for (name, level) in on.image.features() {
        let range = supported.iter().find(|feature| feature.name == name);
        let known =
            range.is_some_and(|range| (range.min_supported_version..=range.max_supported_version).contains(&level));
        if !known {
            return Err(RegistrationError::Feature { node, feature: name.to_owned(), level });
        }
    }
    Ok(())
}

/// A broker has caught up and may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfenceBroker {
    /// The broker.
    pub broker_id: NodeId,
    /// Epoch of its registration.
    pub broker_epoch: i64,
}

impl Command for UnfenceBroker {
    type Answer = Result<(), RegistrationError>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        let (id, epoch) = (self.broker_id, self.broker_epoch);
        let Some(broker) = on.image.broker(id).filter(|broker| broker.epoch == epoch) else {
            return Decision::unchanged(Err(RegistrationError::StaleBrokerEpoch { id, epoch }));
        };
        if !broker.fenced {
            return Decision::unchanged(Ok(()));
        }
        let change = BrokerRegistrationChangeRecord {
            broker_id: id,
            broker_epoch: epoch,
            fenced: -1,
            ..BrokerRegistrationChangeRecord::default()
        };
        let mut records = vec![change.into()];
        records.append(&mut broker_back(on.image, id));
        Decision { records, answer: Ok(()) }
    }
}

/// A controller says that it is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegisterController {
    /// The controller.
    pub controller_id: NodeId,
    /// Id of this run of its process.
    pub incarnation_id: TopicId,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports.
    pub features: Vec<SupportedFeature>,
}

impl Command for RegisterController {
    type Answer = Result<(), RegistrationError>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        if let Err(error) = check_features(self.controller_id, &self.features, on) {
            return Decision::unchanged(Err(error));
        }
        let record = RegisterControllerRecord {
            controller_id: self.controller_id,
            incarnation_id: self.incarnation_id,
            zk_migration_ready: false,
            end_points: self.endpoints.clone(),
            features: self.features.clone(),
        };
        Decision { records: vec![record.into()], answer: Ok(()) }
    }
}
