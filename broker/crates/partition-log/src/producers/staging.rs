//! The check of batches against producer state, on a copy of the entries they touch.

use base::{Offset, ProducerEpoch, ProducerId};
use record_batch::NO_PRODUCER_EPOCH;
use thiserror::Error;

use super::entry::{AppendedBatch, ProducerEntry};
use super::facts::BatchFacts;
use super::{AppendOrigin, Producers};

/// Why a batch of an idempotent or transactional producer is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProducerError {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER: a gap, an old batch, or a new epoch that does not begin at 0.
    #[error(
        "producer {producer_id} sent sequence {sequence} in epoch {epoch}; its last is {last_sequence} in epoch {last_epoch}"
    )]
    OutOfOrderSequence {
        /// Who sent it.
        producer_id: ProducerId,
        /// Epoch of the batch.
        epoch: ProducerEpoch,
        /// First sequence number of the batch.
        sequence: i32,
        /// Last epoch known.
        last_epoch: ProducerEpoch,
        /// Last sequence number known, -1 for none.
        last_sequence: i32,
    },
    /// INVALID_PRODUCER_EPOCH: another instance of the producer has taken over.
    #[error("producer {producer_id} sent epoch {epoch}; epoch {last_epoch} was seen")]
    InvalidEpoch {
        /// Who sent it.
        producer_id: ProducerId,
        /// Epoch of the batch.
        epoch: ProducerEpoch,
        /// Last epoch known.
        last_epoch: ProducerEpoch,
    },
    /// INVALID_TXN_STATE: a plain batch inside a transaction, or a transactional one that the coordinator has not
    /// confirmed (KIP-890).
    #[error("producer {producer_id} sent a batch that does not fit its transaction state")]
    InvalidTxnState {
        /// Who sent it.
        producer_id: ProducerId,
    },
    /// TRANSACTION_COORDINATOR_FENCED: another coordinator has taken over.
    #[error("marker of coordinator epoch {epoch} for producer {producer_id}; epoch {last_epoch} was seen")]
    CoordinatorFenced {
        /// Whose transaction it ends.
        producer_id: ProducerId,
        /// Coordinator epoch of the marker.
        epoch: i32,
        /// Last coordinator epoch known.
        last_epoch: i32,
    },
}

/// A transaction whose marker was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedTxn {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub aborted: bool,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StagedOutcome {
    /// The batch may be appended.
    Accepted,
    /// It was appended before.
    Duplicate(AppendedBatch),
}

/// Changes of producer state that wait for their batches to be written. Reused from append to append.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staged {
    pub(super) entries: Vec<ProducerEntry>,
    pub(super) started: Vec<(Offset, ProducerId)>,
    pub(crate) completed: Vec<CompletedTxn>,
}

impl Staged {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.started.clear();
        self.completed.clear();
    }

    /// Checks a batch and stages its effect. A refused batch stages nothing.
    pub(crate) fn check(
        &mut self,
        known: &Producers,
        batch: &BatchFacts,
        origin: AppendOrigin,
        txn_verified: bool,
    ) -> Result<StagedOutcome, ProducerError> {
        let staged_at = self.entries.iter().position(|entry| entry.producer_id == batch.producer_id);
        let current = match staged_at {
            Some(at) => Some(&self.entries[at]),
            None => known.get(batch.producer_id),
        };
        if let (AppendOrigin::Client, Some(entry)) = (origin, current) {
            let duplicate = entry.duplicate_of(batch.epoch, batch.first_sequence, batch.last_sequence);
            if let Some(duplicate) = duplicate {
                return Ok(StagedOutcome::Duplicate(duplicate));
            }
        }
        let open = current.is_some_and(|entry| entry.current_txn_first_offset.is_some());
        if origin != AppendOrigin::Replication && batch.transactional && !batch.control && !open && !txn_verified {
            return Err(ProducerError::InvalidTxnState { producer_id: batch.producer_id });
        }
        let mut entry = current.cloned().unwrap_or_else(|| ProducerEntry::unknown(batch.producer_id));
        if batch.control {
            self.end_transaction(&mut entry, batch, origin)?;
        } else {
            self.add_data(&mut entry, batch, origin)?;
        }
        match staged_at {
            Some(at) => self.entries[at] = entry,
            None => self.entries.push(entry),
        }
        Ok(StagedOutcome::Accepted)
    }

    fn add_data(
        &mut self,
        entry: &mut ProducerEntry,
        batch: &BatchFacts,
        origin: AppendOrigin,
    ) -> Result<(), ProducerError> {
        check_epoch(entry, batch, origin)?;
        if origin == AppendOrigin::Client {
            check_sequence(entry, batch)?;
        }
        if entry.current_txn_first_offset.is_some() && !batch.transactional {
            return Err(ProducerError::InvalidTxnState { producer_id: batch.producer_id });
        }
        entry.enter_epoch(batch.epoch);
        entry.remember(AppendedBatch {
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: (batch.last_offset - batch.first_offset) as i32,
            timestamp: batch.max_timestamp,
        });
        entry.last_timestamp = batch.max_timestamp;
        if batch.transactional && entry.current_txn_first_offset.is_none() {
            entry.current_txn_first_offset = Some(batch.first_offset);
            self.started.push((batch.first_offset, batch.producer_id));
        }
        Ok(())
    }

    fn end_transaction(
        &mut self,
        entry: &mut ProducerEntry,
        batch: &BatchFacts,
        origin: AppendOrigin,
    ) -> Result<(), ProducerError> {
        // A marker without its record was emptied by compaction together with the transaction.
        let Some(marker) = batch.marker else { return Ok(()) };
        check_epoch(entry, batch, origin)?;
        if entry.coordinator_epoch > marker.coordinator_epoch && origin != AppendOrigin::Replication {
            return Err(ProducerError::CoordinatorFenced {
                producer_id: batch.producer_id,
                epoch: marker.coordinator_epoch,
                last_epoch: entry.coordinator_epoch,
            });
        }
        // A marker without a transaction holds no reader back and is not noted.
        if let Some(first_offset) = entry.current_txn_first_offset.take() {
            self.completed.push(CompletedTxn {
                producer_id: batch.producer_id,
                first_offset,
                last_offset: batch.first_offset,
                aborted: marker.abort,
            });
        }
        entry.enter_epoch(batch.epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = marker.timestamp;
        Ok(())
    }
}

