//! The 61 bytes that every batch begins with, and what its attribute bits mean. Reads bytes only.

use base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use thiserror::Error;

/// Bytes of a batch before its first record (Kafka: DefaultRecordBatch.RECORD_BATCH_OVERHEAD).
pub const HEADER_LEN: usize = 61;
/// Bytes of base offset and length field, which the length field does not count (Kafka: Records.LOG_OVERHEAD).
pub const LOG_OVERHEAD: usize = 12;
/// The only format this crate reads and writes.
pub const MAGIC_V2: i8 = 2;

pub(crate) const LENGTH_AT: usize = 8;
pub(crate) const LEADER_EPOCH_AT: usize = 12;
pub(crate) const MAGIC_AT: usize = 16;
pub(crate) const CRC_AT: usize = 17;
/// First byte that the CRC covers; it covers all from here to the end of the batch.
pub(crate) const ATTRIBUTES_AT: usize = 21;
pub(crate) const LAST_OFFSET_DELTA_AT: usize = 23;
pub(crate) const BASE_TIMESTAMP_AT: usize = 27;
pub(crate) const MAX_TIMESTAMP_AT: usize = 35;
pub(crate) const PRODUCER_ID_AT: usize = 43;
pub(crate) const PRODUCER_EPOCH_AT: usize = 51;
pub(crate) const BASE_SEQUENCE_AT: usize = 53;
pub(crate) const RECORD_COUNT_AT: usize = 57;

pub(crate) const COMPRESSION_MASK: i16 = 0x07;
pub(crate) const TIMESTAMP_TYPE_MASK: i16 = 0x08;
pub(crate) const TRANSACTIONAL_MASK: i16 = 0x10;
pub(crate) const CONTROL_MASK: i16 = 0x20;
pub(crate) const DELETE_HORIZON_MASK: i16 = 0x40;

/// Codec of a batch's records, the low three bits of its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Records stand as they are.
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, raw or in the framing of xerial's Java library.
    Snappy,
    /// LZ4 frame.
    Lz4,
    /// Zstandard frame.
    Zstd,
}

/// Ids 5, 6 and 7 name no codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("unknown compression type id {id}")]
pub struct UnknownCompression {
    /// What the attributes said.
    pub id: u8,
}

impl Compression {
    /// The codec of an id (Kafka: CompressionType.forId).
    pub fn from_id(id: u8) -> Result<Compression, UnknownCompression> {
        match id {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            id => Err(UnknownCompression { id }),
        }
    }

    /// The id that stands in the attributes.
    pub fn id(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Snappy => 2,
            Compression::Lz4 => 3,
            Compression::Zstd => 4,
        }
    }

    /// Kafka's name of the codec, as in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Who set the timestamps of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Each record carries its producer's time.
    CreateTime,
    /// The leader's time of append, kept in `max_timestamp`, holds for every record.
    LogAppendTime,
}

/// Why bytes are no batch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The bytes end inside the header.
    #[error("{have} bytes are too few for a batch header of {need}")]
    Truncated {
        /// Bytes that were needed to go on.
        need: usize,
        /// Bytes that were there.
        have: usize,
    },
    /// The length field is smaller than the rest of a header, or negative.
    #[error("batch length {length} is less than the header's own {min}")]
    LengthTooSmall {
        /// The length field: bytes after itself.
        length: i32,
        /// Least length of an empty batch of this magic.
        min: i32,
    },
    /// A format other than version 2.
    #[error("batch has magic {magic}, only magic 2 is supported")]
    UnsupportedMagic {
        /// What the magic byte said.
        magic: i8,
    },
}

/// All fields of a batch header, as they stand in the bytes; nothing but length and magic has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record the batch was made with.
    pub base_offset: Offset,
    /// Bytes after the length field.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch. Not covered by the CRC.
    pub partition_leader_epoch: LeaderEpoch,
    /// CRC-32C of all bytes from the attributes on.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: i16,
    /// Last offset minus base offset; compaction leaves it as it was.
    pub last_offset_delta: i32,
    /// What record timestamps count from; the delete horizon instead when that flag is set.
    pub base_timestamp: TimestampMs,
    /// Largest timestamp of the records, or the time of append.
    pub max_timestamp: TimestampMs,
    /// -1 when the producer is not idempotent.
    pub producer_id: ProducerId,
    /// -1 when the producer is not idempotent.
    pub producer_epoch: ProducerEpoch,
    /// Sequence number of the first record, -1 for none.
    pub base_sequence: i32,
    /// Number of records that follow.
    pub record_count: i32,
}

