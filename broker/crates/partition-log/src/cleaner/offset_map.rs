//! Where each key of the dirty section stands last, in bounded memory: a table of 24 bytes an entry that holds a 128-bit
//! hash in place of the key (Kafka: SkimpyOffsetMap, which takes MD5). Two keys of one hash would be taken for one; the
//! seed differs from one cleaning to the next, so that nobody can choose such keys.

use std::hash::{DefaultHasher, Hasher};

use base::Offset;

/// Bytes of an entry: 16 of the hash and 8 of the offset.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Least part of a table that is filled, whatever is asked for: with less a cleaning would not get on.
const LOAD_FACTOR_MIN: f64 = 0.1;
/// Fewest slots of a table.
const SLOTS_MIN: usize = 16;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: [u64; 2],
    /// The offset and one more; 0 in a free slot.
    offset_and_one: u64,
}

/// The last offset of each key.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    slots: Vec<Slot>,
    len: usize,
    /// Slots that may be taken; fewer than there are.
    len_max: usize,
    seed: u64,
    /// Everything up to this offset was taken in.
    latest_offset: Offset,
}

impl OffsetMap {
    /// A table for at most `keys` keys in at most `bytes_max` bytes, filled up to the part `load_factor` (0 to 1);
    /// `latest_offset` is the one before the section.
    pub(crate) fn new(keys: u64, bytes_max: usize, load_factor: f64, seed: u64, latest_offset: Offset) -> Self {
        let load_factor = load_factor.clamp(LOAD_FACTOR_MIN, 1.0);
        // Numbers of keys are far from where this arithmetic becomes inexact, and a float too large saturates.
        let wanted = (keys as f64 / load_factor) as usize;
        let slots = wanted.saturating_add(2).min(bytes_max / ENTRY_BYTES).max(SLOTS_MIN);
        let len_max = ((slots as f64 * load_factor) as usize).min(slots - 1);
        OffsetMap { slots: vec![Slot::default(); slots], len: 0, len_max, seed, latest_offset }
    }

    /// Everything up to here is in the map.
    pub(crate) fn latest_offset(&self) -> Offset {
        self.latest_offset
    }

    pub(crate) fn advance_to(&mut self, offset: Offset) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        [0, 1].map(|half: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(self.seed);
            hasher.write_u8(half);
            hasher.write(key);
            hasher.finish()
        })
    }

    /// The slot of a key: the one that has it, or the free one where it would be.
    fn slot(&self, hash: [u64; 2]) -> usize {
        let mut at = (hash[0] % self.slots.len() as u64) as usize;
        // A part of the table is always free, so that the walk ends.
        while self.slots[at].offset_and_one != 0 && self.slots[at].hash != hash {
            at = (at + 1) % self.slots.len();
        }
        at
    }

    /// Notes a key at an offset, which is not before any noted so far; false when the table is full.
    pub(crate) fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = self.hash(key);
        let at = self.slot(hash);
        let free = self.slots[at].offset_and_one == 0;
        if free && self.len >= self.len_max {
            return false;
        }
        self.len += usize::from(free);
        self.slots[at] = Slot { hash, offset_and_one: offset.saturating_add(1) as u64 };
        true
    }

    /// Where a key stands last; `None` when it is not in the section.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Offset> {
        let slot = self.slots[self.slot(self.hash(key))];
        slot.offset_and_one.checked_sub(1).map(|offset| offset as Offset)
    }

    /// Keys in the map.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_a_key_is_kept_and_a_full_table_takes_no_more_keys() {
        let mut map = OffsetMap::new(u64::MAX, 100 * ENTRY_BYTES, 0.9, 7, -1);
        let key = |at: i64| at.to_be_bytes();
        assert!((0..90).all(|at| map.put(&key(at), at)));
        assert!(!map.put(&key(90), 90));
        assert!(map.put(&key(3), 91));
        assert_eq!((map.get(&key(3)), map.get(&key(4)), map.get(&key(90))), (Some(91), Some(4), None));
        assert_eq!((map.len(), map.latest_offset()), (90, -1));
    }

    #[test]
    fn memory_is_that_of_the_keys_or_of_the_limit() {
        let slots = |bytes_max, load_factor| OffsetMap::new(900, bytes_max, load_factor, 0, -1).slots.len();
        assert_eq!(slots(usize::MAX, 0.9), 1002);
        assert_eq!(slots(480, 0.9), 20);
        assert_eq!(slots(usize::MAX, 0.5), 1802);
    }

    #[test]
    fn a_table_keeps_a_free_slot_whatever_load_is_asked_for() {
        for (load_factor, taken) in [(7.0, 99), (1.0, 99), (0.5, 50), (0.0, 10), (-3.0, 10)] {
            let mut map = OffsetMap::new(u64::MAX, 100 * ENTRY_BYTES, load_factor, 7, -1);
            let put = (0..100i64).filter(|at| map.put(&at.to_be_bytes(), *at)).count();
            assert_eq!(put, taken, "{load_factor}");
            assert_eq!(map.get(b"not there"), None);
        }
    }
}