fn check_epoch(entry: &ProducerEntry, batch: &BatchFacts, origin: AppendOrigin) -> Result<(), ProducerError> {
    if batch.epoch < entry.producer_epoch && origin != AppendOrigin::Replication {
        return Err(ProducerError::InvalidEpoch {
            producer_id: batch.producer_id,
            epoch: batch.epoch,
            last_epoch: entry.producer_epoch,
        });
    }
    Ok(())
}

fn check_sequence(entry: &ProducerEntry, batch: &BatchFacts) -> Result<(), ProducerError> {
    let last_sequence = entry.last_sequence();
    let next = batch.first_sequence;
    let fits = if entry.producer_epoch == NO_PRODUCER_EPOCH {
        // Nothing is known, perhaps because all that was known has expired: any number is a beginning.
        true
    } else if batch.epoch != entry.producer_epoch {
        next == 0
    } else {
        i64::from(next) == i64::from(last_sequence) + 1 || (next == 0 && last_sequence == i32::MAX)
    };
    if fits {
        return Ok(());
    }
    Err(ProducerError::OutOfOrderSequence {
        producer_id: batch.producer_id,
        epoch: batch.epoch,
        sequence: next,
        last_epoch: entry.producer_epoch,
        last_sequence,
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::Marker;
    use super::*;

    fn batch(epoch: i16, first_sequence: i32, count: i32, first_offset: i64) -> BatchFacts {
        BatchFacts {
            producer_id: 1,
            epoch,
            first_sequence,
            last_sequence: record_batch::increment_sequence(first_sequence, count - 1),
            first_offset,
            last_offset: first_offset + i64::from(count) - 1,
            max_timestamp: 1000 + first_offset,
            transactional: false,
            control: false,
            marker: None,
        }
    }

    /// Checks and commits one batch of a client.
    fn send(known: &mut Producers, batch: BatchFacts) -> Result<StagedOutcome, ProducerError> {
        let mut staged = Staged::default();
        let outcome = staged.check(known, &batch, AppendOrigin::Client, true)?;
        known.commit(&mut staged, batch.last_offset + 1);
        for txn in &staged.completed {
            known.complete(txn);
        }
        Ok(outcome)
    }

    const ACCEPTED: Result<StagedOutcome, ProducerError> = Ok(StagedOutcome::Accepted);

    #[test]
    fn bl_013_sequence_numbers_wrap_to_zero() {
        let mut known = Producers::default();
        assert_eq!(send(&mut known, batch(0, i32::MAX - 1, 2, 0)), ACCEPTED);
        assert_eq!(send(&mut known, batch(0, 0, 1, 2)), ACCEPTED);
        let mut known = Producers::default();
        let straddling = batch(0, i32::MAX, 3, 0);
        assert_eq!(straddling.last_sequence, 1);
        assert_eq!(send(&mut known, straddling), ACCEPTED);
        assert_eq!(send(&mut known, batch(0, 2, 1, 3)), ACCEPTED);
        assert!(
            matches!(send(&mut known, straddling), Ok(StagedOutcome::Duplicate(found)) if found.first_offset() == 0)
        );
    }

    #[test]
    fn bl_014_any_sequence_is_accepted_of_an_unknown_producer() {
        let mut known = Producers::default();
        assert_eq!(send(&mut known, batch(3, 77, 2, 0)), ACCEPTED);
        known.remove_expired(1_000_000, 5000);
        assert_eq!(send(&mut known, batch(3, 90, 1, 2)), ACCEPTED);
    }

    #[test]
    fn bl_016_the_last_five_batches_are_known_as_duplicates() {
        let mut known = Producers::default();
        for i in 0..6 {
            assert_eq!(send(&mut known, batch(0, i, 1, i64::from(i) + 10)), ACCEPTED);
        }
        for i in 1..6 {
            let Ok(StagedOutcome::Duplicate(found)) = send(&mut known, batch(0, i, 1, 99)) else { panic!("batch {i}") };
            assert_eq!((found.first_offset(), found.timestamp), (i64::from(i) + 10, i64::from(i) + 1010));
        }
        let old = send(&mut known, batch(0, 0, 1, 99));
        assert!(matches!(old, Err(ProducerError::OutOfOrderSequence { sequence: 0, last_sequence: 5, .. })));
    }

    #[test]
    fn bl_017_the_next_sequence_counts_records() {
        let mut known = Producers::default();
        assert_eq!(send(&mut known, batch(0, 0, 10, 0)), ACCEPTED);
        assert!(send(&mut known, batch(0, 1, 1, 10)).is_err());
        assert!(send(&mut known, batch(0, 11, 1, 10)).is_err());
        assert_eq!(send(&mut known, batch(0, 10, 5, 10)), ACCEPTED);
    }

    #[test]
    fn a_new_epoch_begins_at_zero_and_fences_the_old() {
        let mut known = Producers::default();
        assert_eq!(send(&mut known, batch(1, 0, 1, 0)), ACCEPTED);
        assert!(matches!(send(&mut known, batch(2, 1, 1, 1)), Err(ProducerError::OutOfOrderSequence { .. })));
        assert_eq!(send(&mut known, batch(2, 0, 1, 1)), ACCEPTED);
        assert!(matches!(send(&mut known, batch(1, 1, 1, 2)), Err(ProducerError::InvalidEpoch { last_epoch: 2, .. })));
    }

    #[test]
    fn batches_of_one_write_see_each_other() {
        let known = Producers::default();
        let mut staged = Staged::default();
        for i in 0..3 {
            let outcome = staged.check(&known, &batch(0, i, 1, i64::from(i)), AppendOrigin::Client, true);
            assert_eq!(outcome, ACCEPTED);
        }
        let again = staged.check(&known, &batch(0, 1, 1, 9), AppendOrigin::Client, true);
        assert!(matches!(again, Ok(StagedOutcome::Duplicate(found)) if found.last_offset == 1));
        assert!(staged.check(&known, &batch(0, 5, 1, 9), AppendOrigin::Client, true).is_err());
    }

    #[test]
    fn a_transaction_holds_readers_back_until_its_marker_is_replicated() {
        let mut known = Producers::default();
        let data = BatchFacts { transactional: true, ..batch(0, 0, 2, 5) };
        let refused = Staged::default().check(&known, &data, AppendOrigin::Client, false);
        assert_eq!(refused, Err(ProducerError::InvalidTxnState { producer_id: 1 }));
        assert_eq!(send(&mut known, data), ACCEPTED);
        assert_eq!(send(&mut known, batch(0, 2, 1, 7)), Err(ProducerError::InvalidTxnState { producer_id: 1 }));
        assert_eq!(known.first_unstable_offset(), Some(5));
        assert_eq!(known.oldest_transaction().unwrap().0, 5);
        let marker = Marker { abort: true, coordinator_epoch: 4, timestamp: 2000 };
        let ending = BatchFacts { transactional: true, control: true, marker: Some(marker), ..batch(0, 0, 1, 7) };
        let mut staged = Staged::default();
        assert_eq!(staged.check(&known, &ending, AppendOrigin::Coordinator, false), ACCEPTED);
        known.commit(&mut staged, 8);
        let txn = staged.completed[0];
        assert_eq!(txn, CompletedTxn { producer_id: 1, first_offset: 5, last_offset: 7, aborted: true });
        assert_eq!(known.complete(&txn), 8);
        assert_eq!(known.first_unstable_offset(), Some(5));
        known.complete_below(7);
        assert_eq!(known.first_unstable_offset(), Some(5));
        known.complete_below(8);
        assert_eq!(known.first_unstable_offset(), None);
        let fenced = BatchFacts { marker: Some(Marker { coordinator_epoch: 3, ..marker }), ..ending };
        let outcome = Staged::default().check(&known, &fenced, AppendOrigin::Coordinator, false);
        assert!(matches!(outcome, Err(ProducerError::CoordinatorFenced { epoch: 3, last_epoch: 4, .. })));
    }

    #[test]
    fn a_snapshot_brings_back_open_transactions() {
        let mut known = Producers::default();
        assert_eq!(send(&mut known, BatchFacts { transactional: true, ..batch(0, 0, 2, 5) }), ACCEPTED);
        let restored = Producers::from_snapshot(&known.to_snapshot(), 7, 1_000_000_000, 5000).unwrap();
        assert_eq!(restored.first_unstable_offset(), Some(5));
        assert_eq!((restored.end_offset(), restored.len()), (7, 1));
    }
}
