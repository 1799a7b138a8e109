//! What of a batch a cleaning keeps (Kafka: Cleaner.cleanInto, MemoryRecords.filterTo; KIP-534 for the delete horizon).

use record_batch::{BatchBuilder, BatchHeader, BatchRef, RecordReader, RecordRef, emptied};

use super::offset_map::OffsetMap;
use super::transactions::{Marker, Transactions};
use super::{CleanError, DECOMPRESSED_BYTES_MAX, Work};
use crate::txn_index::AbortedTxn;

/// What becomes of a batch.
#[derive(Debug)]
pub(super) enum Fate {
    /// It stays as it is, byte for byte.
    Stays,
    /// These bytes take its place.
    Becomes(Vec<u8>),
    /// Nothing of it is left.
    Goes,
}

/// A batch that was looked at.
#[derive(Debug)]
pub(super) struct Filtered {
    pub(super) fate: Fate,
    /// Records that are left.
    pub(super) kept: u64,
    /// The aborted transaction that it ends and of which there were data.
    pub(super) aborted: Option<AbortedTxn>,
}

/// The rules of one cleaning.
pub(super) struct Filter<'a> {
    pub(super) work: &'a Work,
    pub(super) map: &'a OffsetMap,
    pub(super) transactions: &'a mut Transactions,
}

impl Filter<'_> {
    /// Decides about a batch whose CRC is good. `last_of_segment`: it is the last one of the new segment and stays, if
    /// need be without records, so that no gap between segments can be taken for a loss.
    pub(super) fn apply(&mut self, batch: &BatchRef<'_>, last_of_segment: bool) -> Result<Filtered, CleanError> {
        let header = batch.header();
        let marker = if header.is_control() {
            self.transactions.on_control(batch)?
        } else {
            Marker { without_data: self.transactions.on_data(header), aborted: None }
        };
        let horizon_passed = header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.work.now_ms);
        let discards = marker.without_data && (!header.is_control() || horizon_passed);
        let stays_empty = last_of_segment || self.work.must_stay(header);
        let (fate, kept) = if discards { (None, 0) } else { self.choose(batch, marker)? };
        let fate = match fate {
            Some(fate) => fate,
            None if !stays_empty => Fate::Goes,
            None if header.record_count == 0 => Fate::Stays,
            None => Fate::Becomes(emptied(header).map_err(|error| corrupt(header, &error))?),
        };
        Ok(Filtered { fate, kept, aborted: marker.aborted })
    }

    /// What stays of a batch and how many records that are; no fate when no record stays.
    fn choose(&self, batch: &BatchRef<'_>, marker: Marker) -> Result<(Option<Fate>, u64), CleanError> {
        let header = batch.header();
        let mut stays = Vec::new();
        let mut tombstone = false;
        let mut records = open(batch)?;
        while let Some(record) = records.next_record().map_err(|error| corrupt(header, &error))? {
            let keeps = header.is_control() || self.keeps(header, &record);
            tombstone |= keeps && !header.is_control() && record.value.is_none();
            stays.push(keeps);
        }
        let kept = stays.iter().filter(|stays| **stays).count();
        if kept == 0 {
            return Ok((None, 0));
        }
        let waits = tombstone || (header.is_control() && marker.without_data);
        let sets_horizon = header.delete_horizon_ms().is_none() && waits;
        if kept == stays.len() && !sets_horizon {
            return Ok((Some(Fate::Stays), kept as u64));
        }
        let horizon = sets_horizon.then(|| self.work.now_ms.saturating_add(self.work.delete_retention_ms));
        Ok((Some(Fate::Becomes(rebuild(batch, &stays, horizon)?)), kept as u64))
    }

    fn keeps(&self, header: &BatchHeader, record: &RecordRef<'_>) -> bool {
        if record.offset > self.map.latest_offset() {
            return true;
        }
        // A record without a key cannot have got into a compacted topic by way of a producer.
        let Some(key) = record.key else { return false };
        let is_last = self.map.get(key).is_none_or(|last| record.offset >= last);
        let horizon_ahead = header.delete_horizon_ms().is_none_or(|horizon| self.work.now_ms < horizon);
        is_last && (record.value.is_some() || horizon_ahead)
    }
}

fn corrupt(header: &BatchHeader, reason: &dyn std::fmt::Display) -> CleanError {
    CleanError::Corrupt { offset: header.base_offset, reason: reason.to_string() }
}

fn open<'a>(batch: &BatchRef<'a>) -> Result<RecordReader<'a>, CleanError> {
    RecordReader::open(batch, DECOMPRESSED_BYTES_MAX).map_err(|error| corrupt(batch.header(), &error))
}

fn rebuild(batch: &BatchRef<'_>, stays: &[bool], horizon: Option<i64>) -> Result<Vec<u8>, CleanError> {
    let header = batch.header();
    let mut builder = BatchBuilder::in_place_of(header).map_err(|error| corrupt(header, &error))?;
    if let Some(horizon) = horizon {
        builder = builder.delete_horizon_ms(horizon);
    }
    let mut records = open(batch)?;
    for stays in stays {
        let record = records.next_record().map_err(|error| corrupt(header, &error))?;
        if let Some(record) = record.filter(|_| *stays) {
            // Its own time, which in a batch with the time of append is not the one that readers see.
            let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
            builder.append_content(record.offset, timestamp, record.content);
        }
    }
    builder.build().map_err(|error| corrupt(header, &error))
}
