//! OffsetDelete (47), version 0: offsets of topics that a group no longer reads are removed (KIP-496).

use std::sync::Arc;

use coordinator::group::command::{DeleteOffsets, TopicPartitions};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use kafka_protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use kafka_protocol::messages::{ApiKey, OffsetDeleteRequest, OffsetDeleteResponse};

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{coordinator_code, group_code, group_code_or_none};
use crate::security::{GroupId, Operation, TopicName};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<OffsetDelete>("OffsetDelete", 0..=0);

struct OffsetDelete;

impl Api for OffsetDelete {
    const KEY: i16 = ApiKey::OffsetDelete as i16;
    type Request = OffsetDeleteRequest;
    type Response = OffsetDeleteResponse;

    async fn handle(ctx: Context, request: OffsetDeleteRequest) -> Outcome<OffsetDeleteResponse> {
        Outcome::Reply(match answer(&ctx, &request).await {
            Ok(topics) => OffsetDeleteResponse::default().with_topics(topics),
            Err(code) => OffsetDeleteResponse::default().with_error_code(code),
        })
    }
}

async fn answer(ctx: &Context, request: &OffsetDeleteRequest) -> Result<Vec<OffsetDeleteResponseTopic>, i16> {
    let group = ctx
        .may(Operation::Delete, GroupId(kept(&request.group_id)))
        .map_err(|_| ResponseError::GroupAuthorizationFailed.code())?;
    if group.get().0.is_empty() {
        return Err(ResponseError::InvalidGroupId.code());
    }
    let mut responses = Vec::new();
    let mut topics = Vec::new();
    for topic in &request.topics {
        let name = kept(&topic.name);
        let (present, absent) = sort_out(ctx, &name, topic);
        if !absent.is_empty() {
            responses.push(response_topic(&name, absent));
        }
        if !present.is_empty() {
            topics.push(TopicPartitions { topic: name, topic_id: base::TopicId::ZERO, partitions: present });
        }
    }
    let handle = ctx.node.groups.group(&group).map_err(|error| coordinator_code(&error))?;
    let delete = DeleteOffsets { group_id: group.get().0.clone(), topics };
    let deleted = handle.delete_offsets(delete).await.map_err(|error| coordinator_code(&error))?;
    for topic in deleted.map_err(|error| group_code(&error))? {
        let code = group_code_or_none(topic.error.as_ref());
        let partitions = topic.partitions.into_iter().map(|partition| (partition, code)).collect();
        responses.push(response_topic(&topic.topic, partitions));
    }
    Ok(responses)
}

/// The partitions that exist, and the others with their error.
fn sort_out(ctx: &Context, name: &Arc<str>, topic: &OffsetDeleteRequestTopic) -> (Vec<i32>, Vec<(i32, i16)>) {
    let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
    if ctx.may(Operation::Read, TopicName(name.clone())).is_err() {
        let code = ResponseError::TopicAuthorizationFailed.code();
        return (Vec::new(), indexes.map(|index| (index, code)).collect());
    }
    let image = ctx.node.image.load();
    let known = image.topic(name);
    let exists = |index: &i32| known.is_some_and(|topic| topic.partition(*index).is_some());
    let (present, absent): (Vec<i32>, Vec<i32>) = indexes.partition(exists);
    let code = ResponseError::UnknownTopicOrPartition.code();
    (present, absent.into_iter().map(|index| (index, code)).collect())
}

fn response_topic(name: &str, partitions: Vec<(i32, i16)>) -> OffsetDeleteResponseTopic {
    let partition = |(index, code): (i32, i16)| {
        OffsetDeleteResponsePartition::default().with_partition_index(index).with_error_code(code)
    };
    OffsetDeleteResponseTopic::default()
        .with_name(message_text(name).into())
        .with_partitions(partitions.into_iter().map(partition).collect())
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let topics = vec![response_topic("t", vec![(0, 0), (7, 86)]), response_topic("u", vec![(1, 3)])];
        for (_, read) in read_back(&ENTRY, |_| OffsetDeleteResponse::default().with_topics(topics.clone())) {
            assert_eq!(read.topics, topics);
        }
        let code = ResponseError::GroupIdNotFound.code();
        for (_, read) in read_back(&ENTRY, |_| OffsetDeleteResponse::default().with_error_code(code)) {
            assert_eq!(read.error_code, code);
        }
    }
}
