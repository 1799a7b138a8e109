//! CreateTopics (19), versions 2-7 (Kafka: ControllerApis.createTopics). From version 5 on the answer holds every setting
//! of the new topic with its source (KIP-525), from version 7 on its id. Mutation quotas (KIP-599) are not kept.

use base::topics::CLUSTER_METADATA_TOPIC;
use base::{NodeId, TopicId};
use cluster::configs::describe::{self, Wanted};
use cluster::controller::{CreateTopics as Command, CreatedTopic, NewTopic};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{ApiKey, CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;

use super::topic_errors::{self, Refusal, named_once, within};
use super::{Api, Context, Entry, Outcome};
use crate::security::{Cluster, Operation, TopicName};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<CreateTopics>("CreateTopics", 2..=7);

/// First version whose answer holds the new topic's settings.
const CONFIGS_MIN: i16 = 5;

struct CreateTopics;

impl Api for CreateTopics {
    const KEY: i16 = ApiKey::CreateTopics as i16;
    type Request = CreateTopicsRequest;
    type Response = CreateTopicsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let (once, repeated) = named_once(request.topics, |topic| &topic.name.0);
        let refusal = Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name.");
        let mut results: Vec<_> = repeated.iter().map(|name| refused(ctx.version, name, &refusal)).collect();
        let mut accepted = Vec::with_capacity(once.len());
        for topic in once {
            match refuse_unasked(&ctx, &topic.name) {
                Some(refusal) => results.push(refused(ctx.version, &topic.name.0, &refusal)),
                None => accepted.push(topic),
            }
        }
        results.extend(create(&ctx, accepted, request.validate_only, request.timeout_ms).await);
        Outcome::Reply(CreateTopicsResponse::default().with_topics(results))
    }
}

/// What is refused before the controller is asked.
fn refuse_unasked(ctx: &Context, name: &StrBytes) -> Option<Refusal> {
    if &**name == CLUSTER_METADATA_TOPIC {
        let text = format!("Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited.");
        return Some(Refusal::new(ResponseError::InvalidRequest, text));
    }
    let allowed =
        ctx.may(Operation::Create, Cluster).is_ok() || ctx.may(Operation::Create, TopicName(kept(name))).is_ok();
    (!allowed).then(|| Refusal::new(ResponseError::TopicAuthorizationFailed, "Authorization failed."))
}

async fn create(
    ctx: &Context,
    topics: Vec<CreatableTopic>,
    validate_only: bool,
    timeout_ms: i32,
) -> Vec<CreatableTopicResult> {
    if topics.is_empty() {
        return Vec::new();
    }
    let names: Vec<StrBytes> = topics.iter().map(|topic| topic.name.0.clone()).collect();
    let topics = topics.into_iter().map(|topic| new_topic(topic, TopicId(ctx.node.entropy.uuid()))).collect();
    let answer = within(timeout_ms, ctx.node.controller.run(Command { topics, validate_only })).await;
    let outcomes = match answer {
        Ok(outcomes) => outcomes,
        Err(refusal) => return names.iter().map(|name| refused(ctx.version, name, &refusal)).collect(),
    };
    if !validate_only {
        // Whoever is told of a topic finds it.
        ctx.node.settled().await;
    }
    let one = |(name, outcome): (&StrBytes, _)| match outcome {
        Ok(topic) => created(ctx, name, &topic),
        Err(error) => refused(ctx.version, name, &topic_errors::create_topics(&error)),
    };
    names.iter().zip(outcomes).map(one).collect()
}

fn new_topic(topic: CreatableTopic, id: TopicId) -> NewTopic {
    let assignment = |a: &kafka_protocol::messages::create_topics_request::CreatableReplicaAssignment| {
        (a.partition_index, a.broker_ids.iter().map(|broker| NodeId(broker.0)).collect())
    };
    NewTopic {
        name: topic.name.to_string(),
        id,
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(assignment).collect(),
        configs: topic.configs.iter().map(|c| (c.name.to_string(), c.value.as_deref().map(str::to_owned))).collect(),
    }
}

fn refused(version: i16, name: &StrBytes, refusal: &Refusal) -> CreatableTopicResult {
    let (code, message) = Refusal::parts(Some(refusal));
    let result = CreatableTopicResult::default()
        .with_name(name.clone().into())
        .with_error_code(code)
        .with_error_message(message);
    // Where Kafka's answer holds an empty list, clients fail on null.
    if version >= CONFIGS_MIN { result.with_configs(Some(Vec::new())) } else { result }
}

fn created(ctx: &Context, name: &StrBytes, topic: &CreatedTopic) -> CreatableTopicResult {
    let result = CreatableTopicResult::default()
        .with_name(name.clone().into())
        .with_topic_id(topic.id.0)
        .with_error_message(None);
    if ctx.version < CONFIGS_MIN {
        return result;
    }
    if ctx.may(Operation::DescribeConfigs, TopicName(kept(name))).is_err() {
        return without_configs(result);
    }
    let entries = ctx.node.with_layers(|layers| describe::topic(Wanted(&[]), &topic.configs, layers));
    with_configs(result, topic, entries)
}

/// For who may not read the settings of topics.
fn without_configs(result: CreatableTopicResult) -> CreatableTopicResult {
    result.with_topic_config_error_code(ResponseError::TopicAuthorizationFailed.code()).with_configs(Some(Vec::new()))
}

fn with_configs(
    result: CreatableTopicResult,
    topic: &CreatedTopic,
    mut entries: Vec<describe::DescribedEntry>,
) -> CreatableTopicResult {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let configs = entries.into_iter().map(|entry| {
        CreatableTopicConfigs::default()
            .with_name(message_text(&entry.name))
            .with_value(entry.value.filter(|_| !entry.sensitive).map(StrBytes::from_string))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source.wire_id())
            .with_is_sensitive(entry.sensitive)
    });
    result
        .with_num_partitions(topic.partitions)
        .with_replication_factor(topic.replication_factor)
        .with_configs(Some(configs.collect()))
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let topic = CreatedTopic {
            id: TopicId(uuid::Uuid::from_u128(7)),
            partitions: 3,
            replication_factor: 1,
            configs: Default::default(),
        };
        let none = std::collections::BTreeMap::<String, String>::new();
        let layers = cluster::configs::BrokerLayers { at_start: &none, all_brokers: &none, this_broker: &none };
        let name = StrBytes::from_static_str("t");
        let made = CreatableTopicResult::default().with_name(name.clone().into()).with_topic_id(topic.id.0);
        let entries = describe::topic(Wanted(&[]), &topic.configs, &layers);
        let refusal = Refusal::new(ResponseError::InvalidPartitions, "There must be one.");
        let answers = |version| {
            let mut topics = vec![refused(version, &name, &refusal), made.clone()];
            if version >= CONFIGS_MIN {
                topics.push(without_configs(made.clone()));
                topics.push(with_configs(made.clone(), &topic, entries.clone()));
            }
            CreateTopicsResponse::default().with_topics(topics)
        };
        for (version, read) in read_back(&ENTRY, answers) {
            assert_eq!((read.topics[0].error_code, read.topics[1].error_code), (37, 0), "version {version}");
            assert_eq!(read.topics[1].topic_id == topic.id.0, version >= 7, "version {version}");
            if version >= CONFIGS_MIN {
                assert_eq!(read.topics[2].topic_config_error_code, 29, "version {version}");
                assert_eq!(read.topics[3].num_partitions, 3, "version {version}");
                assert_eq!(read.topics[3].configs.as_ref().map(Vec::len), Some(entries.len()), "version {version}");
            }
        }
    }
}
