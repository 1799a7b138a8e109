//! What a leader checks and changes before it appends a batch from a producer.
//!
//! Order and outcome are Kafka's: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator.
//! Every record is looked at, of compressed batches too, because only so the count, the offsets, the largest timestamp
//! and the keys of a compacted topic are known to be right. Two kinds of batch that Kafka appends are refused here, as
//! no consumer could read them: records whose offsets are not one after another while the batch passes through
//! unchanged, and compressed records whose fields do not fill their declared length.

mod error;
mod rebuild;
mod scan;

use base::{LeaderEpoch, Offset, TimestampMs};
use bytes::{Bytes, BytesMut};

use crate::batch::BatchRef;
use crate::codec::Codec;
use crate::edit::BatchMut;
use crate::header::{BatchHeader, Compression, HeaderError, LEADER_EPOCH_AT, TimestampType};
use crate::stream::Source;

pub use error::{RecordFault, RecordFaultKind, RecordFaults, Refusal, ValidateError};
use rebuild::Rebuild;
use scan::Scan;

/// Faulty records of a batch that are listed one by one; more are only counted.
pub const RECORD_FAULTS_MAX: usize = 1000;
/// Most bytes that may come out of one compressed batch. What is larger is a bomb: a batch of a mebibyte that large
/// takes under a second to decompress this far with any codec.
pub const DECOMPRESSED_BYTES_MAX: usize = 256 << 20;

/// `compression.type` of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetCompression {
    /// As the producer sent it.
    Producer,
    /// Always this one. A batch that has this codec already passes, whatever its level.
    Codec(Codec),
}

/// The settings of a topic, and of the request, that the checks depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`: most bytes of a batch, header included, before and after recompression.
    pub max_message_bytes: usize,
    /// `max.decompressed.message.bytes`: most bytes of one record of a compressed batch.
    pub max_decompressed_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// `cleanup.policy` contains `compact`.
    pub compacted: bool,
    /// `compression.type`.
    pub compression: TargetCompression,
    /// False for Produce before version 7 (KIP-110).
    pub zstd_allowed: bool,
}

impl Default for Rules {
    /// Kafka's defaults.
    fn default() -> Rules {
        Rules {
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: 2_147_483_639,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compacted: false,
            compression: TargetCompression::Producer,
            zstd_allowed: true,
        }
    }
}

/// A batch that may be appended once it has its offset.
#[derive(Debug, Clone)]
pub struct ValidBatch {
    bytes: BytesMut,
    header: BatchHeader,
    log_append_time: Option<TimestampMs>,
    uncompressed_bytes: usize,
    rebuilt: bool,
}

impl ValidBatch {
    /// The header as it will be appended, but for base offset and leader epoch. Its `max_timestamp` is true, and belongs
    /// in the time index with the batch's last offset.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The time of append, if the topic keeps that: what the answer to the producer says.
    pub fn log_append_time(&self) -> Option<TimestampMs> {
        self.log_append_time
    }

    /// Bytes of the batch.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never true.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of the payload without compression.
    pub fn uncompressed_bytes(&self) -> usize {
        self.uncompressed_bytes
    }

    /// True if the records were written anew, with another codec.
    pub fn is_rebuilt(&self) -> bool {
        self.rebuilt
    }

    /// The bytes, for a log that gives them offset and epoch itself.
    pub fn into_bytes(self) -> BytesMut {
        self.bytes
    }

    /// The bytes to append at `base_offset` by the leader of `epoch`.
    pub fn assign(mut self, base_offset: Offset, epoch: LeaderEpoch) -> Bytes {
        self.bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
        self.bytes[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&epoch.to_be_bytes());
        self.bytes.freeze()
    }
}

