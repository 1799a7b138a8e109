//! What the APIs about settings share: permission by kind of resource, names of brokers, and Kafka's codes for refusals.

use base::NodeId;
use cluster::ResourceKind;
use cluster::configs::client_metrics::ClientMetricsConfigError;
use cluster::configs::{AlterError, TopicConfigError};
use cluster::controller::AlterConfigsError;
use kafka_protocol::ResponseError;

use super::Context;
use crate::security::{Cluster, GroupId, Operation, TopicName};

/// Why nothing is done for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// Kafka's code.
    pub(super) code: ResponseError,
    /// What to tell the client.
    pub(super) message: String,
}

impl Refused {
    pub(super) fn invalid_request(message: impl Into<String>) -> Refused {
        Refused { code: ResponseError::InvalidRequest, message: message.into() }
    }
}

/// Asks for permission: on the topic or the group itself, on the cluster for everything else.
pub(super) fn may(ctx: &Context, operation: Operation, kind: ResourceKind, name: &str) -> Result<(), Refused> {
    let (allowed, code, message) = match kind {
        ResourceKind::Topic => (
            ctx.may(operation, TopicName(name.into())).is_ok(),
            ResponseError::TopicAuthorizationFailed,
            "Topic authorization failed.",
        ),
        ResourceKind::Group => (
            ctx.may(operation, GroupId(name.into())).is_ok(),
            ResponseError::GroupAuthorizationFailed,
            "Group authorization failed.",
        ),
        ResourceKind::Broker | ResourceKind::ClientMetrics => (
            ctx.may(operation, Cluster).is_ok(),
            ResponseError::ClusterAuthorizationFailed,
            "Cluster authorization failed.",
        ),
    };
    if allowed { Ok(()) } else { Err(Refused { code, message: message.to_owned() }) }
}

/// A broker answers for itself only. `unexpected` says so in the words of the API.
pub(super) fn check_broker_name(
    name: &str,
    this: NodeId,
    what: &str,
    unexpected: impl FnOnce(NodeId) -> String,
) -> Result<(), Refused> {
    match name.parse::<i32>() {
        Err(_) => Err(Refused::invalid_request(format!("{what} id must be an integer, but it is: {name}"))),
        Ok(id) if id != this.0 => Err(Refused::invalid_request(unexpected(this))),
        Ok(_) => Ok(()),
    }
}

/// Kafka's code for settings that the controller refused.
pub(super) fn refused(error: &AlterConfigsError) -> Refused {
    let code = match error {
        AlterConfigsError::Alter(error) => match error {
            AlterError::DuplicateKeys | AlterError::NullValues { .. } => ResponseError::InvalidRequest,
            AlterError::NotAList { .. }
            | AlterError::NotABrokerList { .. }
            | AlterError::UnknownBrokerList { .. }
            | AlterError::ValueTooLarge => ResponseError::InvalidConfig,
        },
        AlterConfigsError::TopicName(_) => ResponseError::InvalidTopicException,
        AlterConfigsError::Topic(error) => match error {
            TopicConfigError::Unknown { .. }
            | TopicConfigError::Invalid(_)
            | TopicConfigError::CompactionLags { .. }
            | TopicConfigError::NoRemoteStorage => ResponseError::InvalidConfig,
        },
        AlterConfigsError::Group(_) => ResponseError::InvalidConfig,
        AlterConfigsError::ClientMetrics(error) => match error {
            ClientMetricsConfigError::NoName
            | ClientMetricsConfigError::Unknown { .. }
            | ClientMetricsConfigError::Interval { .. } => ResponseError::InvalidRequest,
            ClientMetricsConfigError::Match { .. } | ClientMetricsConfigError::Invalid(_) => {
                ResponseError::InvalidConfig
            }
        },
        // Kafka's broker checks before the controller does and calls every bad value an invalid request (KAFKA-13609).
        AlterConfigsError::Broker(_)
        | AlterConfigsError::AllTopics
        | AlterConfigsError::AllGroups
        | AlterConfigsError::BrokerName
        | AlterConfigsError::NegativeBroker => ResponseError::InvalidRequest,
        AlterConfigsError::BrokerMinimum | AlterConfigsError::NoClusterMinimum => ResponseError::InvalidConfig,
        AlterConfigsError::UnknownTopic(_) => ResponseError::UnknownTopicOrPartition,
        AlterConfigsError::UnknownNode(_) => ResponseError::BrokerIdNotRegistered,
    };
    Refused { code, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bl_113_what_a_topic_does_not_take_is_an_invalid_config() {
        let unknown = TopicConfigError::Unknown { name: "replication.factor".to_owned() };
        let refused = refused(&AlterConfigsError::Topic(unknown));
        assert_eq!(refused.code, ResponseError::InvalidConfig);
        assert_eq!(refused.message, "Unknown topic config name: replication.factor");
    }

    #[test]
    fn a_broker_answers_for_itself_only() {
        let check = |name: &str| check_broker_name(name, NodeId(1), "Broker", |id| format!("expected {id}"));
        assert_eq!(check("1"), Ok(()));
        assert_eq!(check("2").map_err(|refused| refused.message), Err("expected 1".to_owned()));
        assert_eq!(check("x").map_err(|r| r.message), Err("Broker id must be an integer, but it is: x".to_owned()));
    }
}
