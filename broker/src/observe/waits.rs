//! Requests that wait: for their turn on their connection (Kafka: RequestChannel), or in a handler for something that
//! another client does (Kafka: DelayedOperationPurgatory).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::family::{Families, Source};

/// What a handler may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Records, as a Fetch does.
    Fetch,
    /// The other members of a group, as JoinGroup and SyncGroup do.
    Rebalance,
}

/// Labels of the waits, in their order.
const WAITS: [(Wait, &str); 2] = [(Wait::Fetch, "Fetch"), (Wait::Rebalance, "Rebalance")];

/// Numbers of requests that wait.
#[derive(Default)]
pub(super) struct Waits {
    in_handlers: [AtomicUsize; WAITS.len()],
    on_connections: AtomicUsize,
}

/// A request that waits in its handler, until this is dropped.
pub struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The requests of one connection that have arrived and have not begun; none any more when this is dropped.
pub struct QueuedRequests {
    waits: Arc<Waits>,
    counted: usize,
}

impl QueuedRequests {
    /// There are so many now. Costs nothing while the number stays the same.
    pub fn set(&mut self, count: usize) {
        if count > self.counted {
            self.waits.on_connections.fetch_add(count - self.counted, Ordering::Relaxed);
        } else if count < self.counted {
            self.waits.on_connections.fetch_sub(self.counted - count, Ordering::Relaxed);
        }
        self.counted = count;
    }
}

impl Drop for QueuedRequests {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Waits {
    pub(super) fn begin(&self, wait: Wait) -> Waiting<'_> {
        let count = &self.in_handlers[wait as usize];
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }

    pub(super) fn queued(self: &Arc<Self>) -> QueuedRequests {
        QueuedRequests { waits: self.clone(), counted: 0 }
    }
}

impl Source for Arc<Waits> {
    fn collect(&self, families: &mut Families) {
        families
            .gauge("kafka_network_requestchannel_requestqueuesize", "Requests read whose turn has not come")
            .row(&[], self.on_connections.load(Ordering::Relaxed) as f64);
        let purgatory = families.gauge(PURGATORY.0, PURGATORY.1);
        for (wait, label) in WAITS {
            let waiting = self.in_handlers[wait as usize].load(Ordering::Relaxed);
            purgatory.row(&[("delayedOperation", label)], waiting as f64);
        }
        // An append is acknowledged when it is in the log: there is no other replica to wait for.
        purgatory.row(&[("delayedOperation", "Produce")], 0.0);
    }
}

/// Name and help of the sizes of purgatories.
pub(super) const PURGATORY: (&str, &str) =
    ("kafka_server_delayedoperationpurgatory_purgatorysize", "Requests, or members of groups, that are waited for");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_until_it_is_over() {
        let waits = Waits::default();
        for (index, (wait, _)) in WAITS.iter().enumerate() {
            let waiting = waits.begin(*wait);
            assert_eq!(waits.in_handlers[index].load(Ordering::Relaxed), 1);
            drop(waiting);
            assert_eq!(waits.in_handlers[index].load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_connection_that_ends_takes_its_queue_with_it() {
        let waits = Arc::new(Waits::default());
        let (mut one, mut other) = (waits.queued(), waits.queued());
        one.set(3);
        other.set(2);
        one.set(1);
        assert_eq!(waits.on_connections.load(Ordering::Relaxed), 3);
        drop(one);
        assert_eq!(waits.on_connections.load(Ordering::Relaxed), 2);
        drop(other);
        assert_eq!(waits.on_connections.load(Ordering::Relaxed), 0);
    }
}
