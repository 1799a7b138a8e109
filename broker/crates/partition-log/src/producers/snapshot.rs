//! Producer snapshots (`.snapshot`): what a log knows of its producers as of the offset that names the file, in Kafka's
//! format version 1 (Kafka: ProducerStateManager.readSnapshot, message ProducerSnapshot). Of each producer only the
//! last batch is kept. Pure: entries in, bytes out, and back.

use thiserror::Error;

use super::entry::{AppendedBatch, ProducerEntry};

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
/// First byte that the CRC covers.
const ENTRIES_AT: usize = 6;
const COUNT_BYTES: usize = 4;
const ENTRY_BYTES: usize = 46;

/// Why a snapshot cannot be used; the log is read again from an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// A version that is not known.
    #[error("unknown version {version}")]
    Version {
        /// What the file said.
        version: i16,
    },
    /// The content does not match its CRC.
    #[error("stored CRC {stored:#x}, computed {computed:#x}")]
    Crc {
        /// What the file said.
        stored: u32,
        /// What the content gives.
        computed: u32,
    },
    /// The content is not as long as it should be.
    #[error("{bytes} bytes do not hold {entries} entries")]
    Length {
        /// Bytes of the file.
        bytes: usize,
        /// Entries announced.
        entries: i32,
    },
}

/// The bytes of a snapshot. Entries come in the order of the iterator.
pub(crate) fn encode<'a>(entries: impl ExactSizeIterator<Item = &'a ProducerEntry>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ENTRIES_AT + COUNT_BYTES + entries.len() * ENTRY_BYTES);
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((entries.len() as i32).to_be_bytes());
    for entry in entries {
        let last = entry.last_batch();
        bytes.extend(entry.producer_id.to_be_bytes());
        bytes.extend(entry.producer_epoch.to_be_bytes());
        bytes.extend(entry.last_sequence().to_be_bytes());
        bytes.extend(last.map_or(-1, |batch| batch.last_offset).to_be_bytes());
        bytes.extend(last.map_or(0, |batch| batch.offset_delta).to_be_bytes());
        bytes.extend(entry.last_timestamp.to_be_bytes());
        bytes.extend(entry.coordinator_epoch.to_be_bytes());
        bytes.extend(entry.current_txn_first_offset.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[ENTRIES_AT..]);
    bytes[CRC_AT..ENTRIES_AT].copy_from_slice(&crc.to_be_bytes());
    bytes
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// The next field; zeros when the bytes have ended, which the length check has ruled out.
    fn next<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }
}

/// Reads the bytes of a snapshot.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<ProducerEntry>, SnapshotError> {
    let mut fields = Fields(bytes);
    let version = i16::from_be_bytes(fields.next());
    if version != VERSION {
        return Err(SnapshotError::Version { version });
    }
    let stored = u32::from_be_bytes(fields.next());
    let count = i32::from_be_bytes(fields.next());
    let expected = usize::try_from(count).ok().and_then(|count| count.checked_mul(ENTRY_BYTES));
    if expected != bytes.len().checked_sub(ENTRIES_AT + COUNT_BYTES) {
        return Err(SnapshotError::Length { bytes: bytes.len(), entries: count });
    }
    let computed = crc32c::crc32c(&bytes[ENTRIES_AT..]);
    if stored != computed {
        return Err(SnapshotError::Crc { stored, computed });
    }
    Ok((0..count).map(|_| decode_entry(&mut fields)).collect())
}

fn decode_entry(fields: &mut Fields<'_>) -> ProducerEntry {
    let mut entry = ProducerEntry::unknown(i64::from_be_bytes(fields.next()));
    entry.producer_epoch = i16::from_be_bytes(fields.next());
    let last_sequence = i32::from_be_bytes(fields.next());
    let last_offset = i64::from_be_bytes(fields.next());
    let offset_delta = i32::from_be_bytes(fields.next());
    entry.last_timestamp = i64::from_be_bytes(fields.next());
    entry.coordinator_epoch = i32::from_be_bytes(fields.next());
    entry.current_txn_first_offset = Some(i64::from_be_bytes(fields.next())).filter(|offset| *offset >= 0);
    if last_offset >= 0 {
        entry.remember(AppendedBatch { last_sequence, last_offset, offset_delta, timestamp: entry.last_timestamp });
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<ProducerEntry> {
        let mut idle = ProducerEntry::unknown(7);
        idle.producer_epoch = 3;
        idle.coordinator_epoch = 9;
        let mut busy = ProducerEntry::unknown(8);
        busy.producer_epoch = 0;
        busy.last_timestamp = 1234;
        busy.current_txn_first_offset = Some(100);
        busy.remember(AppendedBatch { last_sequence: 9, last_offset: 109, offset_delta: 4, timestamp: 1234 });
        vec![idle, busy]
    }

    #[test]
    fn a_snapshot_reads_back() {
        let bytes = encode(entries().iter());
        assert_eq!(bytes.len(), 10 + 2 * 46);
        assert_eq!(decode(&bytes), Ok(entries()));
        assert_eq!(decode(&encode([].iter())), Ok(vec![]));
    }

    #[test]
    fn any_damage_is_seen() {
        let bytes = encode(entries().iter());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
