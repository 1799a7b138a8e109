//! OffsetForLeaderEpoch (23), versions 2-4: where a leader epoch ends, by which followers and consumers find where their
//! log leaves the leader's (KIP-101, KIP-279, KIP-320).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use kafka_protocol::messages::{ApiKey, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::epochs::check_leader_epoch;
use super::{Api, Context, Entry, Outcome, errors};
use crate::runtime::partition::Partition;
use crate::security::{Operation, TopicName};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<OffsetForLeaderEpoch>("OffsetForLeaderEpoch", 2..=4);

struct OffsetForLeaderEpoch;

impl Api for OffsetForLeaderEpoch {
    const KEY: i16 = ApiKey::OffsetForLeaderEpoch as i16;
    type Request = OffsetForLeaderEpochRequest;
    type Response = OffsetForLeaderEpochResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let topics = request.topics.into_iter().map(|topic| {
            let name = ctx.may(Operation::Describe, TopicName(ctx.node.partitions.shared_name(&topic.topic)));
            let partitions = topic.partitions.iter().map(|asked| {
                let partition = match &name {
                    Ok(name) => ctx.node.partitions.get(name, asked.partition).map_err(errors::lookup),
                    Err(_) => Err(ResponseError::TopicAuthorizationFailed),
                };
                let found = partition.and_then(|partition| end_of_epoch(&partition, asked));
                answer(asked.partition, found)
            });
            let partitions = partitions.collect();
            OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions)
        });
        Outcome::Reply(OffsetForLeaderEpochResponse::default().with_topics(topics.collect()))
    }
}

/// Epoch and end offset; -1 for an epoch that the log does not know.
fn end_of_epoch(partition: &Partition, asked: &OffsetForLeaderPartition) -> Result<(i32, i64), ResponseError> {
    check_leader_epoch(asked.current_leader_epoch, partition)?;
    Ok(partition.reader().epoch_end_offset(asked.leader_epoch).map_or((-1, -1), |end| (end.epoch, end.end_offset)))
}

fn answer(partition: i32, found: Result<(i32, i64), ResponseError>) -> EpochEndOffset {
    let (code, (epoch, end_offset)) = match found {
        Ok(found) => (0, found),
        Err(error) => (error.code(), (-1, -1)),
    };
    EpochEndOffset::default()
        .with_partition(partition)
        .with_error_code(code)
        .with_leader_epoch(epoch)
        .with_end_offset(end_offset)
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let partitions = vec![answer(0, Ok((3, 5))), answer(1, Err(ResponseError::UnknownLeaderEpoch))];
        let topic = OffsetForLeaderTopicResult::default().with_partitions(partitions.clone());
        let answer = OffsetForLeaderEpochResponse::default().with_topics(vec![topic]);
        for (version, read) in read_back(&ENTRY, |_| answer.clone()) {
            assert_eq!(read.topics[0].partitions, partitions, "version {version}");
        }
    }
}
