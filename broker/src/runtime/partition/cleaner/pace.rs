//! How fast cleanings may read and write, all together (Kafka: Throttler, `log.cleaner.io.max.bytes.per.second`), and how
//! one is told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Clock;
use parking_lot::{Condvar, Mutex};

/// Shortest wait; what is owed below it is waited for later, together with what follows.
const WAIT_MIN: Duration = Duration::from_millis(10);
/// Longest wait at a time, so that a rate that was raised takes effect soon.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Tells one cleaning to end.
#[derive(Default)]
pub(super) struct Cancel {
    told: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    pub(super) fn cancel(&self) {
        *self.told.lock() = true;
        self.changed.notify_all();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.told.lock()
    }

    /// Waits so long, or until it is cancelled.
    fn wait(&self, time: Duration) {
        let mut told = self.told.lock();
        if !*told {
            self.changed.wait_for(&mut told, time);
        }
    }
}

/// The rate that all cleanings share.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    /// Bits of the bytes per second.
    rate: AtomicU64,
    /// Monotonic time by which everything is paid for that was read and written.
    paid_until: Mutex<Duration>,
}

impl Pace {
    pub(super) fn new(clock: Arc<dyn Clock>, bytes_per_second: f64) -> Self {
        Pace { clock, rate: AtomicU64::new(bytes_per_second.to_bits()), paid_until: Mutex::default() }
    }

    pub(super) fn set_rate(&self, bytes_per_second: f64) {
        self.rate.store(bytes_per_second.to_bits(), Ordering::Relaxed);
        // What is owed at the old rate is let go.
        *self.paid_until.lock() = Duration::ZERO;
    }

    /// Charges bytes and waits until they are paid for. To be called on a thread that may wait.
    pub(super) fn charge(&self, bytes: u64, cancel: &Cancel) {
        let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
        {
            let mut paid_until = self.paid_until.lock();
            *paid_until = paid_after(*paid_until, self.clock.monotonic(), bytes, rate);
        }
        while !cancel.is_cancelled() {
            let owed = self.paid_until.lock().saturating_sub(self.clock.monotonic());
            if owed < WAIT_MIN {
                break;
            }
            cancel.wait(owed.min(WAIT_MAX));
        }
    }
}

/// When bytes are paid for that are charged at `now`. Time in which nothing was charged is no credit.
fn paid_after(paid_until: Duration, now: Duration, bytes: u64, bytes_per_second: f64) -> Duration {
    let time = Duration::try_from_secs_f64(bytes as f64 / bytes_per_second.max(1.0)).unwrap_or_default();
    paid_until.max(now).saturating_add(time)
}

#[cfg(test)]
mod tests {
    use base::ManualClock;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn bytes_cost_time_by_the_rate_and_idle_time_is_no_credit() {
        assert_eq!(paid_after(Duration::ZERO, 5_000 * MS, 100, 1000.0), 5_100 * MS);
        assert_eq!(paid_after(5_100 * MS, 5_050 * MS, 100, 1000.0), 5_200 * MS);
        assert_eq!(paid_after(5_100 * MS, 9_000 * MS, 100, f64::MAX), 9_000 * MS);
        assert_eq!(paid_after(5_100 * MS, 9_000 * MS, 3, -4.0), 12_000 * MS);
    }

    #[test]
    fn a_wait_ends_at_once_when_the_cleaning_is_cancelled() {
        let pace = Pace::new(Arc::new(ManualClock::at(0)), 1.0);
        let cancel = Cancel::default();
        cancel.cancel();
        pace.charge(1 << 40, &cancel);
        assert!(cancel.is_cancelled());
    }
}
