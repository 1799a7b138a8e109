//! What producer state has to know of a batch: its header's fields with final offsets, and the marker in it.

use base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use record_batch::control::{ControlRecordType, parse_end_txn_marker};
use record_batch::{BatchHeader, BatchRef};

/// The control record that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub abort: bool,
    pub coordinator_epoch: i32,
    pub timestamp: TimestampMs,
}

impl Marker {
    /// The marker in a control batch; `None` in one that compaction has emptied, and for raft's own records.
    pub(crate) fn of(batch: &BatchRef<'_>) -> Option<Marker> {
        let record = batch.plain_records()?.next()?.ok()?;
        let abort = match ControlRecordType::parse_key(record.key?)? {
            ControlRecordType::Abort => true,
            ControlRecordType::Commit => false,
            ControlRecordType::LeaderChange
            | ControlRecordType::SnapshotHeader
            | ControlRecordType::SnapshotFooter
            | ControlRecordType::KraftVersion
            | ControlRecordType::KraftVoters => return None,
        };
        Some(Marker { abort, coordinator_epoch: parse_end_txn_marker(record.value?)?, timestamp: record.timestamp })
    }
}

/// What the check needs of a batch, with its final offsets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchFacts {
    pub producer_id: ProducerId,
    pub epoch: ProducerEpoch,
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub max_timestamp: TimestampMs,
    pub transactional: bool,
    pub control: bool,
    pub marker: Option<Marker>,
}

impl BatchFacts {
    pub(crate) fn of(batch: &BatchRef<'_>) -> Self {
        let marker = if batch.header().is_control() { Marker::of(batch) } else { None };
        BatchFacts { marker, ..BatchFacts::of_header(batch.header()) }
    }

    /// Of a batch that is no control batch its header tells everything.
    pub(crate) fn of_header(header: &BatchHeader) -> Self {
        BatchFacts {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            first_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            transactional: header.is_transactional(),
            control: header.is_control(),
            marker: None,
        }
    }
}
