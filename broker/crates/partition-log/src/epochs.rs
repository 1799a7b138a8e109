//! The leader epochs of a log: which epoch wrote which offsets (Kafka: LeaderEpochFileCache, KIP-101, KIP-279). Pure.

use base::{LeaderEpoch, Offset};

use crate::formats::epoch_checkpoint::EpochEntry;

/// An epoch and the offset after its last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest known epoch that is not above the one asked for, or the one asked for.
    pub epoch: LeaderEpoch,
    /// The offset after its last record.
    pub end_offset: Offset,
}

/// Entries with rising epochs and rising start offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs {
    entries: Vec<EpochEntry>,
}

impl Epochs {
    /// Takes entries as a checkpoint holds them; those that do not rise are settled as `assign` settles them.
    pub fn new(entries: impl IntoIterator<Item = EpochEntry>) -> Self {
        let mut epochs = Epochs::default();
        for entry in entries {
            epochs.assign(entry);
        }
        epochs
    }

    /// All entries.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The latest epoch.
    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.epoch)
    }

    /// Notes the first offset of an epoch. Entries that contradict it go: they stand for records that were never
    /// appended or that were cut off. True when anything changed.
    pub fn assign(&mut self, entry: EpochEntry) -> bool {
        if entry.epoch < 0 || entry.start_offset < 0 {
            return false;
        }
        if self.entries.last().is_some_and(|last| last.epoch == entry.epoch && last.start_offset <= entry.start_offset)
        {
            return false;
        }
        while self.entries.pop_if(|last| last.epoch >= entry.epoch || last.start_offset >= entry.start_offset).is_some()
        {
        }
        self.entries.push(entry);
        true
    }

    /// Removes the epochs that begin at `end_offset` or later. True when anything changed.
    pub fn truncate_from_end(&mut self, end_offset: Offset) -> bool {
        let kept = self.entries.partition_point(|entry| entry.start_offset < end_offset);
        let changed = kept < self.entries.len();
        self.entries.truncate(kept);
        changed
    }

    /// Removes what lies before `start_offset`; the epoch that wrote `start_offset` begins there. True when anything
    /// changed.
    pub fn truncate_from_start(&mut self, start_offset: Offset) -> bool {
        let before = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        let Some(last_before) = before.checked_sub(1) else { return false };
        if last_before == 0 && self.entries[0].start_offset == start_offset {
            return false;
        }
        self.entries[last_before].start_offset = start_offset;
        self.entries.drain(..last_before);
        true
    }

    /// Forgets everything. True when there was anything.
    pub fn clear(&mut self) -> bool {
        let changed = !self.entries.is_empty();
        self.entries.clear();
        changed
    }

    /// The epoch that wrote `offset`.
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        let count = self.entries.partition_point(|entry| entry.start_offset <= offset);
        count.checked_sub(1).map(|at| self.entries[at].epoch)
    }

    /// Where `epoch` ends, for a follower or consumer that looks for the point at which it parted from this log
    /// (Kafka: LeaderEpochFileCache.endOffsetFor). `None` when the epoch is unknown: negative, or newer than all.
    pub fn end_offset(&self, epoch: LeaderEpoch, log_end_offset: Offset) -> Option<EpochEnd> {
        if epoch < 0 {
            return None;
        }
        if self.latest() == Some(epoch) {
            return Some(EpochEnd { epoch, end_offset: log_end_offset });
        }
        let above = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let next = self.entries.get(above)?;
        let floor = above.checked_sub(1).map_or(epoch, |at| self.entries[at].epoch);
        Some(EpochEnd { epoch: floor, end_offset: next.start_offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        Epochs::new(entries.iter().map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset }))
    }

    #[test]
    fn a_new_entry_replaces_those_it_contradicts() {
        let mut known = epochs(&[(1, 0), (2, 10), (4, 20)]);
        assert!(!known.assign(EpochEntry { epoch: 4, start_offset: 25 }));
        assert!(known.assign(EpochEntry { epoch: 5, start_offset: 20 }));
        assert_eq!(known, epochs(&[(1, 0), (2, 10), (5, 20)]));
        assert!(known.assign(EpochEntry { epoch: 3, start_offset: 10 }));
        assert_eq!(known, epochs(&[(1, 0), (3, 10)]));
        assert!(!known.assign(EpochEntry { epoch: -1, start_offset: 50 }));
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next() {
        let known = epochs(&[(2, 10), (4, 20)]);
        assert_eq!(known.end_offset(4, 33), Some(EpochEnd { epoch: 4, end_offset: 33 }));
        assert_eq!(known.end_offset(2, 33), Some(EpochEnd { epoch: 2, end_offset: 20 }));
        assert_eq!(known.end_offset(3, 33), Some(EpochEnd { epoch: 2, end_offset: 20 }));
        assert_eq!(known.end_offset(1, 33), Some(EpochEnd { epoch: 1, end_offset: 10 }));
        assert_eq!((known.end_offset(5, 33), known.end_offset(-1, 33)), (None, None));
        assert_eq!((known.epoch_of(9), known.epoch_of(10), known.epoch_of(99)), (None, Some(2), Some(4)));
    }

    #[test]
    fn truncation_keeps_what_the_log_keeps() {
        let mut known = epochs(&[(1, 0), (2, 10), (4, 20)]);
        assert!(known.truncate_from_end(20));
        assert_eq!(known, epochs(&[(1, 0), (2, 10)]));
        assert!(known.truncate_from_start(15));
        assert_eq!(known, epochs(&[(2, 15)]));
        assert!(!known.truncate_from_start(15) && !known.truncate_from_start(3));
        assert!(known.clear() && !known.clear());
    }
}
