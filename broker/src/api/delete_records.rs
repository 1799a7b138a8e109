//! DeleteRecords (21), versions 0-2: raises the first readable offset of partitions (KIP-107).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_records_request::DeleteRecordsPartition;
use kafka_protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_protocol::messages::{ApiKey, DeleteRecordsRequest, DeleteRecordsResponse};

use super::{Api, Context, Entry, Outcome, errors};
use crate::security::{Authorized, Operation, TopicName};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DeleteRecords>("DeleteRecords", 0..=2);

/// Stands for the high watermark in a request (Kafka: DeleteRecordsRequest.HIGH_WATERMARK).
const HIGH_WATERMARK: i64 = -1;

struct DeleteRecords;

impl Api for DeleteRecords {
    const KEY: i16 = ApiKey::DeleteRecords as i16;
    type Request = DeleteRecordsRequest;
    type Response = DeleteRecordsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let name = ctx.may(Operation::Delete, TopicName(ctx.node.partitions.shared_name(&topic.name)));
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in &topic.partitions {
                let deleted = match &name {
                    Ok(name) => delete(&ctx, name, asked).await,
                    Err(_) => Err(ResponseError::TopicAuthorizationFailed),
                };
                let (code, low_watermark) = match deleted {
                    Ok(low_watermark) => (0, low_watermark),
                    Err(error) => (error.code(), -1),
                };
                partitions.push(
                    DeleteRecordsPartitionResult::default()
                        .with_partition_index(asked.partition_index)
                        .with_error_code(code)
                        .with_low_watermark(low_watermark),
                );
            }
            topics.push(DeleteRecordsTopicResult::default().with_name(topic.name).with_partitions(partitions));
        }
        Outcome::Reply(DeleteRecordsResponse::default().with_topics(topics))
    }
}

async fn delete(
    ctx: &Context,
    name: &Authorized<TopicName>,
    asked: &DeleteRecordsPartition,
) -> Result<i64, ResponseError> {
    // Their content is the coordinators' (Kafka: ReplicaManager.deleteRecordsOnLocalLog).
    if base::topics::is_internal_topic(&name.get().0) {
        return Err(ResponseError::InvalidTopicException);
    }
    let partition = ctx.node.partitions.get(name, asked.partition_index).map_err(errors::lookup)?;
    if !partition.topic().config.load().cleanup_delete {
        return Err(ResponseError::PolicyViolation);
    }
    if asked.offset < 0 && asked.offset != HIGH_WATERMARK {
        return Err(ResponseError::OffsetOutOfRange);
    }
    partition.delete_records(asked.offset).await.map_err(|error| errors::change(error.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let partition = DeleteRecordsPartitionResult::default().with_low_watermark(5).with_error_code(1);
        let topic = DeleteRecordsTopicResult::default().with_partitions(vec![partition]);
        for (_, read) in read_back(&ENTRY, |_| DeleteRecordsResponse::default().with_topics(vec![topic.clone()])) {
            assert_eq!(read.topics, std::slice::from_ref(&topic));
        }
    }
}
