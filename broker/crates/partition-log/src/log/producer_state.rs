//! Producer snapshots and the index of aborted transactions: when they are written and removed
//! (Kafka: ProducerStateManager, LogSegment.updateTxnIndex).

use std::io::IoSlice;

use base::Offset;

use super::Log;
use crate::disk::{OpenMode, remove_if_exists};
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::{FileKind, offset_file};
use crate::producers::Staged;

impl Log {
    /// Writes a producer snapshot as of the log's end, so that the next start need not read what lies before it. The
    /// next sync makes it durable.
    pub fn take_snapshot(&mut self) -> Result<(), LogError> {
        self.ensure_online()?;
        let outcome = self.take_snapshot_unsynced();
        self.fail(outcome)
    }

    pub(super) fn take_snapshot_unsynced(&mut self) -> Result<(), StorageError> {
        let offset = self.producers.end_offset();
        if self.snapshots.last().is_some_and(|last| *last >= offset) || (offset == 0 && self.producers.is_empty()) {
            return Ok(());
        }
        let path = offset_file(&self.shared.directory, offset, FileKind::Snapshot);
        let file = self.disk().open(&path, OpenMode::Truncate).context("create", &path)?;
        file.write_at(0, &mut [IoSlice::new(&self.producers.to_snapshot())]).context("write", &path)?;
        self.unsynced.files.push(path);
        self.unsynced.directory = true;
        self.snapshots.push(offset);
        Ok(())
    }

    /// Removes the snapshots that `keeps` does not hold for.
    pub(super) fn remove_snapshots(&mut self, keeps: impl Fn(Offset) -> bool) -> Result<(), StorageError> {
        let (kept, gone): (Vec<Offset>, Vec<Offset>) = self.snapshots.iter().partition(|offset| keeps(**offset));
        self.snapshots = kept;
        for offset in gone {
            let path = offset_file(&self.shared.directory, offset, FileKind::Snapshot);
            remove_if_exists(self.disk(), &path).context("remove", &path)?;
            self.unsynced.files.retain(|unsynced| *unsynced != path);
        }
        Ok(())
    }

    /// Removes snapshots inside segments but for the latest: only those at the beginning of a segment help to recover
    /// it, and the latest helps a clean start.
    pub(super) fn remove_stray_snapshots(&mut self) -> Result<(), StorageError> {
        let bases: Vec<Offset> = self.shared.segments.load().0.iter().map(|segment| segment.base_offset()).collect();
        let latest = self.snapshots.last().copied();
        self.remove_snapshots(|offset| Some(offset) == latest || bases.binary_search(&offset).is_ok())
    }

    /// Ends the transactions whose markers were written; those that were aborted go to the segment's index.
    pub(super) fn complete_transactions(&mut self, staged: &Staged) -> Result<(), StorageError> {
        for txn in &staged.completed {
            let last_stable_offset = self.producers.complete(txn);
            if !txn.aborted {
                continue;
            }
            let entry = crate::txn_index::AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: txn.last_offset,
                last_stable_offset,
            };
            let path = self.active.segment.path(&self.shared.directory, FileKind::TxnIndex);
            let file = self.disk().open(&path, OpenMode::Create).context("open", &path)?;
            let end = file.len().context("look at", &path)?;
            self.unsynced.directory |= end == 0;
            file.write_at(end, &mut [IoSlice::new(&entry.to_bytes())]).context("write", &path)?;
            self.active.segment.set_has_txn_index();
            if !self.unsynced.files.contains(&path) {
                self.unsynced.files.push(path);
            }
        }
        Ok(())
    }
}
