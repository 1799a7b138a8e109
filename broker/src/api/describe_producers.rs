//! DescribeProducers (61), version 0: the producers that partitions remember (KIP-664).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_protocol::messages::{ApiKey, DescribeProducersRequest, DescribeProducersResponse};
use partition_log::ProducerEntry;

use super::{Api, Context, Entry, Outcome, errors};
use crate::security::{Operation, TopicName};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeProducers>("DescribeProducers", 0..=0);

struct DescribeProducers;

impl Api for DescribeProducers {
    const KEY: i16 = ApiKey::DescribeProducers as i16;
    type Request = DescribeProducersRequest;
    type Response = DescribeProducersResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let name = ctx.may(Operation::Read, TopicName(ctx.node.partitions.shared_name(&topic.name)));
            let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
            for index in topic.partition_indexes {
                let partition = match &name {
                    Ok(name) => ctx.node.partitions.get(name, index).map_err(errors::lookup),
                    Err(_) => Err(ResponseError::TopicAuthorizationFailed),
                };
                let answer = PartitionResponse::default().with_partition_index(index);
                partitions.push(match partition {
                    Ok(partition) => {
                        let producers = partition.producers().await;
                        answer.with_active_producers(producers.iter().map(producer).collect())
                    }
                    Err(error) => answer.with_error_code(error.code()),
                });
            }
            topics.push(TopicResponse::default().with_name(topic.name).with_partitions(partitions));
        }
        Outcome::Reply(DescribeProducersResponse::default().with_topics(topics))
    }
}

fn producer(entry: &ProducerEntry) -> ProducerState {
    ProducerState::default()
        .with_producer_id(entry.producer_id.into())
        .with_producer_epoch(entry.producer_epoch.into())
        .with_last_sequence(entry.last_sequence())
        .with_last_timestamp(entry.last_timestamp)
        .with_coordinator_epoch(entry.coordinator_epoch)
        .with_current_txn_start_offset(entry.current_txn_first_offset.unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let mut entry = ProducerEntry::unknown(7);
        entry.current_txn_first_offset = Some(5);
        let partition = PartitionResponse::default().with_active_producers(vec![producer(&entry)]);
        let topic = TopicResponse::default().with_partitions(vec![partition]);
        for (_, read) in read_back(&ENTRY, |_| DescribeProducersResponse::default().with_topics(vec![topic.clone()])) {
            assert_eq!(read.topics, std::slice::from_ref(&topic));
        }
    }
}
