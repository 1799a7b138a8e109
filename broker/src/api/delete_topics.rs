//! DeleteTopics (20), versions 1-6: by name, from version 6 on also by id (KIP-516; Kafka: ControllerApis.deleteTopics).
//! Mutation quotas (KIP-599) are not kept.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use base::TopicId;
use cluster::controller::DeleteTopics as Command;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{ApiKey, DeleteTopicsRequest, DeleteTopicsResponse};
use kafka_protocol::protocol::StrBytes;

use super::topic_errors::{self, Refusal, within};
use super::{Api, Context, Entry, Outcome};
use crate::security::{Cluster, Operation, TopicName};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DeleteTopics>("DeleteTopics", 1..=6);

/// First version that names topics by id.
const IDS_MIN: i16 = 6;
/// First version that knows the code for "deletion is disabled".
const DISABLED_CODE_MIN: i16 = 3;
/// First version with an error message.
const MESSAGE_MIN: i16 = 5;

struct DeleteTopics;

/// Names and ids that stand once and those that stand more often.
struct Asked<T> {
    once: Vec<T>,
    repeated: Vec<T>,
}

impl<T: Clone + Eq + Hash> Asked<T> {
    fn sort(all: impl Iterator<Item = T>) -> Asked<T> {
        let (mut seen, mut repeated) = (HashSet::new(), HashSet::new());
        let mut order = Vec::new();
        for one in all {
            if !seen.insert(one.clone()) {
                repeated.insert(one);
            } else {
                order.push(one);
            }
        }
        let (repeated, once) = order.into_iter().partition(|one| repeated.contains(one));
        Asked { once, repeated }
    }
}

impl Api for DeleteTopics {
    const KEY: i16 = ApiKey::DeleteTopics as i16;
    type Request = DeleteTopicsRequest;
    type Response = DeleteTopicsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        if !ctx.node.config.topics.delete_enable {
            return Outcome::Reply(disabled(ctx.version, &request));
        }
        let mut answer = Answers { version: ctx.version, results: Vec::new() };
        let ids = resolve(&ctx, request_of(&request, &mut answer), &mut answer);
        let command = Command { ids: ids.keys().copied().collect() };
        if !command.ids.is_empty() {
            match within(request.timeout_ms, ctx.node.controller.run(command)).await {
                Ok(outcomes) => {
                    ctx.node.settled().await;
                    for ((id, name), outcome) in ids.iter().zip(outcomes) {
                        let refusal = outcome.err().map(|error| topic_errors::delete_topics(&error));
                        answer.add(Some(name), *id, refusal.as_ref());
                    }
                }
                Err(refusal) => ids.iter().for_each(|(id, name)| answer.add(Some(name), *id, Some(&refusal))),
            }
        }
        Outcome::Reply(DeleteTopicsResponse::default().with_responses(answer.results))
    }
}

struct Answers {
    version: i16,
    results: Vec<DeletableTopicResult>,
}

impl Answers {
    fn add(&mut self, name: Option<&str>, id: TopicId, refusal: Option<&Refusal>) {
        let (code, message) = Refusal::parts(refusal);
        let mut result = DeletableTopicResult::default().with_error_code(code);
        result.name = name.map(|name| message_text(name).into());
        if self.version >= IDS_MIN {
            result.topic_id = id.0;
        }
        if self.version >= MESSAGE_MIN {
            result.error_message = message;
        }
        self.results.push(result);
    }
}

/// Names and ids of a request of any version; what cannot be is answered at once.
fn request_of(request: &DeleteTopicsRequest, answer: &mut Answers) -> (Asked<StrBytes>, Asked<TopicId>) {
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    names.extend(request.topic_names.iter().map(|name| name.0.clone()));
    for topic in &request.topics {
        let id = TopicId(topic.topic_id);
        match (&topic.name, id.is_zero()) {
            (None, true) => {
                let text = "Neither topic name nor id were specified.";
                answer.add(None, id, Some(&Refusal::new(ResponseError::InvalidRequest, text)));
            }
            (None, false) => ids.push(id),
            (Some(name), true) => names.push(name.0.clone()),
            (Some(name), false) => {
                let text = "You may not specify both topic name and topic id.";
                answer.add(Some(name), id, Some(&Refusal::new(ResponseError::InvalidRequest, text)));
            }
        }
    }
    let (names, ids) = (Asked::sort(names.into_iter()), Asked::sort(ids.into_iter()));
    for name in &names.repeated {
        let refusal = Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name.");
        answer.add(Some(name), TopicId::ZERO, Some(&refusal));
    }
    for id in &ids.repeated {
        answer.add(None, *id, Some(&Refusal::new(ResponseError::InvalidRequest, "Duplicate topic id.")));
    }
    (names, ids)
}

