//! IncrementalAlterConfigs and AlterConfigs (Kafka: ConfigurationControlManager, ControllerConfigurationValidator).

use std::collections::BTreeMap;

use base::NodeId;

use super::bootstrap::ELR_VERSION;
use super::{Command, Controller, Decision, InvalidTopicName, validate_topic_name};
use crate::configs::broker::BrokerConfigError;
use crate::configs::client_metrics::ClientMetricsConfigError;
use crate::configs::group::GroupConfigError;
use crate::configs::{
    AlterError, Alteration, Change, ConfigKind, TopicConfigError, alter, broker, client_metrics, group, topic,
};
use crate::image::{ConfigResource, ResourceKind};
use crate::records::{ConfigRecord, Record};

/// What to do with the settings of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigRequest {
    /// Change these and keep the rest.
    Incremental(Vec<Alteration>),
    /// Set these and take the rest back.
    Replacement(Vec<(String, Option<String>)>),
}

/// A resource and what to do with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigTarget {
    /// The resource.
    pub resource: ConfigResource,
    /// What to do.
    pub request: ConfigRequest,
}

/// Changes dynamic settings. Resources stand once: the caller has refused repeated ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlterConfigs {
    /// The resources.
    pub targets: Vec<ConfigTarget>,
    /// True to only find out what would happen.
    pub validate_only: bool,
}

/// Why the settings of a resource stay as they are. The texts are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlterConfigsError {
    /// What was asked for makes no sense.
    #[error(transparent)]
    Alter(#[from] AlterError),
    /// Not a topic's name.
    #[error(transparent)]
    TopicName(#[from] InvalidTopicName),
    /// A topic does not accept it.
    #[error(transparent)]
    Topic(#[from] TopicConfigError),
    /// A broker does not accept it.
    #[error(transparent)]
    Broker(#[from] BrokerConfigError),
    /// A group does not accept it.
    #[error(transparent)]
    Group(#[from] GroupConfigError),
    /// A client-metrics subscription does not accept it.
    #[error(transparent)]
    ClientMetrics(#[from] ClientMetricsConfigError),
    /// Eligible leader replicas need one minimum for the whole cluster (KIP-966).
    #[error("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")]
    BrokerMinimum,
    /// Eligible leader replicas need a minimum for the whole cluster (KIP-966).
    #[error("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")]
    NoClusterMinimum,
    /// The settings of all topics cannot be set.
    #[error("Default topic resources are not allowed.")]
    AllTopics,
    /// The settings of all groups cannot be set.
    #[error("Default group resources are not allowed.")]
    AllGroups,
    /// A broker's name is a number.
    #[error("Unable to parse broker name as a base 10 number.")]
    BrokerName,
    /// A broker's name is not negative.
    #[error("Invalid negative broker ID.")]
    NegativeBroker,
    /// No such topic.
    #[error("The topic '{0}' does not exist.")]
    UnknownTopic(String),
    /// No such node.
    #[error("No node with id {0} found.")]
    UnknownNode(NodeId),
}

impl Command for AlterConfigs {
    /// One result for each resource, in the order of the request.
    type Answer = Vec<Result<(), AlterConfigsError>>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        let mut records = Vec::new();
        let one = |target: &ConfigTarget| {
            let changes = alter_one(target, on)?;
            records.extend(changes.into_iter().map(|change| record(&target.resource, change)));
            Ok(())
        };
        let answer = self.targets.iter().map(one).collect();
        if self.validate_only {
            records.clear();
        }
        Decision { records, answer }
    }
}

fn record(resource: &ConfigResource, change: Change) -> Record {
    let record = ConfigRecord {
        resource_type: resource.kind as i8,
        resource_name: resource.name.to_string(),
        name: change.name,
        value: change.value,
    };
    record.into()
}

fn alter_one(target: &ConfigTarget, on: &Controller<'_>) -> Result<Vec<Change>, AlterConfigsError> {
    let resource = &target.resource;
    let current = on.image.configs(resource);
    let kind = match resource.kind {
        ResourceKind::Topic => ConfigKind::Topic,
        ResourceKind::Broker => ConfigKind::Broker,
        ResourceKind::ClientMetrics => ConfigKind::ClientMetrics,
        ResourceKind::Group => ConfigKind::Group,
    };
    let changes = match &target.request {
        ConfigRequest::Incremental(asked) => alter::incremental(kind, current, asked)?,
        ConfigRequest::Replacement(wanted) => alter::replacement(kind, current, wanted)?,
    };
    check_minimum(resource, &changes, on)?;
    check_result(resource, &alter::after(current, &changes), on)?;
    check_exists(resource, on)?;
    Ok(changes)
}

fn check_result(
    resource: &ConfigResource,
    after: &BTreeMap<String, String>,
    on: &Controller<'_>,
) -> Result<(), AlterConfigsError> {
    match resource.kind {
        ResourceKind::Topic if resource.name.is_empty() => Err(AlterConfigsError::AllTopics),
        ResourceKind::Topic => {
            validate_topic_name(&resource.name)?;
            Ok(on.with_layers(|layers| topic::validate(after, layers))?)
        }
        ResourceKind::Group if resource.name.is_empty() => Err(AlterConfigsError::AllGroups),
        ResourceKind::Group => Ok(on.with_layers(|layers| group::validate(after, layers))?),
        ResourceKind::Broker => {
            broker_id(&resource.name)?;
            Ok(on.with_layers(|layers| broker::validate(after, !resource.name.is_empty(), layers))?)
        }
        ResourceKind::ClientMetrics => Ok(client_metrics::validate(&resource.name, after)?),
    }
}

fn check_minimum(resource: &ConfigResource, changes: &[Change], on: &Controller<'_>) -> Result<(), AlterConfigsError> {
    let minimum = changes.iter().find(|change| change.name == "min.insync.replicas");
    let (ResourceKind::Broker, Some(change)) = (resource.kind, minimum) else { return Ok(()) };
    if on.image.feature(ELR_VERSION).is_none_or(|level| level == 0) {
        Ok(())
    } else if !resource.name.is_empty() {
        Err(AlterConfigsError::BrokerMinimum)
    } else if change.value.is_none() {
        Err(AlterConfigsError::NoClusterMinimum)
    } else {
        Ok(())
    }
}

/// The broker that a name means; none for all brokers.
fn broker_id(name: &str) -> Result<Option<NodeId>, AlterConfigsError> {
    if name.is_empty() {
        return Ok(None);
    }
    match name.parse::<i32>() {
        Ok(id) if id < 0 => Err(AlterConfigsError::NegativeBroker),
        Ok(id) => Ok(Some(NodeId(id))),
        Err(_) => Err(AlterConfigsError::BrokerName),
    }
}

fn check_exists(resource: &ConfigResource, on: &Controller<'_>) -> Result<(), AlterConfigsError> {
    match resource.kind {
        ResourceKind::Topic if on.image.topic(&resource.name).is_none() => {
            Err(AlterConfigsError::UnknownTopic(resource.name.to_string()))
        }
        ResourceKind::Broker => match broker_id(&resource.name)? {
            Some(id) if on.image.broker(id).is_none() && on.image.controller(id).is_none() => {
                Err(AlterConfigsError::UnknownNode(id))
            }
            Some(_) | None => Ok(()),
        },
        ResourceKind::Topic | ResourceKind::Group | ResourceKind::ClientMetrics => Ok(()),
    }
}
