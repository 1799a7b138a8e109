//! Changes to the header of a batch in its own bytes. Records are never touched.

use base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use crate::batch::{BatchError, BatchRef};
use crate::header::{
    ATTRIBUTES_AT, BatchHeader, CRC_AT, DELETE_HORIZON_MASK, HEADER_LEN, LEADER_EPOCH_AT, TIMESTAMP_TYPE_MASK,
    TimestampType,
};

/// One whole batch in bytes that may be changed.
///
/// Base offset and leader epoch lie before the CRC and cost nothing; a change of any other field recomputes the CRC over
/// the whole batch, unless the field already has that value.
#[derive(Debug)]
pub struct BatchMut<'a> {
    header: BatchHeader,
    bytes: &'a mut [u8],
}

impl<'a> BatchMut<'a> {
    /// The batch at the start of `bytes`, which may go on after it.
    pub fn parse(bytes: &'a mut [u8]) -> Result<BatchMut<'a>, BatchError> {
        let header = *BatchRef::parse(bytes)?.header();
        let bytes = &mut bytes[..header.total_len()];
        Ok(BatchMut { header, bytes })
    }

    /// The header as it stands now.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Sets the offset of the first record.
    pub fn set_base_offset(&mut self, base_offset: Offset) {
        self.header.base_offset = base_offset;
        self.bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
    }

    /// Sets the epoch of the leader that appends the batch.
    pub fn set_partition_leader_epoch(&mut self, epoch: LeaderEpoch) {
        self.header.partition_leader_epoch = epoch;
        self.bytes[LEADER_EPOCH_AT..LEADER_EPOCH_AT + 4].copy_from_slice(&epoch.to_be_bytes());
    }

    /// Sets timestamp type and largest timestamp (Kafka: DefaultRecordBatch.setMaxTimestamp). Attribute bits without a
    /// meaning are cleared when something changes, as Kafka clears them.
    pub fn set_max_timestamp(&mut self, kind: TimestampType, max_timestamp: TimestampMs) {
        if self.header.timestamp_type() == kind && self.header.max_timestamp == max_timestamp {
            return;
        }
        let known = (DELETE_HORIZON_MASK << 1) - 1;
        let attributes = self.header.attributes & known & !TIMESTAMP_TYPE_MASK;
        self.header.attributes = match kind {
            TimestampType::CreateTime => attributes,
            TimestampType::LogAppendTime => attributes | TIMESTAMP_TYPE_MASK,
        };
        self.header.max_timestamp = max_timestamp;
        self.rewrite();
    }

    /// Sets who made the batch and the sequence number of its first record.
    pub fn set_producer(&mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self.rewrite();
    }

    /// Sets the distance from the first offset to the last.
    pub fn set_last_offset_delta(&mut self, delta: i32) {
        self.header.last_offset_delta = delta;
        self.rewrite();
    }

    /// Makes the CRC that of the bytes.
    pub fn refresh_crc(&mut self) {
        let crc = crc32c::crc32c(&self.bytes[ATTRIBUTES_AT..]);
        self.header.crc = crc;
        self.bytes[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    }

    fn rewrite(&mut self) {
        self.bytes[..HEADER_LEN].copy_from_slice(&self.header.to_bytes());
        self.refresh_crc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, RecordData};

    fn one() -> Vec<u8> {
        let mut builder = BatchBuilder::new(0);
        builder.append(&RecordData::new(100).key(b"k").value(b"v"));
        builder.build().unwrap()
    }

    #[test]
    fn offset_and_epoch_leave_the_crc_as_it_is() {
        let mut bytes = one();
        let crc = BatchRef::parse(&bytes).unwrap().header().crc;
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_base_offset(1 << 40);
        batch.set_partition_leader_epoch(12);
        let batch = BatchRef::parse(&bytes).unwrap();
        assert_eq!((batch.header().base_offset, batch.header().partition_leader_epoch), (1 << 40, 12));
        assert_eq!(batch.header().crc, crc);
        batch.verify_crc().unwrap();
        assert_eq!(batch.plain_records().unwrap().next().unwrap().unwrap().offset, 1 << 40);
    }

    #[test]
    fn other_fields_renew_the_crc() {
        let mut bytes = one();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_max_timestamp(TimestampType::LogAppendTime, 777);
        batch.set_producer(9, 3, 11);
        batch.set_last_offset_delta(4);
        let edited = *batch.header();
        let batch = BatchRef::parse(&bytes).unwrap();
        assert_eq!(*batch.header(), edited);
        batch.verify_crc().unwrap();
        assert_eq!(batch.header().last_offset(), 4);
        let record = batch.plain_records().unwrap().next().unwrap().unwrap();
        assert_eq!((record.timestamp, record.timestamp_delta, record.sequence), (777, 0, 11));
    }

    #[test]
    fn a_timestamp_that_is_there_already_changes_nothing() {
        let mut bytes = one();
        bytes[CRC_AT] ^= 1;
        let before = bytes.clone();
        BatchMut::parse(&mut bytes).unwrap().set_max_timestamp(TimestampType::CreateTime, 100);
        assert_eq!(bytes, before);
    }
}
