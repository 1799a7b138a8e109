//! The index of aborted transactions of a segment (`.txnindex`): entries of 34 bytes in the order of their markers
//! (Kafka: TransactionIndex, AbortedTxn). The file is made with its first entry.

use base::{Offset, ProducerId};

/// Bytes of an entry in the file.
pub(crate) const ENTRY_BYTES: usize = 34;
const VERSION: i16 = 0;

/// A transaction whose records do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// Who wrote it.
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: Offset,
    /// Offset of the marker that aborts it.
    pub last_offset: Offset,
    /// Last stable offset when the marker was appended: no later entry has a transaction that begins before it.
    pub last_stable_offset: Offset,
}

impl AbortedTxn {
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        let fields = [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset];
        for (slot, field) in bytes[2..].chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk::<2>()?;
        let mut fields = rest.as_chunks::<8>().0.iter().map(|field| i64::from_be_bytes(*field));
        (i16::from_be_bytes(*version) == VERSION).then_some(AbortedTxn {
            producer_id: fields.next()?,
            first_offset: fields.next()?,
            last_offset: fields.next()?,
            last_stable_offset: fields.next()?,
        })
    }
}

/// Reads the entries of a file; `None` when one has an unknown version or the markers do not follow each other from
/// the segment's base offset on.
pub(crate) fn decode(bytes: &[u8], base_offset: Offset) -> Option<Vec<AbortedTxn>> {
    let (chunks, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    let entries = chunks.iter().map(AbortedTxn::from_bytes).collect::<Option<Vec<_>>>()?;
    let ordered = entries.windows(2).all(|pair| pair[0].last_offset < pair[1].last_offset);
    let inside = entries.first().is_none_or(|first| first.last_offset >= base_offset);
    (ordered && inside && rest.is_empty()).then_some(entries)
}

/// Adds the transactions that a reader of `start..end` must know; true when later segments cannot hold more of them.
pub(crate) fn collect(entries: &[AbortedTxn], start: Offset, end: Offset, found: &mut Vec<AbortedTxn>) -> bool {
    for entry in entries {
        if entry.last_offset >= start && entry.first_offset < end {
            found.push(*entry);
        }
        if entry.last_stable_offset >= end {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64) -> AbortedTxn {
        AbortedTxn { producer_id, first_offset, last_offset, last_stable_offset }
    }

    #[test]
    fn entries_are_kafkas_bytes() {
        let bytes = txn(1, 2, 3, 4).to_bytes();
        assert_eq!(bytes[..10], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[33], 4);
        assert_eq!(decode(&bytes, 3), Some(vec![txn(1, 2, 3, 4)]));
        assert_eq!(decode(&bytes, 4), None);
        assert_eq!(decode(&bytes[..33], 0), None);
        assert_eq!(decode(&[bytes, bytes].concat(), 0), None);
    }

    #[test]
    fn a_reader_learns_of_those_that_touch_its_range() {
        let entries = [txn(1, 0, 10, 5), txn(2, 5, 20, 12), txn(3, 12, 30, 31)];
        let mut found = Vec::new();
        assert!(!collect(&entries[..2], 11, 13, &mut found));
        assert_eq!(found, [entries[1]]);
        found.clear();
        assert!(collect(&entries, 0, 11, &mut found));
        assert_eq!(found, entries[..2]);
    }
}
