//! What an operator sees from outside: request metrics, and later the pages that serve them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Clock;

use crate::api::TABLE;

/// Counters of the node.
pub struct Metrics {
    clock: Arc<dyn Clock>,
    requests: Vec<ApiMetrics>,
}

/// Counters of one API.
#[derive(Default)]
struct ApiMetrics {
    begun: AtomicU64,
    answered: AtomicU64,
    total_micros: AtomicU64,
}

impl Metrics {
    /// All counters at zero.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Metrics { clock, requests: TABLE.iter().map(|_| ApiMetrics::default()).collect() })
    }

    /// A request of the API at `index` of the table was read.
    pub fn request_began(self: &Arc<Self>, index: usize, _version: i16, _bytes: usize) -> RequestTimer {
        self.requests[index].begun.fetch_add(1, Ordering::Relaxed);
        let began = self.clock.monotonic();
        RequestTimer { metrics: self.clone(), index, began, handled: began }
    }
}

/// Measures one request from its last byte read to its answer written.
pub struct RequestTimer {
    metrics: Arc<Metrics>,
    index: usize,
    began: Duration,
    handled: Duration,
}

impl RequestTimer {
    /// The answer is ready.
    pub fn handled(&mut self) {
        self.handled = self.metrics.clock.monotonic();
    }

    /// The answer was handed to the socket.
    pub fn sent(self) {
        let now = self.metrics.clock.monotonic();
        let counters = &self.metrics.requests[self.index];
        counters.answered.fetch_add(1, Ordering::Relaxed);
        counters.total_micros.fetch_add(now.saturating_sub(self.began).as_micros() as u64, Ordering::Relaxed);
    }
}
