//! Bytes of records that answers hold until the sockets have taken them. Clients that ask for much and take it slowly would
//! otherwise fill the memory, each with as much as one answer may hold (`fetch.max.bytes`, 55 MiB). Bytes and atomics
//! alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Most bytes of records in all answers under way; room for four of the largest. When they are used up an answer holds
/// one batch, with which its reader still gets on (KIP-74).
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The count of what answers hold.
pub struct AnswerBytes {
    held: Arc<AtomicUsize>,
    max: usize,
}

/// Bytes taken from the count; they go back when this is dropped.
pub struct Held {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

/// Records that count until the last part of them is dropped.
struct Counted {
    records: Bytes,
    _held: Held,
}

impl AnswerBytes {
    /// Room for `max` bytes.
    pub fn new(max: usize) -> Self {
        AnswerBytes { held: Arc::default(), max }
    }

    /// Bytes that answers hold now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes `wanted` bytes, or what is left when that is less.
    pub fn take(&self, wanted: usize) -> Held {
        let mut bytes = 0;
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            bytes = wanted.min(self.max.saturating_sub(held));
            (bytes > 0).then_some(held + bytes)
        });
        Held { held: self.held.clone(), bytes: taken.map_or(0, |_| bytes) }
    }
}

impl Held {
    /// Bytes that were taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The records that were read with these bytes; from now on they count with their own length, which may be larger
    /// when the first batch was.
    pub fn by(mut self, records: Bytes) -> Bytes {
        if records.is_empty() {
            return records;
        }
        self.held.fetch_add(records.len(), Ordering::Relaxed);
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = records.len();
        Bytes::from_owner(Counted { records, _held: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_given_and_comes_back_with_the_last_part_of_the_records() {
        let answers = AnswerBytes::new(100);
        let first = answers.take(80);
        assert_eq!(first.bytes(), 80);
        assert_eq!(answers.take(80).bytes(), 20);
        assert_eq!(answers.held(), 80);
        let records = first.by(Bytes::from(vec![1; 60]));
        assert_eq!(answers.held(), 60);
        let part = records.slice(10..20);
        drop(records);
        assert_eq!(answers.held(), 60);
        drop(part);
        assert_eq!(answers.held(), 0);
    }

    #[test]
    fn a_batch_that_is_larger_than_what_was_left_counts_in_full() {
        let answers = AnswerBytes::new(100);
        let all = answers.take(100);
        let batch = answers.take(50).by(Bytes::from(vec![1; 30]));
        assert_eq!(answers.held(), 130);
        drop((all, batch));
        assert_eq!(answers.held(), 0);
    }

    #[test]
    fn no_records_hold_nothing() {
        let answers = AnswerBytes::new(100);
        assert!(answers.take(50).by(Bytes::new()).is_empty());
        assert_eq!(answers.held(), 0);
    }
}