fn field<const N: usize>(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; what follows it may be missing.
    ///
    /// Length and magic are looked at as soon as they are there, so that garbage is told from a torn batch.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, HeaderError> {
        if let Some(head) = bytes.first_chunk::<HEADER_LEN>() {
            let header = BatchHeader::from_bytes(head);
            check_start(header.batch_length, head[MAGIC_AT] as i8)?;
            return Ok(header);
        }
        let have = bytes.len();
        if let Some(head) = bytes.first_chunk::<LOG_OVERHEAD>() {
            let length = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
            check_start(length, bytes.get(MAGIC_AT).map_or(MAGIC_V2, |&magic| magic as i8))?;
        }
        Err(HeaderError::Truncated { need: HEADER_LEN, have })
    }

    fn from_bytes(head: &[u8; HEADER_LEN]) -> BatchHeader {
        BatchHeader {
            base_offset: i64::from_be_bytes(field(head, 0)),
            batch_length: i32::from_be_bytes(field(head, LENGTH_AT)),
            partition_leader_epoch: i32::from_be_bytes(field(head, LEADER_EPOCH_AT)),
            crc: u32::from_be_bytes(field(head, CRC_AT)),
            attributes: i16::from_be_bytes(field(head, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(field(head, LAST_OFFSET_DELTA_AT)),
            base_timestamp: i64::from_be_bytes(field(head, BASE_TIMESTAMP_AT)),
            max_timestamp: i64::from_be_bytes(field(head, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(field(head, PRODUCER_ID_AT)),
            producer_epoch: i16::from_be_bytes(field(head, PRODUCER_EPOCH_AT)),
            base_sequence: i32::from_be_bytes(field(head, BASE_SEQUENCE_AT)),
            record_count: i32::from_be_bytes(field(head, RECORD_COUNT_AT)),
        }
    }

    /// The header's bytes, magic 2 included.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut head = [0; HEADER_LEN];
        head[..LENGTH_AT].copy_from_slice(&self.base_offset.to_be_bytes());
        head[LENGTH_AT..LEADER_EPOCH_AT].copy_from_slice(&self.batch_length.to_be_bytes());
        head[LEADER_EPOCH_AT..MAGIC_AT].copy_from_slice(&self.partition_leader_epoch.to_be_bytes());
        head[MAGIC_AT] = MAGIC_V2 as u8;
        head[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&self.crc.to_be_bytes());
        head[ATTRIBUTES_AT..LAST_OFFSET_DELTA_AT].copy_from_slice(&self.attributes.to_be_bytes());
        head[LAST_OFFSET_DELTA_AT..BASE_TIMESTAMP_AT].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        head[BASE_TIMESTAMP_AT..MAX_TIMESTAMP_AT].copy_from_slice(&self.base_timestamp.to_be_bytes());
        head[MAX_TIMESTAMP_AT..PRODUCER_ID_AT].copy_from_slice(&self.max_timestamp.to_be_bytes());
        head[PRODUCER_ID_AT..PRODUCER_EPOCH_AT].copy_from_slice(&self.producer_id.to_be_bytes());
        head[PRODUCER_EPOCH_AT..BASE_SEQUENCE_AT].copy_from_slice(&self.producer_epoch.to_be_bytes());
        head[BASE_SEQUENCE_AT..RECORD_COUNT_AT].copy_from_slice(&self.base_sequence.to_be_bytes());
        head[RECORD_COUNT_AT..].copy_from_slice(&self.record_count.to_be_bytes());
        head
    }

    /// Bytes of the whole batch, header included.
    pub fn total_len(&self) -> usize {
        LOG_OVERHEAD + usize::try_from(self.batch_length).unwrap_or(0)
    }

    /// Offset of the last record the batch was made with.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// The offset after this batch.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().saturating_add(1)
    }

    /// Sequence number of the last record, wrapped at 2^31 - 1; -1 for none (Kafka: DefaultRecordBatch.lastSequence).
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return crate::NO_SEQUENCE;
        }
        crate::increment_sequence(self.base_sequence, self.last_offset_delta)
    }

    /// Codec of the records.
    pub fn compression(&self) -> Result<Compression, UnknownCompression> {
        Compression::from_id((self.attributes & COMPRESSION_MASK) as u8)
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.attributes & TIMESTAMP_TYPE_MASK {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// True for records of a transaction, and for the marker that ends one.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_MASK != 0
    }

    /// True for batches that brokers and controllers write for themselves and that consumers never see.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_MASK != 0
    }

    /// True when an idempotent producer made the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > crate::NO_PRODUCER_ID
    }

    /// When tombstones and markers of this batch may be removed, if compaction has set that (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<TimestampMs> {
        (self.attributes & DELETE_HORIZON_MASK != 0).then_some(self.base_timestamp)
    }
}

