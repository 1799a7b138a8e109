//! Producer state of a log: who may append what next, and which transactions are open (Kafka: ProducerStateManager,
//! ProducerAppendInfo; KIP-98, KIP-890). Pure: no files, no clock.
//!
//! Batches are checked against a staged copy that becomes the state once their bytes are written, so that a failed
//! write leaves no trace.

mod entry;
mod facts;
mod snapshot;
mod staging;

use std::collections::BTreeMap;

use base::{Offset, ProducerId, TimestampMs};

pub use entry::{AppendedBatch, ProducerEntry};
pub(crate) use facts::BatchFacts;
pub use snapshot::SnapshotError;
pub use staging::ProducerError;
pub(crate) use staging::{CompletedTxn, Staged, StagedOutcome};

/// Who appends, which decides what is checked (Kafka: AppendOrigin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AppendOrigin {
    /// A producer: epoch, sequence numbers and transaction state are checked.
    Client,
    /// A coordinator of this node: epochs are checked.
    Coordinator,
    /// The leader of the partition, which has checked everything: nothing is checked.
    Replication,
}

/// State of all producers of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producers {
    /// Boxed, because the map's nodes have room for eleven of them and most logs know one or two.
    entries: BTreeMap<ProducerId, Box<ProducerEntry>>,
    /// Open transactions: first offset and producer.
    ongoing: BTreeMap<Offset, ProducerId>,
    /// Ended transactions whose marker is not below the high watermark: first offset and offset of the marker.
    unreplicated: BTreeMap<Offset, Offset>,
    /// The state covers the log up to here.
    end_offset: Offset,
}

impl Producers {
    pub(crate) fn starting_at(end_offset: Offset) -> Self {
        Producers { end_offset, ..Producers::default() }
    }

    /// Takes the content of a snapshot that covers the log up to `end_offset`; expired producers are left out.
    pub(crate) fn from_snapshot(
        bytes: &[u8],
        end_offset: Offset,
        now_ms: TimestampMs,
        expiration_ms: i64,
    ) -> Result<Self, SnapshotError> {
        let mut producers = Producers::starting_at(end_offset);
        for entry in snapshot::decode(bytes)? {
            if entry.is_expired(now_ms, expiration_ms) {
                continue;
            }
            if let Some(first_offset) = entry.current_txn_first_offset {
                producers.ongoing.insert(first_offset, entry.producer_id);
            }
            producers.entries.insert(entry.producer_id, Box::new(entry));
        }
        Ok(producers)
    }

    pub(crate) fn to_snapshot(&self) -> Vec<u8> {
        snapshot::encode(self.entries.values().map(Box::as_ref))
    }

    pub(crate) fn end_offset(&self) -> Offset {
        self.end_offset
    }

    pub(crate) fn advance_to(&mut self, end_offset: Offset) {
        self.end_offset = self.end_offset.max(end_offset);
    }

    pub(crate) fn get(&self, producer_id: ProducerId) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id).map(Box::as_ref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.entries.values().map(Box::as_ref)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first offset that a reader of committed records may not pass.
    pub(crate) fn first_unstable_offset(&self) -> Option<Offset> {
        let first = |offsets: Option<&Offset>| offsets.copied();
        match (first(self.ongoing.keys().next()), first(self.unreplicated.keys().next())) {
            (Some(open), Some(ended)) => Some(open.min(ended)),
            (open, ended) => open.or(ended),
        }
    }

    /// First offset and producer of the oldest open transaction.
    pub(crate) fn oldest_transaction(&self) -> Option<(Offset, &ProducerEntry)> {
        let (first_offset, producer_id) = self.ongoing.first_key_value()?;
        Some((*first_offset, self.entries.get(producer_id)?))
    }

    /// Ended transactions whose marker lies below `offset` no longer hold readers back.
    pub(crate) fn complete_below(&mut self, offset: Offset) {
        if !self.unreplicated.is_empty() {
            self.unreplicated.retain(|_, marker_offset| *marker_offset >= offset);
        }
    }

    /// Records before `log_start_offset` are gone. Producers stay known.
    pub(crate) fn on_log_start(&mut self, log_start_offset: Offset) {
        self.complete_below(log_start_offset);
        self.advance_to(log_start_offset);
    }

    pub(crate) fn remove_expired(&mut self, now_ms: TimestampMs, expiration_ms: i64) {
        self.entries.retain(|_, entry| !entry.is_expired(now_ms, expiration_ms));
    }

    /// Takes over what was staged; `end_offset` is the log's end after the write.
    pub(crate) fn commit(&mut self, staged: &mut Staged, end_offset: Offset) {
        for entry in staged.entries.drain(..) {
            match self.entries.get_mut(&entry.producer_id) {
                Some(known) => **known = entry,
                None => {
                    self.entries.insert(entry.producer_id, Box::new(entry));
                }
            }
        }
        self.ongoing.extend(staged.started.drain(..));
        self.advance_to(end_offset);
    }

    /// Ends a transaction that `commit` has taken over; returns the last stable offset as of its marker.
    pub(crate) fn complete(&mut self, txn: &CompletedTxn) -> Offset {
        let next = self.ongoing.iter().find(|(_, producer)| **producer != txn.producer_id);
        let last_stable_offset = next.map_or(txn.last_offset + 1, |(first_offset, _)| *first_offset);
        self.ongoing.remove(&txn.first_offset);
        self.unreplicated.insert(txn.first_offset, txn.last_offset);
        last_stable_offset
    }
}
