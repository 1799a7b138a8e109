//! What a walk over a log knows of its transactions: which batches belong to aborted ones, and which markers have
//! nothing left to mark (Kafka: CleanedTransactionMetadata).

use std::collections::{BTreeSet, HashMap, VecDeque};

use base::ProducerId;
use record_batch::control::ControlRecordType;
use record_batch::{BatchHeader, BatchRef, RecordReader};

use super::{CleanError, DECOMPRESSED_BYTES_MAX};
use crate::txn_index::AbortedTxn;

#[derive(Debug)]
struct Aborted {
    txn: AbortedTxn,
    /// A batch of it was met.
    observed: bool,
}

/// What a marker means for the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Nothing of its transaction is left, so that it may go once its delete horizon has passed.
    pub(crate) without_data: bool,
    /// The aborted transaction whose data are still there.
    pub(crate) aborted: Option<AbortedTxn>,
}

/// Transactions seen and to come.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Aborted ones that have not begun yet, by rising first offset.
    pending: VecDeque<AbortedTxn>,
    ongoing_aborted: HashMap<ProducerId, Aborted>,
    ongoing_committed: BTreeSet<ProducerId>,
}

impl Transactions {
    /// A walk over a section that these aborted transactions touch.
    pub(crate) fn new(aborted: &[AbortedTxn]) -> Self {
        let mut pending = aborted.to_vec();
        pending.sort_by_key(|txn| txn.first_offset);
        Transactions { pending: pending.into(), ..Transactions::default() }
    }

    fn begin_up_to(&mut self, header: &BatchHeader) {
        while let Some(txn) = self.pending.pop_front_if(|txn| txn.first_offset <= header.last_offset()) {
            self.ongoing_aborted.entry(txn.producer_id).or_insert(Aborted { txn, observed: false });
        }
    }

    /// Takes note of a batch of data; true when its transaction was aborted. An empty batch counts too: as long as it is
    /// there, its marker has to be.
    pub(crate) fn on_data(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header);
        if !header.is_transactional() {
            return false;
        }
        match self.ongoing_aborted.get_mut(&header.producer_id) {
            Some(aborted) => {
                aborted.observed = true;
                true
            }
            None => {
                self.ongoing_committed.insert(header.producer_id);
                false
            }
        }
    }

    /// Takes note of a control batch.
    pub(crate) fn on_control(&mut self, batch: &BatchRef<'_>) -> Result<Marker, CleanError> {
        let header = batch.header();
        self.begin_up_to(header);
        if header.record_count == 0 {
            // Its record was removed before.
            return Ok(Marker { without_data: true, aborted: None });
        }
        let corrupt = |reason: String| CleanError::Corrupt { offset: header.base_offset, reason };
        let mut records =
            RecordReader::open(batch, DECOMPRESSED_BYTES_MAX).map_err(|error| corrupt(error.to_string()))?;
        let record = records.next_record().map_err(|error| corrupt(error.to_string()))?;
        let kind = record.and_then(|record| ControlRecordType::parse_key(record.key.unwrap_or_default()));
        Ok(match kind {
            Some(ControlRecordType::Abort) => {
                let ended = self.ongoing_aborted.remove(&header.producer_id).filter(|ended| ended.observed);
                Marker { without_data: ended.is_none(), aborted: ended.map(|ended| ended.txn) }
            }
            Some(ControlRecordType::Commit) => {
                Marker { without_data: !self.ongoing_committed.remove(&header.producer_id), aborted: None }
            }
            Some(
                ControlRecordType::LeaderChange
                | ControlRecordType::SnapshotHeader
                | ControlRecordType::SnapshotFooter
                | ControlRecordType::KraftVersion
                | ControlRecordType::KraftVoters,
            )
            | None => Marker { without_data: false, aborted: None },
        })
    }
}
