//! From the controller's refusals to Kafka's codes, each map exhaustive, and what admin answers have in common.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use cluster::controller::{
    AssignmentError, CreatePartitionsError, CreateTopicsError, DeleteTopicsError, PlacementError,
};
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::runtime::controller::ControllerError;

/// A code and the text that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: i16,
    /// What is wrong, for people.
    pub message: String,
}

impl Refusal {
    /// With Kafka's own words.
    pub fn new(error: ResponseError, message: impl Into<String>) -> Refusal {
        Refusal { code: error.code(), message: message.into() }
    }

    /// The code of a result and its message; 0 and none when all is well.
    pub fn parts(outcome: Option<&Refusal>) -> (i16, Option<StrBytes>) {
        match outcome {
            Some(refusal) => (refusal.code, Some(StrBytes::from_string(refusal.message.clone()))),
            None => (0, None),
        }
    }
}

/// Splits the topics of a request into those named once and the names that come more than once, each told once and in
/// the order of the request: Kafka refuses every mention of a repeated name (ReplicationControlManager).
pub fn named_once<T>(topics: Vec<T>, name: impl Fn(&T) -> &StrBytes) -> (Vec<T>, Vec<StrBytes>) {
    let mut counts: HashMap<StrBytes, usize> = HashMap::new();
    for topic in &topics {
        *counts.entry(name(topic).clone()).or_default() += 1;
    }
    let mut repeated = Vec::new();
    let mut once = Vec::with_capacity(topics.len());
    for topic in topics {
        match counts.get_mut(name(&topic)) {
            Some(1) => once.push(topic),
            Some(count) if *count > 1 => {
                *count = 0;
                repeated.push(name(&topic).clone());
            }
            Some(_) | None => {}
        }
    }
    (once, repeated)
}

/// Waits for the controller for as long as the client does.
pub async fn within<T>(
    timeout_ms: i32,
    answer: impl Future<Output = Result<T, ControllerError>>,
) -> Result<T, Refusal> {
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    match tokio::time::timeout(timeout, answer).await {
        Ok(answer) => answer.map_err(|error| controller(&error)),
        Err(_) => Err(Refusal::new(ResponseError::RequestTimedOut, "The request timed out.")),
    }
}

/// The code for a command that came to nothing.
pub fn controller(error: &ControllerError) -> Refusal {
    let code = match error {
        ControllerError::NotController | ControllerError::Stopped | ControllerError::NoLeader(_) => {
            ResponseError::NotController
        }
        ControllerError::Failed(_) | ControllerError::Store(_) => ResponseError::KafkaStorageError,
        ControllerError::Registration(_) => ResponseError::BrokerIdNotRegistered,
    };
    Refusal::new(code, error.to_string())
}

/// The code for a topic that is not made.
pub fn create_topics(error: &CreateTopicsError) -> Refusal {
    let code = match error {
        CreateTopicsError::Name(_) | CreateTopicsError::Collides { .. } => ResponseError::InvalidTopicException,
        CreateTopicsError::Exists(_) => ResponseError::TopicAlreadyExists,
        CreateTopicsError::NullConfigs(_) | CreateTopicsError::Config(_) => ResponseError::InvalidConfig,
        CreateTopicsError::AssignmentAndReplicationFactor | CreateTopicsError::AssignmentAndPartitions => {
            ResponseError::InvalidRequest
        }
        CreateTopicsError::RepeatedPartition(_)
        | CreateTopicsError::NotConsecutive
        | CreateTopicsError::Assignment(_) => ResponseError::InvalidReplicaAssignment,
        CreateTopicsError::ReplicationFactorNotPositive | CreateTopicsError::Placement { .. } => {
            ResponseError::InvalidReplicationFactor
        }
        CreateTopicsError::PartitionsNotPositive => ResponseError::InvalidPartitions,
        CreateTopicsError::TooManyPartitions => ResponseError::PolicyViolation,
    };
    Refusal::new(code, error.to_string())
}

/// The code for a topic that gets no more partitions.
pub fn create_partitions(error: &CreatePartitionsError) -> Refusal {
    let code = match error {
        CreatePartitionsError::UnknownTopic => ResponseError::UnknownTopicOrPartition,
        CreatePartitionsError::Same(_) | CreatePartitionsError::Fewer { .. } => ResponseError::InvalidPartitions,
        CreatePartitionsError::AssignmentCount { .. } => ResponseError::InvalidReplicaAssignment,
        CreatePartitionsError::Assignment(error) => match error {
            AssignmentError::Empty
            | AssignmentError::UnknownBroker(_)
            | AssignmentError::Repeated(_)
            | AssignmentError::Inconsistent { .. }
            | AssignmentError::NoneActive(_) => ResponseError::InvalidReplicaAssignment,
        },
        CreatePartitionsError::Placement(error) => match error {
            PlacementError::TooFewBrokers { .. } | PlacementError::AllFenced => ResponseError::InvalidReplicationFactor,
        },
        CreatePartitionsError::TooManyPartitions => ResponseError::PolicyViolation,
    };
    Refusal::new(code, error.to_string())
}

/// The code for a topic that is not removed.
pub fn delete_topics(error: &DeleteTopicsError) -> Refusal {
    let code = match error {
        DeleteTopicsError::UnknownTopicId => ResponseError::UnknownTopicId,
    };
    Refusal::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_twice_is_told_once_and_the_others_keep_their_order() {
        let names = ["b", "a", "c", "a", "a"].map(StrBytes::from_static_str);
        let (once, repeated) = named_once(names.to_vec(), |name| name);
        assert_eq!((once, repeated), (vec![names[0].clone(), names[2].clone()], vec![names[1].clone()]));
    }
}
