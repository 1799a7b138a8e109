//! Makes batches record by record, with the bytes Kafka's MemoryRecordsBuilder would make.

use base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use thiserror::Error;

use crate::codec::{Codec, CompressError, Encoder};
use crate::header::{
    ATTRIBUTES_AT, BatchHeader, CONTROL_MASK, CRC_AT, DELETE_HORIZON_MASK, HEADER_LEN, LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK, TRANSACTIONAL_MASK, TimestampType, UnknownCompression,
};
use crate::varint;

/// Attributes that a batch keeps when compaction makes it again.
const KEPT_MASK: i16 = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK;

/// Why no batch could be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The codec failed.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The batch would not fit the 32-bit length field.
    #[error("a batch of {bytes} bytes is too large for its length field")]
    TooLarge {
        /// Bytes of the batch.
        bytes: usize,
    },
    /// Offsets in one batch must fit 32 bits from the first.
    #[error("offset {offset} cannot stand in a batch that begins at {base_offset} and ends at {last_offset}")]
    OffsetOutOfRange {
        /// The offset that was appended.
        offset: Offset,
        /// First offset of the batch.
        base_offset: Offset,
        /// Last offset appended before.
        last_offset: Offset,
    },
}

/// A record to be appended, borrowed from where it is.
#[derive(Debug, Clone, Copy)]
pub struct RecordData<'a> {
    /// Milliseconds since 1970, or -1.
    pub timestamp: TimestampMs,
    /// `None` for null.
    pub key: Option<&'a [u8]>,
    /// `None` for null.
    pub value: Option<&'a [u8]>,
    /// Keys and values in order; `None` for a null value.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