/// Checks the records that a producer sent for one partition, and makes of them the batch to append.
///
/// `now` is the time of append, in milliseconds. The bytes are changed in place if nobody else holds them, and else
/// copied once. Bytes after the batch that are only the torn start of another are dropped, as Kafka drops them.
pub fn validate(input: Bytes, rules: &Rules, now: TimestampMs) -> Result<ValidBatch, ValidateError> {
    let batch = sole_batch(&input)?;
    let compression = check_header(&batch, rules)?;
    let header = *batch.header();
    let target = match rules.compression {
        TargetCompression::Codec(codec) if codec.compression() != compression => Some(codec),
        TargetCompression::Codec(_) | TargetCompression::Producer => None,
    };
    let mut rebuild = target.map(|codec| Rebuild::new(&header, codec, rules)).transpose()?;
    let source = Source::open(compression, batch.payload(), DECOMPRESSED_BYTES_MAX)?;
    let outcome = Scan::new(&header, rules, now).run(source, rebuild.as_mut())?;

    let log_append_time = match rules.timestamp_type {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(now),
    };
    let max_timestamp = log_append_time.unwrap_or(outcome.max_timestamp);
    let rebuilt = rebuild.is_some();
    let bytes = match rebuild {
        Some(rebuild) => BytesMut::from(Bytes::from(rebuild.finish(rules.timestamp_type, max_timestamp)?)),
        None => {
            let len = header.total_len();
            let mut bytes = owned(input, len);
            BatchMut::parse(&mut bytes)
                .map_err(|_| ValidateError::NoBatch)?
                .set_max_timestamp(rules.timestamp_type, max_timestamp);
            bytes
        }
    };
    let header = BatchHeader::parse(&bytes).map_err(|source| ValidateError::Malformed { source })?;
    let uncompressed_bytes = outcome.uncompressed_bytes;
    Ok(ValidBatch { bytes, header, log_append_time, uncompressed_bytes, rebuilt })
}

/// The first `len` bytes, as our own.
fn owned(mut input: Bytes, len: usize) -> BytesMut {
    input.truncate(len);
    input.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]))
}

/// The one batch that the bytes must hold (ProduceRequest.validateRecords).
fn sole_batch(input: &[u8]) -> Result<BatchRef<'_>, ValidateError> {
    let first = next_batch(input)?.ok_or(ValidateError::NoBatch)?;
    match next_batch(&input[first.bytes().len()..])? {
        None => Ok(first),
        Some(_) => Err(ValidateError::MoreThanOneBatch),
    }
}

/// The batch at the start; `None` if the bytes end inside it.
fn next_batch(input: &[u8]) -> Result<Option<BatchRef<'_>>, ValidateError> {
    match BatchHeader::parse(input) {
        Ok(header) if header.total_len() > input.len() => Ok(None),
        Ok(_) => Ok(BatchRef::parse(input).ok()),
        Err(HeaderError::Truncated { .. }) => Ok(None),
        Err(HeaderError::UnsupportedMagic { magic: magic @ 0..=1 }) => Err(ValidateError::OldMagic { magic }),
        Err(source) => Err(ValidateError::Malformed { source }),
    }
}

/// All that the header alone decides, and the CRC.
fn check_header(batch: &BatchRef<'_>, rules: &Rules) -> Result<Compression, ValidateError> {
    let header = batch.header();
    if !rules.zstd_allowed && header.compression() == Ok(Compression::Zstd) {
        return Err(ValidateError::ZstdNotAllowed);
    }
    if header.base_offset != 0 {
        return Err(ValidateError::BaseOffset { base_offset: header.base_offset });
    }
    let (bytes, max) = (batch.bytes().len(), rules.max_message_bytes);
    if bytes > max {
        return Err(ValidateError::TooLarge { bytes, max });
    }
    batch.verify_crc()?;
    let compression = header.compression()?;
    let (count, last_offset_delta) = (header.record_count, header.last_offset_delta);
    if last_offset_delta < 0 {
        return Err(ValidateError::OffsetRange { last_offset_delta });
    }
    if count <= 0 {
        return Err(ValidateError::RecordCount { count });
    }
    if i64::from(last_offset_delta) + 1 != i64::from(count) {
        return Err(ValidateError::CountMismatch { last_offset_delta, count });
    }
    if header.is_control() {
        return Err(ValidateError::ControlBatch);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        let (producer_id, base_sequence) = (header.producer_id, header.base_sequence);
        return Err(ValidateError::Sequence { producer_id, base_sequence });
    }
    Ok(compression)
}
