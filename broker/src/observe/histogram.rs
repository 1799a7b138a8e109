//! A histogram of durations that many threads record into without a lock: 2 KiB of atomics, one relaxed add per value.
//! Buckets are log-linear, eight to a power of two: a quantile is off by less than an eighth. A general library such
//! as hdrhistogram needs exclusive access to record and several times the memory, for a precision that no reader of
//! these series has asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Clock;
use parking_lot::Mutex;

use super::family::{Families, Source};
use super::requests::QUANTILES;

/// Buckets to a power of two.
const STEPS: u64 = 8;
/// Longest value told apart, in microseconds: 2^32, more than an hour. Longer ones count as that.
const MICROS_MAX: u64 = (1 << 32) - 1;
/// Values below 8 have a bucket each; then come the powers from 2^3 to 2^31 with eight buckets each.
const BUCKETS: usize = ((32 - 3) * STEPS + STEPS) as usize;
/// Quantiles are of the last one to two such periods, in the time between two scrapes if that is longer.
const WINDOW: Duration = Duration::from_secs(60);

/// Counts of values by size, in microseconds.
pub struct DurationHistogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
    windows: Mutex<Windows>,
}

/// States of the buckets at the ends of earlier periods.
#[derive(Default)]
struct Windows {
    rotated_at: Duration,
    recent: Vec<u64>,
    older: Vec<u64>,
}

/// Values of a period, to be asked for quantiles.
pub struct Snapshot {
    window: Vec<u64>,
    /// Values since the start of the process.
    pub count: u64,
    /// Sum of all values since the start of the process, in microseconds.
    pub sum_micros: u64,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        DurationHistogram {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_micros: AtomicU64::new(0),
            windows: Mutex::new(Windows::default()),
        }
    }
}

impl DurationHistogram {
    /// Counts one value.
    pub fn record(&self, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX);
        self.buckets[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// What was recorded, with the values of the last one to two minutes for quantiles. `now` is monotonic time.
    pub fn snapshot(&self, now: Duration) -> Snapshot {
        // Read under the lock, so that no other scrape stores a later state first.
        let mut windows = self.windows.lock();
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let since = |then: &[u64]| -> Vec<u64> {
            if then.is_empty() {
                counts.clone()
            } else {
                counts.iter().zip(then).map(|(now, then)| now - then).collect()
            }
        };
        let window = since(&windows.older);
        if now.saturating_sub(windows.rotated_at) >= WINDOW {
            windows.rotated_at = now;
            windows.older = std::mem::replace(&mut windows.recent, counts.clone());
        }
        Snapshot { window, count: counts.iter().sum(), sum_micros: self.sum_micros.load(Ordering::Relaxed) }
    }
}

impl Snapshot {
    /// The value in milliseconds that the share `quantile` (0 to 1) of the period's values does not exceed; 0 without
    /// values, as Kafka's histograms show it.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let all: u64 = self.window.iter().sum();
        if all == 0 {
            return 0.0;
        }
        let wanted = (quantile * all as f64).ceil().max(1.0);
        let mut below = 0.0;
        for (index, count) in self.window.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= wanted {
                let (low, high) = (bucket_start(index) as f64, bucket_start(index + 1) as f64);
                return (low + (high - low) * (wanted - below) / count) / 1000.0;
            }
            below += count;
        }
        MICROS_MAX as f64 / 1000.0
    }
}

/// The series of the times of syncing logs, the metadata log among them (Kafka: LogFlushStats).
pub(super) struct FlushSource {
    pub(super) times: Arc<DurationHistogram>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Source for FlushSource {
    fn collect(&self, families: &mut Families) {
        let snapshot = self.times.snapshot(self.clock.monotonic());
        let name = "kafka_log_logflushstats_logflushrateandtimems";
        let family = families.gauge(name, "Milliseconds that a sync of a log took");
        for (quantile, text) in QUANTILES {
            family.row(&[("quantile", text)], snapshot.quantile_ms(quantile));
        }
        families
            .counter("kafka_log_logflushstats_logflushrateandtimems_count", "Syncs of logs since the start")
            .row(&[], snapshot.count as f64);
    }
}

fn bucket_of(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let power = u64::from(micros.ilog2());
    let step = (micros >> (power - 3)) - STEPS;
    ((power - 2) * STEPS + step) as usize
}

/// Lowest value of a bucket, in microseconds.
fn bucket_start(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    (STEPS + index % STEPS) << (index / STEPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(bucket_start(index)), index);
            assert_eq!(bucket_of(bucket_start(index + 1) - 1), index);
        }
        assert_eq!(bucket_of(MICROS_MAX), BUCKETS - 1);
    }

    #[test]
    fn a_quantile_is_within_an_eighth_of_the_value() {
        let histogram = DurationHistogram::default();
        for micros in 1..=10_000 {
            histogram.record(Duration::from_micros(micros));
        }
        let snapshot = histogram.snapshot(Duration::ZERO);
        for (quantile, expected_ms) in [(0.5, 5.0), (0.95, 9.5), (0.99, 9.9)] {
            let found = snapshot.quantile_ms(quantile);
            assert!((found - expected_ms).abs() / expected_ms < 0.125, "{quantile}: {found}");
        }
        assert_eq!(snapshot.count, 10_000);
        assert_eq!(snapshot.sum_micros, 50_005_000);
    }

    #[test]
    fn without_values_a_quantile_is_zero() {
        assert_eq!(DurationHistogram::default().snapshot(Duration::ZERO).quantile_ms(0.99), 0.0);
    }

    #[test]
    fn values_older_than_two_periods_leave_the_quantiles_and_stay_in_the_count() {
        let histogram = DurationHistogram::default();
        histogram.record(Duration::from_secs(1));
        histogram.snapshot(WINDOW);
        histogram.snapshot(2 * WINDOW);
        histogram.record(Duration::from_millis(1));
        let snapshot = histogram.snapshot(2 * WINDOW);
        assert!(snapshot.quantile_ms(1.0) < 2.0);
        assert_eq!(snapshot.count, 2);
    }

    #[test]
    fn a_value_beyond_the_longest_counts_as_the_longest() {
        let histogram = DurationHistogram::default();
        histogram.record(Duration::from_secs(1_000_000));
        assert!(histogram.snapshot(Duration::ZERO).quantile_ms(0.5) > 3_600_000.0);
    }
}