/// The topics that may be deleted. Whether a topic exists is not told to those who may not describe it.
fn resolve(
    ctx: &Context,
    (names, ids): (Asked<StrBytes>, Asked<TopicId>),
    answer: &mut Answers,
) -> BTreeMap<TopicId, String> {
    let image = ctx.node.controller.image();
    let may = |operation, name: &str| {
        ctx.may(operation, Cluster).is_ok() || ctx.may(operation, TopicName(name.into())).is_ok()
    };
    let unauthorized = Refusal::new(ResponseError::TopicAuthorizationFailed, "Topic authorization failed.");
    let mut found = BTreeMap::new();
    for id in ids.once {
        match image.topic_by_id(id).map(|topic| topic.name.to_string()) {
            None => {
                let text = "This server does not host this topic ID.";
                answer.add(None, id, Some(&Refusal::new(ResponseError::UnknownTopicId, text)));
            }
            Some(name) if may(Operation::Delete, &name) => {
                found.insert(id, name);
            }
            Some(name) => {
                let shown = may(Operation::Describe, &name).then_some(name);
                answer.add(shown.as_deref(), id, Some(&unauthorized));
            }
        }
    }
    for name in names.once {
        let name = kept(&name);
        match image.topic(&name).map(|topic| topic.id) {
            _ if !may(Operation::Describe, &name) => answer.add(Some(&name), TopicId::ZERO, Some(&unauthorized)),
            None => {
                let text = "This server does not host this topic-partition.";
                let refusal = Refusal::new(ResponseError::UnknownTopicOrPartition, text);
                answer.add(Some(&name), TopicId::ZERO, Some(&refusal));
            }
            Some(_) if !may(Operation::Delete, &name) => answer.add(Some(&name), TopicId::ZERO, Some(&unauthorized)),
            Some(id) if found.remove(&id).is_some() || ids.repeated.contains(&id) => {
                let text = "The provided topic name maps to an ID that was already supplied.";
                answer.add(Some(&name), id, Some(&Refusal::new(ResponseError::InvalidRequest, text)));
            }
            Some(id) => {
                found.insert(id, name.to_string());
            }
        }
    }
    found
}

fn disabled(version: i16, request: &DeleteTopicsRequest) -> DeleteTopicsResponse {
    let refusal = match version {
        ..DISABLED_CODE_MIN => Refusal::new(ResponseError::InvalidRequest, "Topic deletion is disabled."),
        _ => Refusal::new(ResponseError::TopicDeletionDisabled, "Topic deletion is disabled."),
    };
    let mut answer = Answers { version, results: Vec::new() };
    request.topic_names.iter().for_each(|name| answer.add(Some(name), TopicId::ZERO, Some(&refusal)));
    for topic in &request.topics {
        answer.add(topic.name.as_ref().map(|name| &***name), TopicId(topic.topic_id), Some(&refusal));
    }
    DeleteTopicsResponse::default().with_responses(answer.results)
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let id = TopicId(uuid::Uuid::from_u128(7));
        let refusal = Refusal::new(ResponseError::UnknownTopicOrPartition, "There is none.");
        let answers = |version| {
            let mut answers = Answers { version, results: Vec::new() };
            answers.add(Some("t"), id, None);
            answers.add(Some("u"), TopicId::ZERO, Some(&refusal));
            if version >= IDS_MIN {
                answers.add(None, id, Some(&refusal));
            }
            DeleteTopicsResponse::default().with_responses(answers.results)
        };
        for (version, read) in read_back(&ENTRY, answers) {
            assert_eq!(read.responses, answers(version).responses, "version {version}");
            assert_eq!(read.responses[1].error_message.is_some(), version >= MESSAGE_MIN, "version {version}");
            assert_eq!(read.responses[0].topic_id == id.0, version >= IDS_MIN, "version {version}");
        }
    }

    #[test]
    fn old_versions_are_told_in_a_code_that_they_know_that_deletion_is_disabled() {
        let asked = DeleteTopicsRequest::default().with_topic_names(vec![StrBytes::from_static_str("t").into()]);
        for (version, read) in read_back(&ENTRY, |version| disabled(version, &asked)) {
            let wanted = match version {
                ..DISABLED_CODE_MIN => ResponseError::InvalidRequest,
                _ => ResponseError::TopicDeletionDisabled,
            };
            assert_eq!(read.responses[0].error_code, wanted.code(), "version {version}");
        }
    }
}
