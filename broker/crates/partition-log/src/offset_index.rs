//! The offset index of a segment (`.index`): entries of 8 bytes, the relative offset of a batch's last record and the
//! position of that batch, one about every `index.interval.bytes` (Kafka: OffsetIndex).
//!
//! A segment in use keeps its entries in memory, where readers find them without a lock: entries are only appended,
//! and a length is raised after the entry is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;

/// Bytes of an entry in the file.
pub(crate) const ENTRY_BYTES: usize = 8;
/// Entries of the first block that is made, and the most that a block holds: a small log pays for few entries.
const BLOCK_ENTRIES_MIN: usize = 16;
const BLOCK_ENTRIES_MAX: usize = 512;

/// A place in a segment to scan from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// An offset of the batch at `position`, less the segment's base offset: that of its last record in entries from
    /// the file, of its first in those added since. Both serve: no batch at or before `position` ends after it.
    pub relative_offset: u32,
    /// Where the batch begins, in bytes.
    pub position: u32,
}

impl IndexEntry {
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        self.pack().to_be_bytes()
    }

    fn pack(self) -> u64 {
        u64::from(self.relative_offset) << 32 | u64::from(self.position)
    }

    fn unpack(packed: u64) -> Self {
        IndexEntry { relative_offset: (packed >> 32) as u32, position: packed as u32 }
    }
}

/// Reads the entries of a file, up to the first that does not increase or that lies outside the segment: from there on
/// the file is preallocated space, or was never completely written.
pub(crate) fn decode(bytes: &[u8], segment_bytes: u64) -> Vec<IndexEntry> {
    let mut entries: Vec<IndexEntry> = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
    for chunk in bytes.as_chunks::<ENTRY_BYTES>().0 {
        let entry = IndexEntry::unpack(u64::from_be_bytes(*chunk));
        let increases = match entries.last() {
            // Entries are made when enough was appended before them, so that none names the first batch.
            None => entry.position > 0,
            Some(last) => entry.relative_offset > last.relative_offset && entry.position > last.position,
        };
        if !increases || u64::from(entry.position) >= segment_bytes || entry.relative_offset > i32::MAX as u32 {
            break;
        }
        entries.push(entry);
    }
    entries
}

#[derive(Debug)]
struct Block {
    entries: Box<[AtomicU64]>,
    len: AtomicUsize,
}

impl Block {
    fn with_room(room: usize) -> Self {
        Block { entries: (0..room).map(|_| AtomicU64::new(0)).collect(), len: AtomicUsize::new(0) }
    }

    fn push(&self, entry: IndexEntry) -> bool {
        let len = self.len.load(Ordering::Relaxed);
        match self.entries.get(len) {
            Some(slot) => {
                slot.store(entry.pack(), Ordering::Relaxed);
                self.len.store(len + 1, Ordering::Release);
                true
            }
            None => false,
        }
    }

    fn get(&self, at: usize) -> IndexEntry {
        IndexEntry::unpack(self.entries[at].load(Ordering::Relaxed))
    }

    /// The last entry that `keeps` holds for; `keeps` holds for a first part of the entries.
    fn last_where(&self, keeps: impl Fn(IndexEntry) -> bool) -> Option<IndexEntry> {
        let (mut low, mut high) = (0, self.len.load(Ordering::Acquire));
        while low < high {
            let middle = (low + high) / 2;
            if keeps(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1).map(|at| self.get(at))
    }
}

/// The entries of a segment in use. One writer appends; any number of readers look up.
#[derive(Debug)]
pub(crate) struct OffsetEntries {
    blocks: ArcSwap<Vec<Arc<Block>>>,
}

impl OffsetEntries {
    pub(crate) fn new(entries: &[IndexEntry]) -> Self {
        let mut blocks = Vec::new();
        if !entries.is_empty() {
            let block = Block::with_room(entries.len());
            entries.iter().for_each(|entry| {
                block.push(*entry);
            });
            blocks.push(Arc::new(block));
        }
        OffsetEntries { blocks: ArcSwap::from_pointee(blocks) }
    }