fn check_start(length: i32, magic: i8) -> Result<(), HeaderError> {
    // The magic comes first only where the length could be that of an older format, whose header is shorter.
    const LEGACY_LENGTH_MIN: i32 = 14;
    const LENGTH_MIN: i32 = (HEADER_LEN - LOG_OVERHEAD) as i32;
    if length < LEGACY_LENGTH_MIN {
        return Err(HeaderError::LengthTooSmall { length, min: LENGTH_MIN });
    }
    if magic != MAGIC_V2 {
        return Err(HeaderError::UnsupportedMagic { magic });
    }
    if length < LENGTH_MIN {
        return Err(HeaderError::LengthTooSmall { length, min: LENGTH_MIN });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BatchHeader {
        BatchHeader {
            base_offset: 42,
            batch_length: 49,
            partition_leader_epoch: 7,
            crc: 0xdead_beef,
            attributes: 0x54,
            last_offset_delta: 9,
            base_timestamp: 1000,
            max_timestamp: 2000,
            producer_id: 5,
            producer_epoch: 6,
            base_sequence: i32::MAX - 4,
            record_count: 10,
        }
    }

    #[test]
    fn a_header_survives_its_bytes() {
        let header = sample();
        assert_eq!(BatchHeader::parse(&header.to_bytes()), Ok(header));
        assert_eq!(header.total_len(), HEADER_LEN);
        assert_eq!((header.last_offset(), header.next_offset()), (51, 52));
        assert_eq!(header.compression(), Ok(Compression::Zstd));
        assert!(header.is_transactional() && !header.is_control());
        assert_eq!(header.delete_horizon_ms(), Some(1000));
    }

    #[test]
    fn bl_013_last_sequence_wraps_to_zero_after_the_largest() {
        assert_eq!(sample().last_sequence(), 4);
    }

    #[test]
    fn garbage_is_told_from_a_torn_header() {
        let whole = sample().to_bytes();
        assert_eq!(BatchHeader::parse(&whole[..60]), Err(HeaderError::Truncated { need: 61, have: 60 }));
        assert_eq!(BatchHeader::parse(&whole[..16]), Err(HeaderError::Truncated { need: 61, have: 16 }));
        let mut old = whole;
        old[MAGIC_AT] = 1;
        assert_eq!(BatchHeader::parse(&old[..20]), Err(HeaderError::UnsupportedMagic { magic: 1 }));
        let short = BatchHeader { batch_length: 48, ..sample() };
        assert_eq!(BatchHeader::parse(&short.to_bytes()), Err(HeaderError::LengthTooSmall { length: 48, min: 49 }));
        let negative = BatchHeader { batch_length: -1, ..sample() };
        assert_eq!(BatchHeader::parse(&negative.to_bytes()), Err(HeaderError::LengthTooSmall { length: -1, min: 49 }));
    }

    #[test]
    fn ids_five_to_seven_are_no_codec() {
        for id in 5..8 {
            let header = BatchHeader { attributes: id, ..sample() };
            assert_eq!(header.compression(), Err(UnknownCompression { id: id as u8 }));
        }
    }
}
