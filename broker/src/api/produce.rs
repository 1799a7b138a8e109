//! Produce (0), versions 3-13, advertised from 0 (KAFKA-18659: older librdkafka turns compression off otherwise). Batches
//! are checked here and appended by the owner of the log; partitions of one request are appended side by side, requests
//! of one connection one after the other (KIP-98, KIP-467 record errors, KIP-516 topic ids from version 13).
//! Transactional batches are refused with INVALID_TXN_STATE, because there is no transaction coordinator yet.

use std::sync::Arc;

use base::TopicId;
use bytes::Bytes;
use cluster::configs::{CompressionType, TimestampType, TopicConfig};
use futures_util::future::join_all;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ApiKey, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;
use partition_log::{AppendOrigin, Appended};
use record_batch::{Codec, Rules, TargetCompression, ValidateError};

use super::errors;
use super::{Api, Context, Entry, Outcome};
use crate::observe::TopicCounter;
use crate::runtime::partition::{AppendFailure, LookupError, Partition};
use crate::security::{Authorized, Operation, TopicName};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<Produce>("Produce", 3..=13).advertised_from(0).pipelined();

/// First version that names topics by id.
const TOPIC_ID_VERSION: i16 = 13;
/// First version whose answer explains errors.
const RECORD_ERRORS_VERSION: i16 = 8;
/// First version that may carry zstd (KIP-110).
const ZSTD_VERSION: i16 = 7;
/// `client.id` of the admin client, which alone may write to internal topics (Kafka: AdminUtils.ADMIN_CLIENT_ID).
const ADMIN_CLIENT_ID: &str = "__admin_client";

struct Produce;

impl Api for Produce {
    const KEY: i16 = ApiKey::Produce as i16;
    type Request = ProduceRequest;
    type Response = ProduceResponse;

    async fn handle(ctx: Context, request: ProduceRequest) -> Outcome<ProduceResponse> {
        let acks = request.acks;
        let refusal = refusal(&request);
        let responses = join_all(request.topic_data.into_iter().map(|topic| produce_topic(&ctx, topic, refusal))).await;
        if acks == 0 {
            return match first_error(&responses) {
                // The client hears of the failure by losing its connection (Kafka: KafkaApis.handleProduceRequest).
                Some(code) => Outcome::Close(format!("a produce request with acks=0 failed with error code {code}")),
                None => Outcome::Silent,
            };
        }
        Outcome::Reply(ProduceResponse::default().with_responses(responses))
    }
}

/// The code for every partition of a request that is wrong as a whole (Kafka: KafkaApis.handleProduceRequest).
fn refusal(request: &ProduceRequest) -> Option<ResponseError> {
    if !matches!(request.acks, -1..=1) {
        return Some(ResponseError::InvalidRequiredAcks);
    }
    let mut batches = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let transactional = batches.any(|data| data.records.as_deref().is_some_and(is_transactional));
    (request.transactional_id.is_none() && transactional).then_some(ResponseError::TransactionalIdAuthorizationFailed)
}

/// True if the header of the batch says that it belongs to a transaction.
fn is_transactional(batch: &[u8]) -> bool {
    const ATTRIBUTES_LOW_BYTE: usize = 22;
    const TRANSACTIONAL: u8 = 0x10;
    batch.get(ATTRIBUTES_LOW_BYTE).is_some_and(|attributes| attributes & TRANSACTIONAL != 0)
}

fn first_error(responses: &[TopicProduceResponse]) -> Option<i16> {
    let partitions = responses.iter().flat_map(|topic| &topic.partition_responses);
    partitions.map(|partition| partition.error_code).find(|code| *code != 0)
}

async fn produce_topic(ctx: &Context, topic: TopicProduceData, refusal: Option<ResponseError>) -> TopicProduceResponse {
    let name = resolve(ctx, &topic);
    let answers = topic.partition_data.into_iter().map(|data| {
        let name = name.clone();
        async move {
            let index = data.index;
            let outcome = match (refusal, name) {
                (Some(code), _) | (None, Err(code)) => Err(Failure::Code(code)),
                (None, Ok(name)) => produce_partition(ctx, &name, data).await,
            };
            answer(ctx.version, index, outcome)
        }
    });
    let partition_responses = join_all(answers).await;
    TopicProduceResponse::default()
        .with_name(topic.name)
        .with_topic_id(topic.topic_id)
        .with_partition_responses(partition_responses)
}