    /// Appends an entry. Only the owner of the log calls this.
    pub(crate) fn push(&self, entry: IndexEntry) {
        let blocks = self.blocks.load();
        if blocks.last().is_some_and(|block| block.push(entry)) {
            return;
        }
        let room = match blocks.last() {
            Some(last) => (last.entries.len() * 4).clamp(BLOCK_ENTRIES_MIN, BLOCK_ENTRIES_MAX),
            None => BLOCK_ENTRIES_MIN,
        };
        let block = Block::with_room(room);
        block.push(entry);
        let mut grown = Vec::with_capacity(blocks.len() + 1);
        grown.extend(blocks.iter().cloned());
        grown.push(Arc::new(block));
        self.blocks.store(Arc::new(grown));
    }

    fn last_where(&self, keeps: impl Fn(IndexEntry) -> bool) -> Option<IndexEntry> {
        // From the end: most readers ask for what was appended last.
        self.blocks.load().iter().rev().find_map(|block| block.last_where(&keeps))
    }

    /// The last entry of an offset not above `relative_offset`.
    pub(crate) fn entry_at_or_before(&self, relative_offset: u32) -> Option<IndexEntry> {
        self.last_where(|entry| entry.relative_offset <= relative_offset)
    }

    /// Where a scan for the batch that holds `relative_offset` begins.
    pub(crate) fn position_before(&self, relative_offset: u32) -> u32 {
        self.entry_at_or_before(relative_offset).map_or(0, |entry| entry.position)
    }

    /// The last place known that is not behind `position`.
    pub(crate) fn position_at_or_before(&self, position: u32) -> u32 {
        self.last_where(|entry| entry.position <= position).map_or(0, |entry| entry.position)
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.load().iter().map(|block| block.len.load(Ordering::Acquire)).sum()
    }

    /// The entries of batches that begin before `position`.
    pub(crate) fn entries_before_position(&self, position: u32) -> Vec<IndexEntry> {
        let blocks = self.blocks.load();
        let all = blocks.iter().flat_map(|block| (0..block.len.load(Ordering::Acquire)).map(|at| block.get(at)));
        all.take_while(|entry| entry.position < position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(relative_offset: u32, position: u32) -> IndexEntry {
        IndexEntry { relative_offset, position }
    }

    #[test]
    fn entries_are_kafkas_bytes() {
        assert_eq!(entry(0x0102_0304, 0x0506_0708).to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
        let written: Vec<u8> = [entry(5, 100), entry(9, 4300)].iter().flat_map(|e| e.to_bytes()).collect();
        assert_eq!(decode(&written, 5000), [entry(5, 100), entry(9, 4300)]);
    }

    #[test]
    fn preallocated_and_broken_parts_are_left_out() {
        let mut written: Vec<u8> = [entry(5, 100), entry(9, 4300)].iter().flat_map(|e| e.to_bytes()).collect();
        written.extend([0; 64]);
        assert_eq!(decode(&written, 5000).len(), 2);
        assert_eq!(decode(&written, 4300).len(), 1);
        assert_eq!(decode(&[0; 64], 5000), []);
        assert_eq!(decode(&written[..13], 5000).len(), 1);
    }

    #[test]
    fn a_look_up_finds_the_last_entry_at_or_before() {
        let loaded: Vec<IndexEntry> = (1..=10).map(|i| entry(i * 10, i * 1000)).collect();
        let entries = OffsetEntries::new(&loaded);
        (11..3000).for_each(|i| entries.push(entry(i * 10, i * 1000)));
        for target in 0..30_100 {
            let expected = (target / 10).min(2999) * 1000;
            assert_eq!(entries.position_before(target), expected, "{target}");
        }
        assert_eq!((entries.position_at_or_before(999), entries.position_at_or_before(2_500)), (0, 2000));
        assert_eq!(entries.entries_before_position(1000), []);
        assert_eq!(entries.entries_before_position(1001), [entry(10, 1000)]);
        assert_eq!(entries.len(), 2999);
        assert_eq!(OffsetEntries::new(&[]).position_before(7), 0);
    }
}