impl<'a> RecordData<'a> {
    /// A record with null key, null value and no headers.
    pub fn new(timestamp: TimestampMs) -> RecordData<'a> {
        RecordData { timestamp, key: None, value: None, headers: &[] }
    }

    /// With this key.
    pub fn key(self, key: &'a [u8]) -> RecordData<'a> {
        RecordData { key: Some(key), ..self }
    }

    /// With this value.
    pub fn value(self, value: &'a [u8]) -> RecordData<'a> {
        RecordData { value: Some(value), ..self }
    }

    /// With these headers.
    pub fn headers(self, headers: &'a [(&'a [u8], Option<&'a [u8]>)]) -> RecordData<'a> {
        RecordData { headers, ..self }
    }
}

/// A batch in the making. Records get offsets one after another from the base offset on.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    /// Room for the header, then the records.
    bytes: Vec<u8>,
    next_offset: Offset,
    append_time: Option<TimestampMs>,
    delete_horizon: Option<TimestampMs>,
    /// Last offset of the batch, where it is not that of the last record.
    last_offset: Option<Offset>,
    codec: Codec,
    scratch: Vec<u8>,
    error: Option<BuildError>,
}

impl BatchBuilder {
    /// An empty batch without producer, compression, flags or leader epoch.
    pub fn new(base_offset: Offset) -> BatchBuilder {
        let header = BatchHeader {
            base_offset,
            batch_length: 0,
            partition_leader_epoch: crate::NO_PARTITION_LEADER_EPOCH,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: crate::NO_TIMESTAMP,
            max_timestamp: crate::NO_TIMESTAMP,
            producer_id: crate::NO_PRODUCER_ID,
            producer_epoch: crate::NO_PRODUCER_EPOCH,
            base_sequence: crate::NO_SEQUENCE,
            record_count: 0,
        };
        BatchBuilder {
            header,
            bytes: vec![0; HEADER_LEN],
            next_offset: base_offset,
            append_time: None,
            delete_horizon: None,
            last_offset: None,
            codec: Codec::Uncompressed,
            scratch: Vec::new(),
            error: None,
        }
    }

    /// A batch for what compaction leaves of another one: with its offsets, producer, leader epoch, flags, codec at the
    /// default level and delete horizon, and none of its records (Kafka: MemoryRecords.buildRetainedRecordsInto).
    pub fn in_place_of(batch: &BatchHeader) -> Result<BatchBuilder, UnknownCompression> {
        let mut builder = BatchBuilder::new(batch.base_offset)
            .partition_leader_epoch(batch.partition_leader_epoch)
            .producer(batch.producer_id, batch.producer_epoch, batch.base_sequence)
            .compression(Codec::with_default_level(batch.compression()?));
        builder.header.attributes = batch.attributes & KEPT_MASK;
        builder.last_offset = Some(batch.last_offset());
        if batch.timestamp_type() == TimestampType::LogAppendTime {
            builder.append_time = Some(batch.max_timestamp);
        }
        Ok(match batch.delete_horizon_ms() {
            Some(horizon) => builder.delete_horizon_ms(horizon),
            None => builder,
        })
    }

    /// With the epoch of the leader that appends it.
    pub fn partition_leader_epoch(mut self, epoch: LeaderEpoch) -> BatchBuilder {
        self.header.partition_leader_epoch = epoch;
        self
    }

    /// As made by this producer; `base_sequence` is that of the first record.
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> BatchBuilder {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// With its records compressed.
    pub fn compression(mut self, codec: Codec) -> BatchBuilder {
        self.codec = codec;
        self
    }

    /// As part of a transaction.
    pub fn transactional(mut self) -> BatchBuilder {
        self.header.attributes |= TRANSACTIONAL_MASK;
        self
    }

    /// As a control batch.
    pub fn control(mut self) -> BatchBuilder {
        self.header.attributes |= CONTROL_MASK;
        self
    }

    /// With the leader's time of append in place of the records' own timestamps.
    pub fn log_append_time(mut self, now: TimestampMs) -> BatchBuilder {
        self.header.attributes |= TIMESTAMP_TYPE_MASK;
        self.append_time = Some(now);
        self
    }

    /// With the time from which compaction may remove tombstones and markers (KIP-534).
    pub fn delete_horizon_ms(mut self, horizon: TimestampMs) -> BatchBuilder {
        self.header.attributes |= DELETE_HORIZON_MASK;
        self.delete_horizon = Some(horizon);
        self.header.base_timestamp = horizon;
        self
    }

    /// Records appended so far.
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// Bytes of the batch so far, before compression.
    pub fn uncompressed_len(&self) -> usize {
        self.bytes.len()
    }

    /// The offset the next record gets.
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// Appends a record at the next offset.
    pub fn append(&mut self, record: &RecordData<'_>) {
        self.append_at(self.next_offset, record);
    }

    /// Appends a record at an offset, which must be past the last one; an offset that cannot stand there makes `build`
    /// fail.
    pub fn append_at(&mut self, offset: Offset, record: &RecordData<'_>) {
        let mut content = std::mem::take(&mut self.scratch);
        content.clear();
        write_nullable(&mut content, record.key);
        write_nullable(&mut content, record.value);
        varint::write_i64(&mut content, record.headers.len() as i64);
        for (key, value) in record.headers {
            write_nullable(&mut content, Some(key));
            write_nullable(&mut content, *value);
        }
        self.append_content(offset, record.timestamp, &content);
        self.scratch = content;
    }

    /// Appends a record whose bytes from the key length on are at hand, byte for byte; see `RecordRef::content`.
    pub fn append_content(&mut self, offset: Offset, timestamp: TimestampMs, content: &[u8]) {
        let base_offset = self.header.base_offset;
        let delta = offset.checked_sub(base_offset).and_then(|delta| i32::try_from(delta).ok());
        let Some(delta) = delta.filter(|_| offset >= self.next_offset) else {
            let last_offset = self.next_offset.saturating_sub(1);
            self.error.get_or_insert(BuildError::OffsetOutOfRange { offset, base_offset, last_offset });
            return;
        };
        if self.header.record_count == 0 && self.delete_horizon.is_none() {
            self.header.base_timestamp = timestamp;
        }
        let timestamp_delta = timestamp.wrapping_sub(self.header.base_timestamp);
        let len = 1 + varint::len_i64(timestamp_delta) + varint::len_i64(i64::from(delta)) + content.len();
        varint::write_i64(&mut self.bytes, len as i64);
        self.bytes.push(0);
        varint::write_i64(&mut self.bytes, timestamp_delta);
        varint::write_i32(&mut self.bytes, delta);
        self.bytes.extend_from_slice(content);
        self.header.record_count += 1;
        self.header.last_offset_delta = delta;
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        self.next_offset = offset.saturating_add(1);
    }

    /// The finished batch.
    pub fn build(mut self) -> Result<Vec<u8>, BuildError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(now) = self.append_time {
            self.header.max_timestamp = now;
        }
        if let Some(last_offset) = self.last_offset {
            let base_offset = self.header.base_offset;
            let delta = last_offset.checked_sub(base_offset).and_then(|delta| i32::try_from(delta).ok());
            let delta = delta.filter(|delta| *delta >= self.header.last_offset_delta);
            let refused = BuildError::OffsetOutOfRange { offset: last_offset, base_offset, last_offset };
            self.header.last_offset_delta = delta.ok_or(refused)?;
        }
        if self.codec == Codec::Uncompressed {
            return finish(self.header, self.bytes);
        }
        self.header.attributes |= i16::from(self.codec.compression().id());
        let mut encoder = Encoder::new(self.codec)?;
        encoder.write(&self.bytes[HEADER_LEN..])?;
        finish(self.header, encoder.finish()?)
    }
}

/// A batch without records in the place of one whose records are all gone: its offsets and what it tells of its producer
/// stay known (Kafka: DefaultRecordBatch.writeEmptyHeader).
pub fn emptied(batch: &BatchHeader) -> Result<Vec<u8>, BuildError> {
    let header = BatchHeader {
        attributes: batch.attributes & KEPT_MASK,
        base_timestamp: crate::NO_TIMESTAMP,
        record_count: 0,
        ..*batch
    };
    finish(header, vec![0; HEADER_LEN])
}

/// Writes header and CRC into the first bytes of `bytes`, which hold the payload after room for the header.
pub(crate) fn finish(mut header: BatchHeader, mut bytes: Vec<u8>) -> Result<Vec<u8>, BuildError> {
    let length = bytes.len() - LOG_OVERHEAD;
    header.batch_length = i32::try_from(length).map_err(|_| BuildError::TooLarge { bytes: bytes.len() })?;
    bytes[..HEADER_LEN].copy_from_slice(&header.to_bytes());
    let crc = crc32c::crc32c(&bytes[ATTRIBUTES_AT..]);
    bytes[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    Ok(bytes)
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::write_i32(out, -1),
        Some(bytes) => {
            varint::write_i64(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchRef, HeaderRef, TimestampType};

    #[test]
    fn bl_032_bl_034_headers_nulls_and_empties_survive() {
        let headers: &[(&[u8], Option<&[u8]>)] = &[(b"a", Some(b"1")), (b"b", None), (b"a", Some(b""))];
        let mut builder = BatchBuilder::new(7).partition_leader_epoch(3).producer(1, 2, i32::MAX);
        builder.append(&RecordData::new(1000).key(b"").value(b"").headers(headers));
        builder.append(&RecordData::new(900));
        let bytes = builder.build().unwrap();
        let batch = BatchRef::parse(&bytes).unwrap();
        batch.verify_crc().unwrap();
        assert_eq!(batch.header().timestamp_type(), TimestampType::CreateTime);
        assert_eq!((batch.header().base_timestamp, batch.header().max_timestamp), (1000, 1000));
        let records: Vec<_> = batch.plain_records().unwrap().map(Result::unwrap).collect();
        assert_eq!((records[0].key, records[0].value), (Some(&b""[..]), Some(&b""[..])));
        assert_eq!((records[1].key, records[1].value), (None, None));
        assert_eq!((records[1].offset, records[1].timestamp, records[1].sequence), (8, 900, 0));
        let expected = [
            HeaderRef { key: b"a", value: Some(b"1") },
            HeaderRef { key: b"b", value: None },
            HeaderRef { key: b"a", value: Some(b"") },
        ];
        assert_eq!(records[0].headers.collect::<Vec<_>>(), expected);
        assert_eq!(records[0].headers.len(), 3);
    }

    #[test]
    fn what_compaction_leaves_of_a_batch_keeps_its_place_and_its_producer() {
        let mut builder = BatchBuilder::new(7).partition_leader_epoch(3).producer(1, 2, 40).transactional();
        (0..5).for_each(|at| builder.append(&RecordData::new(1000 + at).key(b"k").value(b"v")));
        let bytes = builder.build().unwrap();
        let whole = BatchRef::parse(&bytes).unwrap();
        let mut rest = BatchBuilder::in_place_of(whole.header()).unwrap().delete_horizon_ms(77);
        let kept = whole.plain_records().unwrap().nth(2).unwrap().unwrap();
        rest.append_content(kept.offset, kept.timestamp, kept.content);
        let (rest, empty) = (rest.build().unwrap(), emptied(whole.header()).unwrap());
        let [rest, empty] = [&rest, &empty].map(|bytes| BatchRef::parse(bytes).unwrap());
        for batch in [&rest, &empty] {
            batch.verify_crc().unwrap();
            let header = batch.header();
            assert_eq!((header.base_offset, header.last_offset(), header.last_sequence()), (7, 11, 44));
            assert_eq!((header.producer_id, header.producer_epoch, header.partition_leader_epoch), (1, 2, 3));
            assert!(header.is_transactional());
        }
        assert_eq!((rest.header().delete_horizon_ms(), rest.header().max_timestamp), (Some(77), 1002));
        let found = rest.plain_records().unwrap().next().unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp, found.sequence), (9, 1002, 42));
        assert_eq!((empty.header().record_count, empty.header().max_timestamp), (0, 1004));
        assert_eq!(emptied(empty.header()).unwrap(), empty.bytes());
    }

    #[test]
    fn offsets_may_have_gaps_but_must_grow() {
        let mut builder = BatchBuilder::new(7);
        builder.append_at(9, &RecordData::new(1));
        let mut wrong = builder.clone();
        wrong.append_at(9, &RecordData::new(1));
        assert_eq!(wrong.build(), Err(BuildError::OffsetOutOfRange { offset: 9, base_offset: 7, last_offset: 9 }));
        let bytes = builder.build().unwrap();
        assert_eq!(BatchRef::parse(&bytes).unwrap().header().last_offset(), 9);
    }
}
