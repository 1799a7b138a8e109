//! How busy the threads are that read sockets and run handlers. Kafka has two pools for that, each with its series; here one
//! set of threads does both, so that both series show the same.

use std::sync::Arc;
use std::time::Duration;

use base::Clock;

use super::family::{Families, Source};
use super::window::Window;

/// Time that the threads have worked since the start, all together, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerTimes {
    /// The time.
    pub busy: Duration,
    /// The number.
    pub workers: usize,
}

/// The series of the threads.
pub struct ThreadSource {
    read: Box<dyn Fn() -> WorkerTimes + Send + Sync>,
    clock: Arc<dyn Clock>,
    window: Window<1>,
}

impl ThreadSource {
    /// Reads the times with `read`.
    pub fn new(clock: Arc<dyn Clock>, read: impl Fn() -> WorkerTimes + Send + Sync + 'static) -> ThreadSource {
        let window = Window::new(clock.monotonic(), [read().busy.as_secs_f64()]);
        ThreadSource { read: Box::new(read), clock, window }
    }

    /// Share of the time of the last minutes, 0 to 1, in which the threads had nothing to do.
    fn idle(&self) -> f64 {
        let WorkerTimes { busy, workers } = (self.read)();
        let busy = self.window.growth(self.clock.monotonic(), [busy.as_secs_f64()]).per_second(0);
        (1.0 - busy / workers.max(1) as f64).clamp(0.0, 1.0)
    }
}

impl Source for ThreadSource {
    fn collect(&self, families: &mut Families) {
        let idle = self.idle();
        for name in [
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        ] {
            families.gauge(name, "Share of time, 0 to 1, that the threads were idle").row(&[], idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ManualClock;
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn idle_is_what_all_threads_together_did_not_work() {
        let clock = Arc::new(ManualClock::at(0));
        let busy = Arc::new(Mutex::new(Duration::from_secs(3)));
        let read = busy.clone();
        let source = ThreadSource::new(clock.clone(), move || WorkerTimes { busy: *read.lock(), workers: 2 });
        assert_eq!(source.idle(), 1.0);
        clock.advance_ms(10_000);
        *busy.lock() += Duration::from_secs(5);
        assert_eq!(source.idle(), 0.75);
        *busy.lock() += Duration::from_secs(500);
        assert_eq!(source.idle(), 0.0);
    }
}
