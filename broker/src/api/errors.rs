//! From the errors of the partitions and their logs to Kafka's codes, each map exhaustive. A client gets no
//! UNKNOWN_SERVER_ERROR where it would send the same records again under another number (KAFKA-14034).

use kafka_protocol::ResponseError;
use partition_log::{AppendError, LogError, ProducerError, ReadError};
use record_batch::{Refusal, ValidateError};

use crate::runtime::partition::{AppendFailure, LookupError};

/// The code for a partition that is not there.
pub fn lookup(error: LookupError) -> ResponseError {
    match error {
        LookupError::Unknown => ResponseError::UnknownTopicOrPartition,
        LookupError::UnknownId => ResponseError::UnknownTopicId,
        LookupError::NotLeader => ResponseError::NotLeaderOrFollower,
        LookupError::Offline => ResponseError::KafkaStorageError,
    }
}

/// The code for a batch that does not pass the leader's checks.
pub fn validate(error: &ValidateError) -> ResponseError {
    match error.refusal() {
        Refusal::CorruptMessage => ResponseError::CorruptMessage,
        Refusal::InvalidRecord => ResponseError::InvalidRecord,
        Refusal::InvalidTimestamp => ResponseError::InvalidTimestamp,
        Refusal::MessageTooLarge => ResponseError::MessageTooLarge,
        Refusal::UnsupportedCompressionType => ResponseError::UnsupportedCompressionType,
        Refusal::UnknownServerError => ResponseError::UnknownServerError,
    }
}

/// The code for records that were not appended.
pub fn append(failure: &AppendFailure) -> ResponseError {
    match failure {
        AppendFailure::Closed => ResponseError::NotLeaderOrFollower,
        AppendFailure::Refused(error) => match error {
            AppendError::Producer(error) => producer(error),
            AppendError::Malformed(_) | AppendError::Corrupt { .. } => ResponseError::CorruptMessage,
            AppendError::Empty | AppendError::UnexpectedOffset { .. } => ResponseError::InvalidRecord,
            AppendError::LargerThanSegment { .. } => ResponseError::RecordListTooLarge,
            AppendError::Storage(_) | AppendError::Offline => ResponseError::KafkaStorageError,
        },
    }
}

fn producer(error: &ProducerError) -> ResponseError {
    match error {
        ProducerError::OutOfOrderSequence { .. } => ResponseError::OutOfOrderSequenceNumber,
        ProducerError::InvalidEpoch { .. } => ResponseError::InvalidProducerEpoch,
        ProducerError::InvalidTxnState { .. } => ResponseError::InvalidTxnState,
        ProducerError::CoordinatorFenced { .. } => ResponseError::TransactionCoordinatorFenced,
    }
}

/// The code for a log that cannot be read.
pub fn read(error: &ReadError) -> ResponseError {
    match error {
        ReadError::OutOfRange { .. } => ResponseError::OffsetOutOfRange,
        ReadError::Closed => ResponseError::NotLeaderOrFollower,
        ReadError::WouldBlock | ReadError::Corrupt { .. } | ReadError::Storage(_) => ResponseError::KafkaStorageError,
    }
}

/// The code for a log that cannot be changed; `None` is one that is closed.
pub fn change(error: Option<&LogError>) -> ResponseError {
    match error {
        None => ResponseError::NotLeaderOrFollower,
        Some(LogError::AboveLimit { .. }) => ResponseError::OffsetOutOfRange,
        Some(LogError::Read(error)) => read(error),
        Some(LogError::Storage(_) | LogError::SyncFailed(_) | LogError::Offline) => ResponseError::KafkaStorageError,
    }
}
