//! Which error codes an answer carries, for the metrics: Kafka counts each of them, 0 included (Kafka:
//! AbstractResponse.errorCounts).

use kafka_protocol::messages::*;

use super::clamped::Clamped;
use super::messages as own;

/// An answer whose error codes can be counted.
pub trait ErrorCodes {
    /// Calls `found` with each code in the answer.
    fn error_codes(&self, found: &mut dyn FnMut(i16));
}

impl<T: ErrorCodes, const MAX: i16> ErrorCodes for Clamped<T, MAX> {
    fn error_codes(&self, found: &mut dyn FnMut(i16)) {
        self.0.error_codes(found);
    }
}

/// Names the fields with codes, as they stand in the message: `error_code`, and lists with what their elements hold.
macro_rules! codes {
    ($($message:ty { $($fields:tt)* })*) => {
        $(impl ErrorCodes for $message {
            fn error_codes(&self, found: &mut dyn FnMut(i16)) {
                let message = self;
                codes!(@ message found $($fields)*);
            }
        })*
    };
    (@ $at:ident $found:ident) => {};
    (@ $at:ident $found:ident error_code $($rest:tt)*) => {
        $found($at.error_code);
        codes!(@ $at $found $($rest)*);
    };
    (@ $at:ident $found:ident $list:ident { $($fields:tt)* } $($rest:tt)*) => {
        for element in &$at.$list {
            codes!(@ element $found $($fields)*);
        }
        codes!(@ $at $found $($rest)*);
    };
}

codes! {
    ProduceResponse { responses { partition_responses { error_code } } }
    FetchResponse { error_code responses { partitions { error_code } } }
    ListOffsetsResponse { topics { partitions { error_code } } }
    MetadataResponse { topics { error_code partitions { error_code } } }
    FindCoordinatorResponse { error_code coordinators { error_code } }
    JoinGroupResponse { error_code }
    HeartbeatResponse { error_code }
    LeaveGroupResponse { error_code members { error_code } }
    SyncGroupResponse { error_code }
    DescribeGroupsResponse { groups { error_code } }
    ListGroupsResponse { error_code }
    ApiVersionsResponse { error_code }
    CreateTopicsResponse { topics { error_code } }
    DeleteTopicsResponse { responses { error_code } }
    DeleteRecordsResponse { topics { partitions { error_code } } }
    InitProducerIdResponse { error_code }
    OffsetForLeaderEpochResponse { topics { partitions { error_code } } }
    DescribeConfigsResponse { results { error_code } }
    AlterConfigsResponse { responses { error_code } }
    IncrementalAlterConfigsResponse { responses { error_code } }
    CreatePartitionsResponse { results { error_code } }
    OffsetDeleteResponse { error_code topics { partitions { error_code } } }
    DescribeClusterResponse { error_code }
    DescribeProducersResponse { topics { partitions { error_code } } }
    ListConfigResourcesResponse { error_code }
    DescribeTopicPartitionsResponse { topics { error_code partitions { error_code } } }
    own::DescribeLogDirsResponse { error_code results { error_code } }
    own::DeleteGroupsResponse { results { error_code } }
    own::OffsetFetchResponse { groups { error_code topics { partitions { error_code } } } }
}

impl ErrorCodes for own::OffsetCommitResponse {
    fn error_codes(&self, found: &mut dyn FnMut(i16)) {
        self.topics.iter().flat_map(|topic| &topic.partitions).for_each(|(_, code)| found(*code));
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};

    use super::*;

    #[test]
    fn codes_are_found_at_every_depth() {
        let partition = MetadataResponsePartition::default().with_error_code(5);
        let topic = MetadataResponseTopic::default().with_partitions(vec![partition]);
        let unknown = MetadataResponseTopic::default().with_error_code(3);
        let answer = Clamped::<_, 13>(MetadataResponse::default().with_topics(vec![topic, unknown]));
        let mut codes = Vec::new();
        answer.error_codes(&mut |code| codes.push(code));
        assert_eq!(codes, [0, 5, 3]);
    }
}
