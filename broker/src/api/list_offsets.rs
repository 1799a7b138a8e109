//! ListOffsets (2), versions 1-11: first record at or after a timestamp, and the offsets that negative timestamps stand
//! for (KIP-79, KIP-734 max timestamp, KIP-405 and KIP-1005 local and tiered offsets, KIP-1023 pending upload).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::{ApiKey, ListOffsetsRequest, ListOffsetsResponse};
use kafka_protocol::protocol::StrBytes;
use partition_log::{Bound, ReadError, TimestampOffset};

use super::epochs::check_leader_epoch;
use super::{Api, Context, Entry, Outcome, errors};
use crate::runtime::partition::Partition;
use crate::security::{Operation, TopicName};
use crate::tasks::Tasks;
use crate::wire::clamped::Clamped;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<ListOffsets>("ListOffsets", 1..=11);

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;
/// First version of each timestamp with a meaning of its own.
const MEANING_SINCE: [(i64, i16); 4] =
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)];
/// `isolation_level` of readers that see committed records alone.
const READ_COMMITTED: i8 = 1;

struct ListOffsets;

impl Api for ListOffsets {
    const KEY: i16 = ApiKey::ListOffsets as i16;
    /// Version 11 gives timestamp -6 a meaning and has the layout of 10.
    type Request = Clamped<ListOffsetsRequest, 10>;
    type Response = Clamped<ListOffsetsResponse, 10>;

    async fn handle(ctx: Context, Clamped(request): Self::Request) -> Outcome<Self::Response> {
        let bound =
            if request.isolation_level == READ_COMMITTED { Bound::LastStableOffset } else { Bound::HighWatermark };
        let mut twice = repeated(&request);
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let name = TopicName(ctx.node.partitions.shared_name(&topic.name));
            let name = ctx.may(Operation::Describe, name);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in &topic.partitions {
                let told = twice.get_mut(&(topic.name.0.clone(), asked.partition_index));
                let partition = match (&name, told) {
                    (Err(_), _) => Err(ResponseError::TopicAuthorizationFailed),
                    (Ok(_), Some(true)) => continue,
                    (Ok(_), Some(told)) => {
                        *told = true;
                        Err(ResponseError::InvalidRequest)
                    }
                    (Ok(name), None) => ctx.node.partitions.get(name, asked.partition_index).map_err(errors::lookup),
                };
                let found = match partition {
                    Ok(partition) => list(&ctx, &partition, asked, bound).await,
                    Err(code) => Err(code),
                };
                partitions.push(answer(ctx.version, asked.partition_index, found));
            }
            topics.push(ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(partitions));
        }
        Outcome::Reply(Clamped(ListOffsetsResponse::default().with_topics(topics)))
    }
}

/// Partitions that the request names more than once, none of them told yet: each is answered once and with an error
/// (Kafka: ReplicaManager.fetchOffset).
fn repeated(request: &ListOffsetsRequest) -> HashMap<(StrBytes, i32), bool> {
    let mut asked = HashSet::new();
    let mut twice = HashMap::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let key = (topic.name.0.clone(), partition.partition_index);
            if !asked.insert(key.clone()) {
                twice.insert(key, false);
            }
        }
    }
    twice
}

/// Offset, timestamp and epoch; -1 for what there is not.
struct Listed {
    offset: i64,
    timestamp: i64,
    epoch: i32,
}

impl Listed {
    const NOTHING: Listed = Listed { offset: -1, timestamp: -1, epoch: -1 };

    fn offset(offset: i64, epoch: Option<i32>) -> Listed {
        Listed { offset, timestamp: -1, epoch: epoch.unwrap_or(-1) }
    }
}

async fn list(
    ctx: &Context,
    partition: &Arc<Partition>,
    asked: &ListOffsetsPartition,
    bound: Bound,
) -> Result<Listed, ResponseError> {
    if let Some((_, since)) = MEANING_SINCE.iter().find(|(timestamp, _)| *timestamp == asked.timestamp)
        && ctx.version < *since
    {
        return Err(ResponseError::UnsupportedVersion);
    }
    check_leader_epoch(asked.current_leader_epoch, partition)?;
    let reader = partition.reader();
    let start = reader.log_start_offset();
    match asked.timestamp {
        LATEST => Ok(Listed::offset(reader.bound(bound), Some(partition.leader_epoch()))),
        EARLIEST | EARLIEST_LOCAL => Ok(Listed::offset(start, reader.epoch_of(start))),
        // There is no tiered storage, so nothing was uploaded and nothing waits to be.
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(Listed::NOTHING),
        timestamp if timestamp < EARLIEST_PENDING_UPLOAD => Err(ResponseError::UnsupportedVersion),
        timestamp if timestamp < EARLIEST_PENDING_UPLOAD => Err(ResponseError::UnsupportedVersion),
        timestamp => {
            let reader = reader.clone();
            let search = move || {
                if timestamp == MAX_TIMESTAMP { reader.max_timestamp() } else { reader.offset_for_timestamp(timestamp) }
            };
            let found: Option<Result<Option<TimestampOffset>, ReadError>> = Tasks::run_aside(search).await;
            let found = found.ok_or(ResponseError::KafkaStorageError)?.map_err(|error| errors::read(&error))?;
            let visible = partition.reader().bound(bound);
            Ok(found.filter(|found| found.offset < visible).map_or(Listed::NOTHING, |found| Listed {
                offset: found.offset,
                timestamp: found.timestamp,
                epoch: found.leader_epoch.unwrap_or(-1),
            }))
        }
    }
}

fn answer(version: i16, index: i32, found: Result<Listed, ResponseError>) -> ListOffsetsPartitionResponse {
    let (code, listed) = match found {
        Ok(listed) => (0, listed),
        Err(error) => (error.code(), Listed::NOTHING),
    };
    let answer = ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(code)
        .with_offset(listed.offset)
        .with_timestamp(listed.timestamp);
    if version >= 4 { answer.with_leader_epoch(listed.epoch) } else { answer }
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let answers = |version| {
            let found = Listed { offset: 5, timestamp: 1000, epoch: 3 };
            let partitions = vec![
                answer(version, 0, Ok(found)),
                answer(version, 1, Ok(Listed::NOTHING)),
                answer(version, 2, Err(ResponseError::UnknownTopicOrPartition)),
            ];
            let topic = ListOffsetsTopicResponse::default().with_partitions(partitions);
            Clamped::<_, 10>(ListOffsetsResponse::default().with_topics(vec![topic]))
        };
        for (version, Clamped(read)) in read_back(&ENTRY, answers) {
            let shown: Vec<_> =
                read.topics[0].partitions.iter().map(|p| (p.error_code, p.offset, p.timestamp)).collect();
            assert_eq!(shown, [(0, 5, 1000), (0, -1, -1), (3, -1, -1)], "version {version}");
            assert_eq!(read.topics[0].partitions[0].leader_epoch, if version >= 4 { 3 } else { -1 });
        }
    }
}
