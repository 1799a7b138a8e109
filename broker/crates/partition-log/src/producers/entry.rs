//! What a log remembers of one producer (Kafka: ProducerStateEntry, BatchMetadata).

use base::limits::PRODUCER_BATCHES_RETAINED;
use base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use record_batch::{NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, decrement_sequence};

/// An appended batch, remembered so that a retry of it can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppendedBatch {
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Last offset minus first offset.
    pub offset_delta: i32,
    /// Its largest timestamp.
    pub timestamp: TimestampMs,
}

impl AppendedBatch {
    /// Sequence number of its first record.
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> Offset {
        self.last_offset - i64::from(self.offset_delta)
    }
}

/// State of one producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Its id.
    pub producer_id: ProducerId,
    /// Its latest epoch; -1 while nothing is known of it.
    pub producer_epoch: ProducerEpoch,
    /// Epoch of the transaction coordinator that last ended a transaction of it; -1 for none.
    pub coordinator_epoch: i32,
    /// Timestamp of its last batch or marker.
    pub last_timestamp: TimestampMs,
    /// First offset of its open transaction.
    pub current_txn_first_offset: Option<Offset>,
    batches: [AppendedBatch; PRODUCER_BATCHES_RETAINED],
    batch_count: u8,
}

impl ProducerEntry {
    /// Nothing is known of the producer yet.
    pub fn unknown(producer_id: ProducerId) -> Self {
        ProducerEntry {
            producer_id,
            producer_epoch: NO_PRODUCER_EPOCH,
            coordinator_epoch: -1,
            last_timestamp: NO_TIMESTAMP,
            current_txn_first_offset: None,
            batches: [AppendedBatch::default(); PRODUCER_BATCHES_RETAINED],
            batch_count: 0,
        }
    }

    /// Its last batches of the latest epoch, oldest first.
    pub fn batches(&self) -> &[AppendedBatch] {
        &self.batches[..usize::from(self.batch_count)]
    }

    /// Its last batch of the latest epoch.
    pub fn last_batch(&self) -> Option<&AppendedBatch> {
        self.batches().last()
    }

    /// Sequence number of its last record; -1 for none.
    pub fn last_sequence(&self) -> i32 {
        self.last_batch().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// The remembered batch with exactly this epoch and these sequence numbers.
    pub(super) fn duplicate_of(
        &self,
        epoch: ProducerEpoch,
        first_sequence: i32,
        last_sequence: i32,
    ) -> Option<AppendedBatch> {
        let same =
            |batch: &&AppendedBatch| batch.first_sequence() == first_sequence && batch.last_sequence == last_sequence;
        if epoch == self.producer_epoch { self.batches().iter().find(same).copied() } else { None }
    }

    /// Takes an epoch; batches of another one are forgotten.
    pub(super) fn enter_epoch(&mut self, epoch: ProducerEpoch) {
        if self.producer_epoch != epoch {
            self.producer_epoch = epoch;
            self.batch_count = 0;
        }
    }

    /// Remembers a batch in place of the oldest.
    pub(super) fn remember(&mut self, batch: AppendedBatch) {
        if usize::from(self.batch_count) == PRODUCER_BATCHES_RETAINED {
            self.batches.rotate_left(1);
            self.batches[PRODUCER_BATCHES_RETAINED - 1] = batch;
        } else {
            self.batches[usize::from(self.batch_count)] = batch;
            self.batch_count += 1;
        }
    }

    pub(super) fn is_expired(&self, now_ms: TimestampMs, expiration_ms: i64) -> bool {
        self.current_txn_first_offset.is_none() && now_ms.saturating_sub(self.last_timestamp) >= expiration_ms
    }
}
