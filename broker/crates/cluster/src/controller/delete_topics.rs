//! DeleteTopics (Kafka: ReplicationControlManager.deleteTopics).

use base::TopicId;

use super::{Command, Controller, Decision};
use crate::records::RemoveTopicRecord;

/// Removes topics. Ids stand once: the caller has refused repeated ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteTopics {
    /// The topics.
    pub ids: Vec<TopicId>,
}

/// Why a topic is not removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeleteTopicsError {
    /// No such topic; it may have been removed a moment ago.
    #[error("This server does not host this topic ID.")]
    UnknownTopicId,
}

impl Command for DeleteTopics {
    /// One result for each topic, in the order of the request.
    type Answer = Vec<Result<(), DeleteTopicsError>>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        let mut records = Vec::new();
        let remove = |id: &TopicId| {
            on.image.topic_by_id(*id).ok_or(DeleteTopicsError::UnknownTopicId)?;
            records.push(RemoveTopicRecord { topic_id: *id }.into());
            Ok(())
        };
        let answer = self.ids.iter().map(remove).collect();
        Decision { records, answer }
    }
}
