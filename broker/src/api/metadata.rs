//! Metadata (3), versions 0-13: brokers, topics and who leads their partitions (Kafka: KafkaApis.handleTopicMetadata).
//! A topic that is missing may be made on the way (KIP-204's flag from version 4 on): the first answer says that it is not
//! known, and the client asks again. Ids instead of names from version 12 on (KIP-516); what the client may do from
//! version 8 on, for the cluster up to 10 only (KIP-430).

use std::collections::HashSet;
use std::sync::Arc;

use base::TopicId;
use base::topics::is_internal_topic;
use cluster::MetadataImage;
use cluster::controller::validate_topic_name;
use cluster::image::TopicImage;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{ApiKey, BrokerId, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::StrBytes;

use super::auto_create;
use super::partition_view::{Dialect, alive_brokers, broker_ids, some_broker, view};
use super::{Api, Context, Entry, Outcome};
use crate::security::{Cluster, Operation, TopicName};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<Metadata>("Metadata", 0..=13);

/// First version that tells "no topics" from "all topics".
const NO_TOPICS_MIN: i16 = 1;
/// First version that names topics by id.
const IDS_MIN: i16 = 12;
/// First version that tells a missing listener by its own code.
const LISTENER_NOT_FOUND_MIN: i16 = 6;
/// Versions that may ask what the client may do to the cluster.
const CLUSTER_OPERATIONS: std::ops::RangeInclusive<i16> = 8..=10;
/// First version that may ask what the client may do to a topic.
const TOPIC_OPERATIONS_MIN: i16 = 8;

struct Metadata;

impl Api for Metadata {
    const KEY: i16 = ApiKey::Metadata as i16;
    type Request = MetadataRequest;
    type Response = MetadataResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let image = ctx.node.image();
        let asker = Asker { image: &image, operations: request.include_topic_authorized_operations, ctx: &ctx };
        let topics = match request.topics {
            None => asker.all(),
            Some(topics) if topics.is_empty() && ctx.version < NO_TOPICS_MIN => asker.all(),
            Some(topics) if ctx.version < IDS_MIN && topics.iter().any(is_by_id) => {
                topics.iter().map(misplaced).collect()
            }
            Some(topics) if topics.iter().any(|topic| !topic.topic_id.is_nil()) => asker.by_ids(&topics),
            Some(topics) => asker.by_names(&topics, request.allow_auto_topic_creation),
        };
        let mut response = MetadataResponse::default()
            .with_brokers(brokers(&image, &ctx))
            .with_cluster_id(Some(message_text(&ctx.node.cluster_id)))
            .with_controller_id(BrokerId(some_broker(&image, &ctx.session.listener, ctx.node.entropy.next_u64()).0))
            .with_topics(topics);
        if CLUSTER_OPERATIONS.contains(&ctx.version) {
            response.cluster_authorized_operations =
                cluster_operations(&ctx, request.include_cluster_authorized_operations);
        }
        Outcome::Reply(response)
    }
}

/// What the client may do to the cluster; nothing when it may not even describe it.
fn cluster_operations(ctx: &Context, asked: bool) -> i32 {
    if asked && ctx.may(Operation::Describe, Cluster).is_err() {
        return 0;
    }
    ctx.allowed_operations(asked, &Cluster)
}

fn is_by_id(topic: &MetadataRequestTopic) -> bool {
    topic.name.is_none() || !topic.topic_id.is_nil()
}

/// The answer to a topic that is named by id where the version knows names only.
fn misplaced(topic: &MetadataRequestTopic) -> MetadataResponseTopic {
    let name = topic.name.as_ref().map_or_else(StrBytes::default, |name| name.0.clone());
    MetadataResponseTopic::default().with_error_code(ResponseError::InvalidRequest.code()).with_name(Some(name.into()))
}

fn brokers(image: &MetadataImage, ctx: &Context) -> Vec<MetadataResponseBroker> {
    alive_brokers(image, &ctx.session.listener)
        .map(|(broker, endpoint)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(broker.id.0))
                .with_host(message_text(&endpoint.host))
                .with_port(i32::from(endpoint.port))
                .with_rack(broker.rack.as_deref().map(message_text))
        })
        .collect()
}

/// Answers for the topics of one request.
struct Asker<'a> {
    image: &'a Arc<MetadataImage>,
    operations: bool,
    ctx: &'a Context,
}

