//! A Fetch within a session: looks at the partitions of which the session has heard, waits for more, and tells the news.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::Context;
use super::fetch_read::{Limits, Read, read_partition};
use crate::observe::Wait;
use crate::runtime::fetch_sessions::{Session, Taken};

/// What was read, by slot of the session.
#[derive(Default)]
struct Reads {
    by_slot: IndexMap<u32, Read>,
    bytes: usize,
}

impl Reads {
    fn put(&mut self, slot: u32, read: Read) {
        self.bytes += read.records.len();
        if let Some(before) = self.by_slot.insert(slot, read) {
            self.bytes -= before.records.len();
        }
    }

    fn is_enough(&self, session: &Session, limits: &Limits) -> bool {
        self.bytes as u64 >= limits.min_bytes
            || self.by_slot.values().any(Read::is_urgent)
            || self.by_slot.values().filter(|read| read.is_unknown()).count() >= session.partition_count()
    }

    /// Looks at every slot that may have news, until the answer is full.
    async fn look(&mut self, ctx: &Context, session: &Session, taken: &mut Taken, limits: &Limits) {
        while self.bytes < limits.max_bytes.max(1)
            && let Some((slot, wanted)) = taken.next_slot()
        {
            // What was read of it before is replaced.
            let others = self.bytes - self.by_slot.get(&slot).map_or(0, |read| read.records.len());
            let left = limits.max_bytes.saturating_sub(others);
            let subscribe = |partition: &_| session.subscribe(slot, partition);
            let read = read_partition(ctx, &wanted, limits, left, others == 0, subscribe).await;
            self.put(slot, read);
        }
    }

    /// Looks again as there are changes, until there is enough or the time is over.
    async fn wait(&mut self, ctx: &Context, session: &Session, taken: &mut Taken, limits: &Limits) {
        let _waiting = ctx.node.metrics.wait(Wait::Fetch);
        let deadline = tokio::time::Instant::now() + limits.max_wait;
        let mut waits = true;
        while waits && !self.is_enough(session, limits) {
            waits = tokio::time::timeout_at(deadline, session.changed()).await.is_ok();
            taken.take_more();
            if !waits || self.may_be_enough(taken, limits) {
                self.look(ctx, session, taken, limits).await;
            }
        }
    }

    /// Whether another look would give enough. Partitions that were read already are asked how much they hold, so that
    /// a reader that wants much at once does not read it again with every append.
    fn may_be_enough(&self, taken: &Taken, limits: &Limits) -> bool {
        if taken.waiting().any(|slot| self.by_slot.get(slot).is_none_or(Read::is_closed)) {
            return true;
        }
        let available: u64 = self.by_slot.values().map(|read| read.available(limits.bound)).sum();
        available >= limits.min_bytes.max(1)
    }
}

/// Reads until there is what the client wants at least, or its time is over. Returns what is news to it, and how long it
/// has waited.
pub async fn read_news(ctx: &Context, session: &Arc<Session>, limits: &Limits) -> (Vec<Read>, Duration) {
    let mut taken = session.take();
    let mut reads = Reads::default();
    let mut waited = Duration::ZERO;
    reads.look(ctx, session, &mut taken, limits).await;
    if !reads.is_enough(session, limits) && !limits.max_wait.is_zero() {
        let begun = ctx.node.clock.monotonic();
        reads.wait(ctx, session, &mut taken, limits).await;
        waited = ctx.node.clock.monotonic().saturating_sub(begun);
    }
    let is_news = |(slot, read): (u32, Read)| {
        let has_records = !read.records.is_empty();
        let news = session.settle(
            slot,
            &read.told(),
            has_records,
            has_records || read.partition.is_none() || read.is_urgent(),
        );
        (news || read.diverging.is_some()).then_some(read)
    };
    let news = reads.by_slot.into_iter().filter_map(is_news).collect();
    taken.settled();
    (news, waited)
}
