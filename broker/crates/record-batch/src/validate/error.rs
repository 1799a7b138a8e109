//! Why a producer's batch is refused.

use std::fmt;

use base::{Offset, ProducerId, TimestampMs};
use thiserror::Error;

use crate::batch::CrcMismatch;
use crate::builder::BuildError;
use crate::codec::{CompressError, DecompressError};
use crate::header::{HeaderError, UnknownCompression};
use crate::record::RecordError;
use crate::stream::ReadError;

/// Why a batch is refused as a whole. Nothing of it is appended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValidateError {
    /// No whole batch is there.
    #[error("a produce request must have one record batch per partition, and there is none")]
    NoBatch,
    /// A second batch follows the first.
    #[error("a produce request must have exactly one record batch per partition")]
    MoreThanOneBatch,
    /// A format of before 0.11.
    #[error("record batches must have magic 2, not {magic}")]
    OldMagic {
        /// 0 or 1.
        magic: i8,
    },
    /// What is there is no batch.
    #[error("no record batch: {source}")]
    Malformed {
        /// What is wrong with the header.
        source: HeaderError,
    },
    /// The version of the request is older than the codec.
    #[error("produce requests before version 7 may not use zstd compression")]
    ZstdNotAllowed,
    /// The offset is the leader's to set.
    #[error("the base offset of the record batch should be 0, but it is {base_offset}")]
    BaseOffset {
        /// What the batch says.
        base_offset: Offset,
    },
    /// Larger than the topic allows.
    #[error("the record batch has {bytes} bytes, more than the configured maximum of {max}")]
    TooLarge {
        /// Bytes of the batch, or a lower bound of what recompression would make of it.
        bytes: usize,
        /// `max.message.bytes`.
        max: usize,
    },
    /// The bytes were changed on their way.
    #[error(transparent)]
    Crc(#[from] CrcMismatch),
    /// The attributes name no codec.
    #[error(transparent)]
    Compression(#[from] UnknownCompression),
    /// A negative last offset delta.
    #[error("record batch has an invalid offset range: it ends at {last_offset_delta}")]
    OffsetRange {
        /// What the batch says.
        last_offset_delta: i32,
    },
    /// No records, or fewer.
    #[error("invalid count of records: {count}")]
    RecordCount {
        /// What the batch says.
        count: i32,
    },
    /// Two fields of the header contradict each other.
    #[error("record batch of {count} records ends at offset {last_offset_delta}")]
    CountMismatch {
        /// What the batch says.
        last_offset_delta: i32,
        /// What the batch says.
        count: i32,
    },
    /// Only brokers write control records.
    #[error("clients are not allowed to write control records")]
    ControlBatch,
    /// An idempotent producer's batch without a sequence number.
    #[error("invalid sequence number {base_sequence} in a record batch of producer id {producer_id}")]
    Sequence {
        /// What the batch says.
        producer_id: ProducerId,
        /// What the batch says.
        base_sequence: i32,
    },
    /// The records are not what the header says.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The payload cannot be decompressed.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
    /// One record of a compressed batch is larger than the topic allows.
    #[error("a record of {length} bytes exceeds the configured maximum of {max} after decompression")]
    RecordTooLarge {
        /// What the record says.
        length: usize,
        /// `max.decompressed.message.bytes`.
        max: usize,
    },
    /// Offsets must follow each other from 0.
    #[error("record {index} of the batch has the offset delta {offset_delta}")]
    OffsetDelta {
        /// Place in the batch, from 0.
        index: i32,
        /// What the record says.
        offset_delta: i32,
    },
    /// Some records cannot stand in this topic.
    #[error(transparent)]
    Records(#[from] RecordFaults),
    /// The batch could not be recompressed.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The recompressed batch could not be put together.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl From<ReadError> for ValidateError {
    fn from(error: ReadError) -> ValidateError {
        match error {
            ReadError::Compression(error) => error.into(),
            ReadError::Decompress(error) => error.into(),
            ReadError::Record(error) => error.into(),
        }
    }
}

/// The kinds of answer that Kafka gives to a refused batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// CORRUPT_MESSAGE.
    CorruptMessage,
    /// INVALID_RECORD.
    InvalidRecord,
    /// INVALID_TIMESTAMP.
    InvalidTimestamp,
    /// MESSAGE_TOO_LARGE.
    MessageTooLarge,
    /// UNSUPPORTED_COMPRESSION_TYPE.
    UnsupportedCompressionType,
    /// UNKNOWN_SERVER_ERROR: Kafka has no better answer to a codec that does not exist and to data its codec cannot
    /// read. Clients do not retry it, and nothing was appended.
    UnknownServerError,
}

impl ValidateError {
    /// The answer that Kafka gives.
    pub fn refusal(&self) -> Refusal {
        match self {
            ValidateError::Malformed { .. } | ValidateError::Crc(_) => Refusal::CorruptMessage,
            ValidateError::NoBatch
            | ValidateError::MoreThanOneBatch
            | ValidateError::OldMagic { .. }
            | ValidateError::BaseOffset { .. }
            | ValidateError::OffsetRange { .. }
            | ValidateError::RecordCount { .. }
            | ValidateError::CountMismatch { .. }
            | ValidateError::ControlBatch
            | ValidateError::Sequence { .. }
            | ValidateError::Record(_)
            | ValidateError::RecordTooLarge { .. }
            | ValidateError::OffsetDelta { .. }
            | ValidateError::Decompress(DecompressError::TooLarge { .. }) => Refusal::InvalidRecord,
            ValidateError::TooLarge { .. } => Refusal::MessageTooLarge,
            ValidateError::ZstdNotAllowed => Refusal::UnsupportedCompressionType,
            ValidateError::Records(faults) if faults.invalid_timestamp => Refusal::InvalidTimestamp,
            ValidateError::Records(_) => Refusal::InvalidRecord,
            ValidateError::Compression(_)
            | ValidateError::Decompress(DecompressError::Corrupt { .. } | DecompressError::NoContext { .. })
            | ValidateError::Compress(_)
            | ValidateError::Build(_) => Refusal::UnknownServerError,
        }
    }
}

/// The faulty records of a batch (KIP-467: `record_errors`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Error)]
#[error("{total} records of the batch have been rejected")]
pub struct RecordFaults {
    /// The first of them, at most `RECORD_FAULTS_MAX`.
    pub faults: Vec<RecordFault>,
    /// All of them.
    pub total: usize,
    /// One of them has a timestamp that is not allowed.
    pub invalid_timestamp: bool,
}

impl RecordFaults {
    pub(super) fn push(&mut self, batch_index: i32, kind: RecordFaultKind) {
        self.total += 1;
        self.invalid_timestamp |= !matches!(kind, RecordFaultKind::NoKey);
        if self.faults.len() < super::RECORD_FAULTS_MAX {
            self.faults.push(RecordFault { batch_index, kind });
        }
    }
}

/// One faulty record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFault {
    /// Place in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong with it; its text is for `batch_index_error_message`.
    pub kind: RecordFaultKind,
}

/// What can be wrong with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFaultKind {
    /// A compacted topic needs keys.
    NoKey,
    /// Too old or too far in the future.
    Timestamp {
        /// Of the record.
        timestamp: TimestampMs,
        /// Of the record, in the batch as it was sent.
        offset: Offset,
        /// Oldest that is allowed.
        from: TimestampMs,
        /// Latest that is allowed.
        to: TimestampMs,
    },
    /// Only the broker marks a batch with its time of append.
    AppendTimeFromProducer,
}

impl fmt::Display for RecordFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFaultKind::NoKey => f.write_str("A compacted topic does not accept a record without a key"),
            RecordFaultKind::Timestamp { timestamp, offset, from, to } => write!(
                f,
                "Timestamp {timestamp} of the record at offset {offset} is out of range: it should be within [{from}, {to}]"
            ),
            RecordFaultKind::AppendTimeFromProducer => {
                f.write_str("A producer may not set the timestamp type to LogAppendTime")
            }
        }
    }
}