impl Asker<'_> {
    fn may(&self, operation: Operation, name: &Arc<str>) -> bool {
        self.ctx.may(operation, TopicName(name.clone())).is_ok()
    }

    fn all(&self) -> Vec<MetadataResponseTopic> {
        let visible = self.image.topics().filter(|topic| self.may(Operation::Describe, &topic.name));
        visible.map(|topic| self.found(topic)).collect()
    }

    fn by_ids(&self, topics: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
        let mut seen = HashSet::new();
        let ids = topics.iter().map(|topic| TopicId(topic.topic_id)).filter(|id| !id.is_zero());
        ids.filter(|id| seen.insert(*id))
            .map(|id| match self.image.topic_by_id(id) {
                Some(topic) if self.may(Operation::Describe, &topic.name) => self.found(topic),
                // Ids are no secret, names are.
                Some(_) => missing(None, id, ResponseError::TopicAuthorizationFailed),
                None => missing(None, id, ResponseError::UnknownTopicId),
            })
            .collect()
    }

    fn by_names(&self, topics: &[MetadataRequestTopic], client_wants_creation: bool) -> Vec<MetadataResponseTopic> {
        let mut seen = HashSet::new();
        let mut wanted = Vec::new();
        let mut answers = Vec::with_capacity(topics.len());
        let create = client_wants_creation && self.ctx.node.config.topics.auto_create;
        for topic in topics {
            let Some(name) = &topic.name else {
                answers.push(missing(None, TopicId::ZERO, ResponseError::InvalidTopicException));
                continue;
            };
            if !seen.insert(name.0.clone()) {
                continue;
            }
            let key = kept(name);
            let answer = if !self.may(Operation::Describe, &key) {
                Err(ResponseError::TopicAuthorizationFailed)
            } else if let Some(topic) = self.image.topic(&key) {
                Ok(topic)
            } else if create && self.ctx.may(Operation::Create, Cluster).is_err() && !self.may(Operation::Create, &key)
            {
                Err(ResponseError::TopicAuthorizationFailed)
            } else if validate_topic_name(&key).is_err() {
                Err(ResponseError::InvalidTopicException)
            } else {
                wanted.push(key.clone());
                Err(ResponseError::UnknownTopicOrPartition)
            };
            answers.push(match answer {
                Ok(topic) => self.found(topic),
                Err(error) => self.not_there(&key, error),
            });
        }
        if create && !wanted.is_empty() {
            auto_create::begin(&self.ctx.node, &wanted);
        }
        answers
    }

    fn found(&self, topic: &TopicImage) -> MetadataResponseTopic {
        let dialect = Dialect {
            hide_dead_replicas: self.ctx.version == 0,
            listener_not_found: self.ctx.version >= LISTENER_NOT_FOUND_MIN,
        };
        let partitions = (0..).zip(topic.partitions()).map(|(index, partition)| {
            let view = view(self.image, &self.ctx.session.listener, dialect, index, partition);
            MetadataResponsePartition::default()
                .with_error_code(view.error_code)
                .with_partition_index(index)
                .with_leader_id(BrokerId(view.leader.0))
                .with_leader_epoch(view.leader_epoch)
                .with_replica_nodes(broker_ids(&view.replicas))
                .with_isr_nodes(broker_ids(&view.isr))
                .with_offline_replicas(broker_ids(&view.offline))
        });
        MetadataResponseTopic::default()
            .with_name(Some(message_text(&topic.name).into()))
            .with_topic_id(topic.id.0)
            .with_is_internal(is_internal_topic(&topic.name))
            .with_partitions(partitions.collect())
            .with_topic_authorized_operations(self.topic_operations(&topic.name))
    }

    fn not_there(&self, name: &Arc<str>, error: ResponseError) -> MetadataResponseTopic {
        let denied = error == ResponseError::TopicAuthorizationFailed;
        let operations = if denied { i32::MIN } else { self.topic_operations(name) };
        missing(Some(name), TopicId::ZERO, error)
            .with_is_internal(!denied && is_internal_topic(name))
            .with_topic_authorized_operations(operations)
    }

    fn topic_operations(&self, name: &Arc<str>) -> i32 {
        let asked = self.operations && self.ctx.version >= TOPIC_OPERATIONS_MIN;
        self.ctx.allowed_operations(asked, &TopicName(name.clone()))
    }
}

fn missing(name: Option<&str>, id: TopicId, error: ResponseError) -> MetadataResponseTopic {
    MetadataResponseTopic::default()
        .with_error_code(error.code())
        .with_name(name.map(|name| message_text(name).into()))
        .with_topic_id(id.0)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let broker =
                MetadataResponseBroker::default().with_host(message_text("h")).with_rack(Some(message_text("r")));
            let partition =
                MetadataResponsePartition::default().with_leader_epoch(3).with_offline_replicas(vec![BrokerId(2)]);
            let topic = missing(Some("t"), TopicId(uuid::Uuid::from_u128(7)), ResponseError::UnknownTopicOrPartition)
                .with_is_internal(true)
                .with_partitions(vec![partition]);
            let answer = MetadataResponse::default()
                .with_brokers(vec![broker])
                .with_cluster_id(Some(message_text("c")))
                .with_controller_id(BrokerId(1))
                .with_topics(vec![topic, misplaced(&MetadataRequestTopic::default())]);
            answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }

    #[test]
    fn bl_073_operations_that_were_not_asked_for_are_the_lowest_number() {
        assert_eq!(MetadataResponse::default().cluster_authorized_operations, i32::MIN);
        assert_eq!(MetadataResponseTopic::default().topic_authorized_operations, i32::MIN);
    }
}
