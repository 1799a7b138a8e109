//! The seam to time. Pure code takes the time as an argument; the shell asks a `Clock`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::TimestampMs;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Wall-clock time in milliseconds since 1970-01-01 UTC. May step back when an operator sets the clock.
    fn wall_ms(&self) -> TimestampMs;
    /// Time since an arbitrary start; never steps back. Time-outs and durations use it.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn wall_ms(&self) -> TimestampMs {
        // A clock before 1970 reads as 0: every caller compares, none subtracts below it.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn at(now_ms: TimestampMs) -> Self {
        ManualClock { now_ms: AtomicI64::new(now_ms) }
    }

    /// Moves both times forward.
    pub fn advance_ms(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> TimestampMs {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms.load(Ordering::SeqCst).max(0) as u64)
    }
}
