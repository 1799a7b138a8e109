//! OffsetFetch (9), versions 1-10: how far groups have read. Each partition asked for gets an entry, -1 where nothing
//! was committed; without topics all stored offsets are told. From version 8 on for several groups (KIP-709), from
//! version 10 on topics are named by id.

use base::TopicId;
use coordinator::group::command::{FetchOffsets, FetchedOffset, FetchedTopic, TopicPartitions};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{CoordinatorError, coordinator_code, group_code_or_none};
use crate::security::{Authorized, GroupId, Operation, TopicName};
use crate::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchResponse, RequestGroup, RequestTopic, ResponseGroup, ResponsePartition,
    ResponseTopic,
};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<OffsetFetch>("OffsetFetch", 1..=10);

/// First version with an error code for the whole group.
const GROUP_ERROR_MIN: i16 = 2;
/// First version that names topics by id.
const TOPIC_ID_MIN: i16 = 10;

struct OffsetFetch;

impl Api for OffsetFetch {
    const KEY: i16 = ApiKey::OffsetFetch as i16;
    type Request = OffsetFetchRequest;
    type Response = OffsetFetchResponse;

    async fn handle(ctx: Context, request: OffsetFetchRequest) -> Outcome<OffsetFetchResponse> {
        let mut groups = Vec::with_capacity(request.groups.len());
        for group in request.groups {
            groups.push(fetch_group(&ctx, group, request.require_stable).await);
        }
        Outcome::Reply(OffsetFetchResponse { groups })
    }
}

async fn fetch_group(ctx: &Context, asked: RequestGroup, require_stable: bool) -> ResponseGroup {
    let Ok(group) = ctx.may(Operation::Describe, GroupId(kept(&asked.group_id))) else {
        return failed(ctx, asked, ResponseError::GroupAuthorizationFailed.code());
    };
    let mut refused = Vec::new();
    let topics = asked.topics.as_ref().map(|topics| {
        let allowed = topics.iter().filter_map(|topic| match name_topic(ctx, topic) {
            Ok(named) => Some(named),
            Err(error) => {
                refused.push(refused_topic(topic, error));
                None
            }
        });
        allowed.collect()
    });
    match call(ctx, &group, topics, require_stable).await {
        Ok(fetched) => {
            let all = asked.topics.is_none();
            let told = fetched.into_iter().filter_map(|topic| response_topic(ctx, topic, all));
            let topics = told.chain(refused).collect();
            ResponseGroup { group_id: asked.group_id, error_code: 0, topics }
        }
        // Consumers before 3.9 look for the coordinator again on this error alone (GroupCoordinatorService).
        Err(CoordinatorError::NotAvailable) => failed(ctx, asked, ResponseError::NotCoordinator.code()),
        Err(error) => failed(ctx, asked, coordinator_code(&error)),
    }
}

async fn call(
    ctx: &Context,
    group: &Authorized<GroupId>,
    topics: Option<Vec<TopicPartitions>>,
    require_stable: bool,
) -> Result<Vec<FetchedTopic>, CoordinatorError> {
    let fetch = FetchOffsets { group_id: group.get().0.clone(), topics, require_stable };
    ctx.node.groups.group(group)?.fetch(fetch).await
}

/// The topic by name, if the session may see it.
fn name_topic(ctx: &Context, topic: &RequestTopic) -> Result<TopicPartitions, ResponseError> {
    let topic_id = TopicId(topic.topic_id);
    let name = if ctx.version >= TOPIC_ID_MIN {
        let image = ctx.node.image.load();
        image.topic_by_id(topic_id).ok_or(ResponseError::UnknownTopicId)?.name.clone()
    } else {
        kept(&topic.name)
    };
    let allowed = ctx.may(Operation::Describe, TopicName(name)).map_err(|_| ResponseError::TopicAuthorizationFailed)?;
    Ok(TopicPartitions { topic: allowed.into_inner().0, topic_id, partitions: topic.partitions.clone() })
}

/// `None` for a topic that cannot be told: one that the session may not see, or that has no id any more.
fn response_topic(ctx: &Context, topic: FetchedTopic, all: bool) -> Option<ResponseTopic> {
    if all && ctx.may(Operation::Describe, TopicName(topic.topic.clone())).is_err() {
        return None;
    }
    let topic_id = match all && ctx.version >= TOPIC_ID_MIN {
        true => ctx.node.image.load().topic(&topic.topic)?.id,
        false => topic.topic_id,
    };
    let partitions = topic.partitions.into_iter().map(response_partition).collect();
    Some(ResponseTopic { name: message_text(&topic.topic), topic_id: topic_id.0, partitions })
}

fn response_partition(fetched: FetchedOffset) -> ResponsePartition {
    ResponsePartition {
        partition: fetched.partition,
        committed_offset: fetched.offset,
        committed_leader_epoch: fetched.leader_epoch,
        metadata: Some(message_text(&fetched.metadata)),
        error_code: group_code_or_none(fetched.error.as_ref()),
    }
}

fn refused_topic(topic: &RequestTopic, error: ResponseError) -> ResponseTopic {
    let partition = |partition: &i32| ResponsePartition {
        partition: *partition,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(StrBytes::default()),
        error_code: error.code(),
    };
    let partitions = topic.partitions.iter().map(partition).collect();
    ResponseTopic { name: topic.name.clone(), topic_id: topic.topic_id, partitions }
}

/// The error of a whole group. Version 1 has no place for it, so that each partition carries it.
fn failed(ctx: &Context, asked: RequestGroup, error_code: i16) -> ResponseGroup {
    if ctx.version >= GROUP_ERROR_MIN {
        return ResponseGroup { group_id: asked.group_id, error_code, topics: Vec::new() };
    }
    let topic = |topic: &RequestTopic| {
        let partition = |partition: &i32| ResponsePartition {
            partition: *partition,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some(StrBytes::default()),
            error_code,
        };
        let partitions = topic.partitions.iter().map(partition).collect();
        ResponseTopic { name: topic.name.clone(), topic_id: topic.topic_id, partitions }
    };
    let topics = asked.topics.iter().flatten().map(topic).collect();
    ResponseGroup { group_id: asked.group_id, error_code: 0, topics }
}
