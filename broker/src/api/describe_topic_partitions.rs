//! DescribeTopicPartitions (75), version 0: topics in pages of partitions, with eligible leader replicas (KIP-966;
//! Kafka: DescribeTopicPartitionsRequestHandler). The limit of the broker, `max.request.partition.size.limit`, holds
//! beside the client's.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::topics::is_internal_topic;
use base::{PartitionIndex, TopicId};
use cluster::MetadataImage;
use cluster::controller::validate_topic_name;
use cluster::image::TopicImage;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{ApiKey, BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};

use super::partition_view::{Dialect, broker_ids, view};
use super::{Api, Context, Entry, Outcome};
use crate::security::{Operation, TopicName};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeTopicPartitions>("DescribeTopicPartitions", 0..=0);

/// `max.request.partition.size.limit` when nothing is set.
const PARTITIONS_DEFAULT: i64 = 2_000;
/// How partitions are shown.
const DIALECT: Dialect = Dialect { hide_dead_replicas: false, listener_not_found: true };

struct DescribeTopicPartitions;

impl Api for DescribeTopicPartitions {
    const KEY: i16 = ApiKey::DescribeTopicPartitions as i16;
    type Request = DescribeTopicPartitionsRequest;
    type Response = DescribeTopicPartitionsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let cursor = request.cursor.as_ref().map(|cursor| (kept(&cursor.topic_name), cursor.partition_index));
        let start: Arc<str> = cursor.as_ref().map_or_else(|| "".into(), |(name, _)| name.clone());
        let named: BTreeSet<Arc<str>> = request.topics.iter().map(|topic| kept(&topic.name)).collect();
        let unlisted = cursor.as_ref().is_some_and(|(name, _)| !named.is_empty() && !named.contains(name));
        if unlisted || cursor.as_ref().is_some_and(|(_, index)| *index < 0) {
            return Outcome::Reply(refused(&request));
        }
        let image = ctx.node.image();
        let all = named.is_empty();
        let names: Vec<Arc<str>> = match all {
            true => image.topics_from(&start).map(|topic| topic.name.clone()).collect(),
            false => named.into_iter().filter(|name| *name >= start).collect(),
        };
        let broker_limit = ctx.node.with_layers(|layers| layers.number("max.request.partition.size.limit"));
        let limit = i64::from(request.response_partition_limit).min(broker_limit.unwrap_or(PARTITIONS_DEFAULT)).max(1);
        let mut page = Page { ctx: &ctx, image: &image, left: limit as usize, topics: Vec::new(), next: None };
        let mut denied = Vec::new();
        for name in names {
            if ctx.may(Operation::Describe, TopicName(name.clone())).is_err() {
                if !all {
                    denied.push(failed(&name, ResponseError::TopicAuthorizationFailed));
                }
                continue;
            }
            let first = cursor.as_ref().filter(|(at, _)| *at == name).map_or(0, |(_, index)| *index);
            if !page.add(&name, first, all) {
                break;
            }
        }
        page.topics.append(&mut denied);
        Outcome::Reply(DescribeTopicPartitionsResponse::default().with_topics(page.topics).with_next_cursor(page.next))
    }
}

fn failed(name: &str, error: ResponseError) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(error.code())
        .with_name(Some(message_text(name).into()))
        .with_topic_id(TopicId::ZERO.0)
}

/// The answer to a cursor that cannot be.
fn refused(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| failed(&topic.name, ResponseError::InvalidRequest));
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

/// An answer in the making.
struct Page<'a> {
    ctx: &'a Context,
    image: &'a MetadataImage,
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page<'_> {
    /// Adds a topic from one of its partitions on; false when the page is full.
    fn add(&mut self, name: &Arc<str>, first: PartitionIndex, only_existing: bool) -> bool {
        if self.left == 0 {
            self.next = Some(cursor(name, 0));
            return false;
        }
        let Some(topic) = self.image.topic(name) else {
            if !only_existing {
                let error = match validate_topic_name(name) {
                    Ok(()) => ResponseError::UnknownTopicOrPartition,
                    Err(_) => ResponseError::InvalidTopicException,
                };
                self.topics.push(failed(name, error).with_is_internal(is_internal_topic(name)));
            }
            return true;
        };
        let shown = self.partitions(topic, first);
        let after = first + shown.len() as PartitionIndex;
        self.left -= shown.len();
        self.topics.push(
            DescribeTopicPartitionsResponseTopic::default()
                .with_name(Some(message_text(name).into()))
                .with_topic_id(topic.id.0)
                .with_is_internal(is_internal_topic(name))
                .with_partitions(shown)
                .with_topic_authorized_operations(self.ctx.allowed_operations(true, &TopicName(name.clone()))),
        );
        if (after as usize) < topic.partitions().len() {
            self.next = Some(cursor(name, after));
            return false;
        }
        true
    }

    fn partitions(&self, topic: &TopicImage, first: PartitionIndex) -> Vec<DescribeTopicPartitionsResponsePartition> {
        let numbered = (0..).zip(topic.partitions()).skip(first as usize).take(self.left);
        numbered
            .map(|(index, partition)| {
                let view = view(self.image, &self.ctx.session.listener, DIALECT, index, partition);
                DescribeTopicPartitionsResponsePartition::default()
                    .with_error_code(view.error_code)
                    .with_partition_index(index)
                    .with_leader_id(BrokerId(view.leader.0))
                    .with_leader_epoch(view.leader_epoch)
                    .with_replica_nodes(broker_ids(&view.replicas))
                    .with_isr_nodes(broker_ids(&view.isr))
                    .with_offline_replicas(broker_ids(&view.offline))
                    .with_eligible_leader_replicas(Some(broker_ids(&partition.sets().eligible_leader_replicas)))
                    .with_last_known_elr(Some(broker_ids(&partition.sets().last_known_elr)))
            })
            .collect()
    }
}

fn cursor(name: &str, partition_index: PartitionIndex) -> Cursor {
    Cursor::default().with_topic_name(message_text(name).into()).with_partition_index(partition_index)
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;
    use kafka_protocol::messages::describe_topic_partitions_request::TopicRequest;
    use kafka_protocol::protocol::StrBytes;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let partition = DescribeTopicPartitionsResponsePartition::default()
            .with_partition_index(3)
            .with_leader_id(1.into())
            .with_replica_nodes(vec![1.into(), 2.into()])
            .with_eligible_leader_replicas(Some(vec![2.into()]))
            .with_last_known_elr(Some(Vec::new()));
        let known = failed("t", ResponseError::LeaderNotAvailable).with_partitions(vec![partition]);
        let answer = DescribeTopicPartitionsResponse::default()
            .with_topics(vec![known, failed("u", ResponseError::UnknownTopicOrPartition)])
            .with_next_cursor(Some(cursor("v", 4)));
        for (_, read) in read_back(&ENTRY, |_| answer.clone()) {
            assert_eq!(read, answer);
        }
        let asked = DescribeTopicPartitionsRequest::default()
            .with_topics(vec![TopicRequest::default().with_name(StrBytes::from_static_str("t").into())]);
        for (_, read) in read_back(&ENTRY, |_| refused(&asked)) {
            assert_eq!((read.topics[0].error_code, read.next_cursor), (ResponseError::InvalidRequest.code(), None));
        }
    }
}
