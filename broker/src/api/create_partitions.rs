//! CreatePartitions (37), versions 0-3 (KIP-195; Kafka: ControllerApis.createPartitions). Mutation quotas (KIP-599) are
//! not kept.

use base::NodeId;
use cluster::controller::{CreatePartitions as Command, PartitionsTopic};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{ApiKey, CreatePartitionsRequest, CreatePartitionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::topic_errors::{self, Refusal, named_once, within};
use super::{Api, Context, Entry, Outcome};
use crate::security::{Operation, TopicName};
use crate::wire::text::kept;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<CreatePartitions>("CreatePartitions", 0..=3);

struct CreatePartitions;

impl Api for CreatePartitions {
    const KEY: i16 = ApiKey::CreatePartitions as i16;
    type Request = CreatePartitionsRequest;
    type Response = CreatePartitionsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let (once, repeated) = named_once(request.topics, |topic| &topic.name.0);
        let refusal = Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name.");
        let mut results: Vec<_> = repeated.iter().map(|name| result(name, Some(&refusal))).collect();
        let mut accepted = Vec::with_capacity(once.len());
        for topic in once {
            if ctx.may(Operation::Alter, TopicName(kept(&topic.name))).is_err() {
                let refusal = Refusal::new(ResponseError::TopicAuthorizationFailed, "Authorization failed.");
                results.push(result(&topic.name.0, Some(&refusal)));
            } else {
                accepted.push(topic);
            }
        }
        results.extend(add(&ctx, &accepted, request.validate_only, request.timeout_ms).await);
        Outcome::Reply(CreatePartitionsResponse::default().with_results(results))
    }
}

async fn add(
    ctx: &Context,
    topics: &[CreatePartitionsTopic],
    validate_only: bool,
    timeout_ms: i32,
) -> Vec<CreatePartitionsTopicResult> {
    if topics.is_empty() {
        return Vec::new();
    }
    let command = Command { topics: topics.iter().map(asked).collect(), validate_only };
    let answer = within(timeout_ms, ctx.node.controller.run(command)).await;
    match answer {
        Ok(outcomes) => {
            if !validate_only {
                ctx.node.settled().await;
            }
            let refusals = outcomes.iter().map(|o| o.as_ref().err().map(topic_errors::create_partitions));
            topics.iter().zip(refusals).map(|(topic, refusal)| result(&topic.name.0, refusal.as_ref())).collect()
        }
        Err(refusal) => topics.iter().map(|topic| result(&topic.name.0, Some(&refusal))).collect(),
    }
}

fn asked(topic: &CreatePartitionsTopic) -> PartitionsTopic {
    let brokers = |ids: &[kafka_protocol::messages::BrokerId]| ids.iter().map(|id| NodeId(id.0)).collect();
    PartitionsTopic {
        name: topic.name.to_string(),
        count: topic.count,
        assignments: topic.assignments.as_ref().map(|all| all.iter().map(|one| brokers(&one.broker_ids)).collect()),
    }
}

fn result(name: &StrBytes, refusal: Option<&Refusal>) -> CreatePartitionsTopicResult {
    let (code, message) = Refusal::parts(refusal);
    CreatePartitionsTopicResult::default()
        .with_name(name.clone().into())
        .with_error_code(code)
        .with_error_message(message)
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let refusal = Refusal::new(ResponseError::InvalidPartitions, "The topic has more.");
        let results = vec![result(&"t".into(), None), result(&"u".into(), Some(&refusal))];
        for (version, read) in read_back(&ENTRY, |_| CreatePartitionsResponse::default().with_results(results.clone()))
        {
            assert_eq!(read.results, results, "version {version}");
        }
    }
}
