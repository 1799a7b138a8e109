//! OffsetCommit (8), versions 2-10: a group stores how far it has read. From version 10 on topics are named by id.

use std::sync::Arc;

use base::TopicId;
use coordinator::group::command::{CommitOffsets, OffsetToCommit};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{coordinator_code, group_code, group_code_or_none};
use crate::security::{Authorized, GroupId, Operation, TopicName};
use crate::wire::messages::offset_commit::{OffsetCommitRequest, OffsetCommitResponse, RequestTopic, ResponseTopic};
use crate::wire::text::{kept, kept_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<OffsetCommit>("OffsetCommit", 2..=10);

/// First version whose clients understand GROUP_ID_NOT_FOUND.
const GROUP_NOT_FOUND_MIN: i16 = 9;
/// First version that names topics by id.
const TOPIC_ID_MIN: i16 = 10;

struct OffsetCommit;

impl Api for OffsetCommit {
    const KEY: i16 = ApiKey::OffsetCommit as i16;
    type Request = OffsetCommitRequest;
    type Response = OffsetCommitResponse;

    async fn handle(ctx: Context, request: OffsetCommitRequest) -> Outcome<OffsetCommitResponse> {
        let Ok(group) = ctx.may(Operation::Read, GroupId(kept(&request.group_id))) else {
            let code = ResponseError::GroupAuthorizationFailed.code();
            return Outcome::Reply(respond(&request, |_, _| code));
        };
        let mut checked = Checked::default();
        for topic in &request.topics {
            checked.add(&ctx, topic);
        }
        let Checked { offsets, mut codes } = checked;
        if !offsets.is_empty() {
            let committed = commit(&ctx, &group, &request, offsets).await;
            // Codes that are still open belong to the offsets that were given on, in order.
            let open = codes.iter_mut().flatten().filter(|code| code.is_none());
            for (code, committed) in open.zip(committed) {
                *code = Some(committed);
            }
        }
        Outcome::Reply(respond(&request, |topic, partition| codes[topic][partition].unwrap_or(0)))
    }
}

/// What can be committed, and an error code for each partition that cannot.
#[derive(Default)]
struct Checked {
    offsets: Vec<OffsetToCommit>,
    codes: Vec<Vec<Option<i16>>>,
}

impl Checked {
    fn add(&mut self, ctx: &Context, topic: &RequestTopic) {
        let image = ctx.node.image.load();
        let known = if ctx.version >= TOPIC_ID_MIN {
            image.topic_by_id(TopicId(topic.topic_id))
        } else {
            image.topic(&topic.name)
        };
        let name: Arc<str> = known.map_or_else(|| kept(&topic.name), |topic| topic.name.clone());
        let missing = match known {
            None if ctx.version >= TOPIC_ID_MIN => Some(ResponseError::UnknownTopicId),
            _ if ctx.may(Operation::Read, TopicName(name.clone())).is_err() => {
                Some(ResponseError::TopicAuthorizationFailed)
            }
            None => Some(ResponseError::UnknownTopicOrPartition),
            Some(_) => None,
        };
        let mut codes = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let exists = known.is_some_and(|topic| topic.partition(partition.partition_index).is_some());
            codes.push(match missing {
                Some(error) => Some(error.code()),
                None if !exists => Some(ResponseError::UnknownTopicOrPartition.code()),
                None => {
                    self.offsets.push(OffsetToCommit {
                        topic: name.clone(),
                        partition: partition.partition_index,
                        offset: partition.committed_offset,
                        leader_epoch: partition.committed_leader_epoch,
                        metadata: kept_option(partition.committed_metadata.as_ref()).unwrap_or_default(),
                    });
                    None
                }
            });
        }
        self.codes.push(codes);
    }
}

/// One code for each of `offsets`.
async fn commit(
    ctx: &Context,
    group: &Authorized<GroupId>,
    request: &OffsetCommitRequest,
    offsets: Vec<OffsetToCommit>,
) -> Vec<i16> {
    let count = offsets.len();
    let commit = CommitOffsets {
        group_id: group.get().0.clone(),
        member_id: kept(&request.member_id),
        instance_id: kept_option(request.group_instance_id.as_ref()),
        generation: request.generation_id_or_member_epoch,
        retention_ms: (request.retention_time_ms != -1).then_some(request.retention_time_ms),
        knows_group_not_found: ctx.version >= GROUP_NOT_FOUND_MIN,
        offsets,
    };
    let answer = match ctx.node.groups.group(group) {
        Ok(group) => group.commit(commit).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(Ok(errors)) => errors.iter().map(|error| group_code_or_none(error.as_ref())).collect(),
        Ok(Err(error)) => vec![group_code(&error); count],
        Err(error) => vec![coordinator_code(&error); count],
    }
}

/// The answer, with a code for the partition at a place of the topic at a place.
fn respond(request: &OffsetCommitRequest, code: impl Fn(usize, usize) -> i16) -> OffsetCommitResponse {
    let topics = request.topics.iter().enumerate().map(|(topic_place, topic)| ResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .enumerate()
            .map(|(place, partition)| (partition.partition_index, code(topic_place, place)))
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect() }
}
