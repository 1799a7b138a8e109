//! What the scrub of stored records has found.

use std::sync::atomic::{AtomicU64, Ordering};

use super::family::{Families, Source};

/// Counts of the scrub since the start.
#[derive(Debug, Default)]
pub struct ScrubCounts {
    bytes: AtomicU64,
    damaged: AtomicU64,
    rounds: AtomicU64,
}

impl ScrubCounts {
    /// Bytes were read and checked, and so many batches of them were damaged.
    pub fn add(&self, bytes: u64, damaged: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.damaged.fetch_add(damaged as u64, Ordering::Relaxed);
    }

    /// All that was there when the round began has been looked at.
    pub fn add_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

impl Source for std::sync::Arc<ScrubCounts> {
    fn collect(&self, families: &mut Families) {
        let mut counter = |name, help, count: &AtomicU64| {
            families.counter(name, help).row(&[], count.load(Ordering::Relaxed) as f64);
        };
        counter("monedula_scrub_bytes_total", "Bytes of stored batches that the scrub has checked", &self.bytes);
        counter("monedula_scrub_damaged_batches_total", "Damaged batches that the scrub has found", &self.damaged);
        counter("monedula_scrub_rounds_total", "Times that the scrub has gone through all logs", &self.rounds);
    }
}