/// The topic that is meant, if the session may write to it.
fn resolve(ctx: &Context, topic: &TopicProduceData) -> Result<Authorized<TopicName>, ResponseError> {
    let name = if ctx.version >= TOPIC_ID_VERSION {
        let id = TopicId(topic.topic_id);
        ctx.node.partitions.name_of(id).ok_or(errors::lookup(LookupError::UnknownId))?
    } else {
        ctx.node.partitions.shared_name(&topic.name)
    };
    let internal = base::topics::is_internal_topic(&name);
    let name = ctx.may(Operation::Write, TopicName(name)).map_err(|_| ResponseError::TopicAuthorizationFailed)?;
    if internal && &*ctx.session.client_id != ADMIN_CLIENT_ID {
        return Err(ResponseError::InvalidTopicException);
    }
    Ok(name)
}

enum Failure {
    Code(ResponseError),
    Invalid(ValidateError),
    Append(AppendFailure),
}

async fn produce_partition(
    ctx: &Context,
    name: &Authorized<TopicName>,
    data: PartitionProduceData,
) -> Result<Appended, Failure> {
    let partition = ctx.node.partitions.get(name, data.index).map_err(|e| Failure::Code(errors::lookup(e)))?;
    let metrics = partition.topic().metrics.clone();
    metrics.add(TopicCounter::TotalProduceRequests, 1);
    let records = data.records.unwrap_or_default();
    let bytes = records.len() as u64;
    let outcome = append(ctx, &partition, records).await;
    match &outcome {
        Ok(appended) => {
            metrics.add(TopicCounter::BytesIn, bytes);
            metrics.add(TopicCounter::MessagesIn, (appended.last_offset - appended.first_offset + 1) as u64);
        }
        Err(failure) => {
            metrics.add(TopicCounter::FailedProduceRequests, 1);
            metrics.add(TopicCounter::BytesRejected, bytes);
            if let Some(counter) = counter_of(failure) {
                metrics.add(counter, 1);
            }
        }
    }
    outcome
}

async fn append(ctx: &Context, partition: &Arc<Partition>, records: Bytes) -> Result<Appended, Failure> {
    let now_ms = ctx.node.clock.wall_ms();
    let rules = rules(&partition.topic().config.load(), ctx.version);
    let valid = record_batch::validate(records, &rules, now_ms).map_err(Failure::Invalid)?;
    partition.append(valid.into_bytes(), AppendOrigin::Client).await.map_err(Failure::Append)
}

