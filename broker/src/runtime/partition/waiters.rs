//! Readers that wait for a partition to change. A partition keeps a short list of them; an append with nobody waiting
//! costs one atomic load.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// One waiting request; it may wait on many partitions.
pub struct Waiter {
    changed: Arc<Notify>,
}

impl Waiter {
    /// A waiter that waits on nothing yet.
    pub fn new() -> Self {
        Waiter { changed: Arc::new(Notify::new()) }
    }

    /// Returns when one of the partitions it was added to has changed since. It has to be added again before the next
    /// wait.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

/// The waiters of one partition.
#[derive(Default)]
pub(super) struct Waiters {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<Notify>>>,
}

impl Waiters {
    /// Wakes `waiter` at the next change.
    pub fn add(&self, waiter: &Waiter) {
        let mut list = self.list.lock();
        // Waiters that gave up are only named here any more; dropping them as new ones come keeps the list short on a
        // partition that never changes.
        list.retain(|waiting| Arc::strong_count(waiting) > 1);
        list.push(waiter.changed.clone());
        // The waiter looks at the log once more after this, and the writer publishes before it looks here: with both
        // sequentially consistent one of them sees the other.
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Wakes all, and forgets them.
    pub fn wake(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let woken = {
            let mut list = self.list.lock();
            self.count.store(0, Ordering::SeqCst);
            std::mem::take(&mut *list)
        };
        for waiting in woken {
            waiting.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_between_adding_and_waiting_is_not_missed() {
        let waiters = Waiters::default();
        let waiter = Waiter::new();
        waiters.add(&waiter);
        waiters.wake();
        waiter.changed().await;
    }

    #[test]
    fn waiters_that_gave_up_are_forgotten() {
        let waiters = Waiters::default();
        for _ in 0..100 {
            waiters.add(&Waiter::new());
        }
        assert!(waiters.list.lock().len() <= 2);
    }
}
