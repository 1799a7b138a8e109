//! The time index of a segment (`.timeindex`): entries of 12 bytes, the largest timestamp so far and the relative offset
//! of the last record of its batch; both only grow (Kafka: TimeIndex). Pure: bytes in, entries out.

use base::{Offset, TimestampMs};

/// Bytes of an entry in the file.
pub(crate) const ENTRY_BYTES: usize = 12;

/// No record up to `offset` has a larger timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// The largest timestamp.
    pub timestamp: TimestampMs,
    /// Offset of the last record of the batch that has it.
    pub offset: Offset,
}

impl TimeEntry {
    pub(crate) fn to_bytes(self, base_offset: Offset) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&((self.offset - base_offset) as i32).to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES], base_offset: Offset) -> Self {
        let [t @ .., a, b, c, d] = *bytes;
        TimeEntry {
            timestamp: i64::from_be_bytes(t),
            offset: base_offset + i64::from(i32::from_be_bytes([a, b, c, d])),
        }
    }
}

/// Reads the entries of a file, up to the first that does not increase: from there on the file is preallocated space,
/// or was never completely written.
pub(crate) fn decode(bytes: &[u8], base_offset: Offset) -> Vec<TimeEntry> {
    let mut entries: Vec<TimeEntry> = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
    for chunk in bytes.as_chunks::<ENTRY_BYTES>().0 {
        let entry = TimeEntry::from_bytes(chunk, base_offset);
        let increases = match entries.last() {
            // A first entry of zeros is real only where nothing is preallocated behind it.
            None => {
                let zeros = chunk.iter().all(|byte| *byte == 0) && bytes.len() > ENTRY_BYTES;
                entry.timestamp >= 0 && entry.offset >= base_offset && !zeros
            }
            Some(last) => entry.timestamp > last.timestamp && entry.offset >= last.offset,
        };
        if !increases {
            break;
        }
        entries.push(entry);
    }
    entries
}

/// The last entry whose timestamp is not after `timestamp`: what it covers need not be searched for a later one.
pub(crate) fn last_at_or_before(entries: &[TimeEntry], timestamp: TimestampMs) -> Option<TimeEntry> {
    let count = entries.partition_point(|entry| entry.timestamp <= timestamp);
    count.checked_sub(1).map(|at| entries[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_kafkas_bytes() {
        let entry = TimeEntry { timestamp: 0x0102_0304_0506_0708, offset: 1000 + 0x090a_0b0c };
        assert_eq!(entry.to_bytes(1000), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(decode(&entry.to_bytes(1000), 1000), [entry]);
    }

    #[test]
    fn a_look_up_finds_the_last_entry_not_after() {
        let entries: Vec<TimeEntry> = (1..5).map(|i| TimeEntry { timestamp: i * 10, offset: i }).collect();
        let mut written: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes(0)).collect();
        written.extend([0; 30]);
        assert_eq!(decode(&written, 0), entries);
        assert_eq!(last_at_or_before(&entries, 9), None);
        assert_eq!(last_at_or_before(&entries, 20), Some(entries[1]));
        assert_eq!(last_at_or_before(&entries, 99), Some(entries[3]));
    }
}
