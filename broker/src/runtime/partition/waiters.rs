//! Readers that hear of changes of a partition: requests that wait once, and fetch sessions that hear of every change as
//! long as they live. A partition keeps a short list of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Weak};

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

/// Which slots of a reader of many partitions changed, each once, in the order of the changes.
#[derive(Default)]
pub struct Ready {
    slots: Mutex<VecDeque<u32>>,
    changed: Notify,
}

impl Ready {
    /// Takes all slots.
    pub fn take(&self) -> VecDeque<u32> {
        std::mem::take(&mut *self.slots.lock())
    }

    /// Returns when there was a change since the last return.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Puts slots back before all others. Nobody may have unmarked them since they were taken.
    pub fn put_first(&self, slots: impl DoubleEndedIterator<Item = u32>) {
        let mut ready = self.slots.lock();
        slots.rev().for_each(|slot| ready.push_front(slot));
    }
}

/// The tie between one partition and a slot of a reader; it ends when the reader drops it.
pub struct Subscription {
    slot: u32,
    marked: AtomicBool,
    ready: Arc<Ready>,
}

impl Subscription {
    /// A tie to no partition yet.
    pub fn new(slot: u32, ready: Arc<Ready>) -> Arc<Self> {
        Arc::new(Subscription { slot, marked: AtomicBool::new(false), ready })
    }

    /// Says that the slot changed.
    pub fn mark(&self) {
        if !self.marked.swap(true, Ordering::SeqCst) {
            self.ready.slots.lock().push_back(self.slot);
            self.ready.changed.notify_one();
        }
    }

    /// To be called after the slot was taken and before its partition is looked at: a later change marks it again.
    pub fn unmark(&self) {
        self.marked.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

/// Who hears of one partition's changes.
#[derive(Default)]
struct Listening {
    once: Vec<Arc<Notify>>,
    always: Vec<Weak<Subscription>>,
}

/// The readers of one partition.
#[derive(Default)]
pub(super) struct Waiters {
    count: AtomicUsize,
    listening: Mutex<Listening>,
}

impl Waiters {
    /// Wakes `waiter` at the next change.
    pub fn add(&self, waiter: &Waiter) {
        self.change(|listening| {
            // Waiters that gave up are only named here any more; dropping them as new ones come keeps the list short
            // on a partition that never changes.
            listening.once.retain(|waiting| Arc::strong_count(waiting) > 1);
            listening.once.push(waiter.changed.clone());
        });
    }

    /// Marks `subscription` at every change.
    pub fn subscribe(&self, subscription: &Arc<Subscription>) {
        self.change(|listening| {
            listening.always.retain(|one| one.strong_count() > 0);
            listening.always.push(Arc::downgrade(subscription));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Listening)) {
        let mut listening = self.listening.lock();
        change(&mut listening);
        // The reader looks at the log once more after this, and the writer publishes before it looks here: with both
        // sequentially consistent one of them sees the other.
        self.count.store(listening.once.len() + listening.always.len(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Wakes and marks all.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let woken = {
            let mut listening = self.listening.lock();
            listening.always.retain(|subscription| subscription.upgrade().inspect(|one| one.mark()).is_some());
            self.count.store(listening.always.len(), Ordering::SeqCst);
            std::mem::take(&mut listening.once)
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
        assert!(waiters.listening.lock().once.len() <= 2);
    }

    #[tokio::test]
    async fn a_slot_is_named_once_until_it_was_taken() {
        let (waiters, ready) = (Waiters::default(), Arc::new(Ready::default()));
        let (one, two) = (Subscription::new(1, ready.clone()), Subscription::new(2, ready.clone()));
        waiters.subscribe(&two);
        waiters.wake();
        waiters.subscribe(&one);
        waiters.wake();
        ready.changed().await;
        assert_eq!(ready.take(), [2, 1]);
        one.unmark();
        waiters.wake();
        assert_eq!(ready.take(), [1]);
        waiters.wake();
        ready.put_first([1].into_iter());
        assert_eq!(ready.take(), [1]);
        drop(one);
        waiters.wake();
        assert_eq!(waiters.listening.lock().always.len(), 1);
    }
}