/// What the topic's settings demand of a batch.
fn rules(topic: &TopicConfig, version: i16) -> Rules {
    let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
    let compression = match topic.compression_type {
        CompressionType::Producer => TargetCompression::Producer,
        CompressionType::Uncompressed => TargetCompression::Codec(Codec::Uncompressed),
        CompressionType::Gzip => TargetCompression::Codec(Codec::Gzip { level: topic.compression_gzip_level }),
        CompressionType::Snappy => TargetCompression::Codec(Codec::Snappy),
        CompressionType::Lz4 => TargetCompression::Codec(Codec::Lz4 { level: topic.compression_lz4_level }),
        CompressionType::Zstd => TargetCompression::Codec(Codec::Zstd { level: topic.compression_zstd_level }),
    };
    Rules {
        max_message_bytes: size(topic.max_message_bytes),
        max_decompressed_message_bytes: size(topic.max_decompressed_message_bytes),
        timestamp_type: match topic.message_timestamp_type {
            TimestampType::CreateTime => record_batch::TimestampType::CreateTime,
            TimestampType::LogAppendTime => record_batch::TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: topic.message_timestamp_before_max_ms,
        timestamp_after_max_ms: topic.message_timestamp_after_max_ms,
        compacted: topic.cleanup_compact,
        compression,
        zstd_allowed: version >= ZSTD_VERSION,
    }
}

/// Why the batch was refused, as Kafka counts it (Kafka: BrokerTopicMetrics).
fn counter_of(failure: &Failure) -> Option<TopicCounter> {
    match failure {
        Failure::Code(_) => None,
        Failure::Append(failure) => (errors::append(failure) == ResponseError::OutOfOrderSequenceNumber)
            .then_some(TopicCounter::InvalidOffsetOrSequenceRecords),
        Failure::Invalid(error) => match error {
            ValidateError::Crc(_) => Some(TopicCounter::InvalidMessageCrcRecords),
            ValidateError::OldMagic { .. } => Some(TopicCounter::InvalidMagicNumberRecords),
            ValidateError::Records(faults) if !faults.invalid_timestamp => {
                Some(TopicCounter::NoKeyCompactedTopicRecords)
            }
            ValidateError::OffsetDelta { .. }
            | ValidateError::OffsetRange { .. }
            | ValidateError::CountMismatch { .. }
            | ValidateError::Sequence { .. } => Some(TopicCounter::InvalidOffsetOrSequenceRecords),
            _ => None,
        },
    }
}

fn answer(version: i16, index: i32, outcome: Result<Appended, Failure>) -> PartitionProduceResponse {
    let answer = PartitionProduceResponse::default().with_index(index);
    let (code, message, record_errors) = match outcome {
        Ok(appended) => {
            let answer =
                answer.with_base_offset(appended.first_offset).with_log_append_time_ms(appended.log_append_time_ms);
            return if version >= 5 { answer.with_log_start_offset(appended.log_start_offset) } else { answer };
        }
        Err(Failure::Code(code)) => (code, None, Vec::new()),
        Err(Failure::Append(failure)) => {
            let told = matches!(failure, AppendFailure::Refused(_)).then(|| failure.to_string());
            (errors::append(&failure), told, Vec::new())
        }
        Err(Failure::Invalid(error)) => (errors::validate(&error), Some(error.to_string()), record_errors(&error)),
    };
    let answer = answer.with_error_code(code.code()).with_base_offset(-1).with_log_append_time_ms(-1);
    if version < RECORD_ERRORS_VERSION {
        return answer;
    }
    answer.with_error_message(message.map(StrBytes::from_string)).with_record_errors(record_errors)
}

fn record_errors(error: &ValidateError) -> Vec<BatchIndexAndErrorMessage> {
    let ValidateError::Records(faults) = error else { return Vec::new() };
    let told = faults.faults.iter().map(|fault| {
        BatchIndexAndErrorMessage::default()
            .with_batch_index(fault.batch_index)
            .with_batch_index_error_message(Some(StrBytes::from_string(fault.kind.to_string())))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;
    use record_batch::{RecordFault, RecordFaultKind, RecordFaults};

    #[test]
    fn every_answer_is_written_at_every_version() {
        let appended = Appended {
            first_offset: 5,
            last_offset: 7,
            log_append_time_ms: 1000,
            log_start_offset: 3,
            duplicate: false,
        };
        let fault = RecordFault { batch_index: 2, kind: RecordFaultKind::NoKey };
        let faults = RecordFaults { faults: vec![fault], total: 1, invalid_timestamp: false };
        let answers = |version| {
            let partitions = vec![
                answer(version, 0, Ok(appended)),
                answer(version, 1, Err(Failure::Code(ResponseError::UnknownTopicOrPartition))),
                answer(version, 2, Err(Failure::Invalid(ValidateError::Records(faults.clone())))),
            ];
            let topic = TopicProduceResponse::default().with_partition_responses(partitions);
            ProduceResponse::default().with_responses(vec![match version {
                TOPIC_ID_VERSION.. => topic.with_topic_id(uuid::Uuid::from_u128(7)),
                _ => topic.with_name(StrBytes::from_static_str("t").into()),
            }])
        };
        for (version, read) in read_back(&ENTRY, answers) {
            let [good, unknown, invalid] = &read.responses[0].partition_responses[..] else {
                panic!("three partitions")
            };
            assert_eq!((good.base_offset, good.log_append_time_ms), (5, 1000), "version {version}");
            assert_eq!((unknown.error_code, unknown.base_offset), (3, -1), "version {version}");
            assert_eq!(invalid.error_code, 87, "version {version}");
            let told = invalid.record_errors.first().map(|e| (e.batch_index, e.batch_index_error_message.is_some()));
            assert_eq!(told, (version >= RECORD_ERRORS_VERSION).then_some((2, true)), "version {version}");
        }
    }
}
