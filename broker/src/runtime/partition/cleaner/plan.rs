//! Which logs are worth a look, and which is cleaned next: the rules of the cleaner without its waits (Kafka:
//! LogCleanerManager.grabFilthiestCompactedLog). A log that has not changed since the last look costs a comparison.

use std::collections::HashMap;
use std::hash::Hash;

use base::Offset;
use partition_log::{Cleanable, HeldBack};

/// What of a log decides what can be cleaned of it, its settings aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub start_offset: Offset,
    pub end_offset: Offset,
}

/// What the passing of time alone does to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timed {
    /// Old segments go (`cleanup.policy` has `delete` too).
    pub retention: bool,
    /// Records grow older than `min.compaction.lag.ms` and `max.compaction.lag.ms`.
    pub compaction_lag: bool,
    /// `max.compaction.lag.ms` is set.
    pub compaction_lag_max: bool,
}

#[derive(Debug)]
struct Known {
    /// How the log was when it was looked at; `None` to look again.
    seen: Option<Mark>,
    cleanable: Option<Cleanable>,
    running: bool,
    /// The log cannot be cleaned until someone looks into it.
    uncleanable: bool,
}

/// The compacted logs of this node.
#[derive(Debug)]
pub(super) struct Plan<K> {
    logs: HashMap<K, Known>,
}

impl<K: Copy + Eq + Hash> Plan<K> {
    pub fn new() -> Self {
        Plan { logs: HashMap::new() }
    }

    /// Whether a compacted log is worth a look. Makes it known.
    pub fn wants_look(&mut self, key: K, mark: Mark, timed: Timed) -> bool {
        let fresh = || Known { seen: None, cleanable: None, running: false, uncleanable: false };
        let known = self.logs.entry(key).or_insert_with(fresh);
        if known.running {
            return false;
        }
        let due = known.cleanable.is_some_and(|cleanable| {
            let waits = cleanable.held_back_by == HeldBack::CompactionLag;
            timed.compaction_lag
                && (waits || timed.compaction_lag_max && cleanable.first_dirty_offset < mark.end_offset)
        });
        timed.retention || due || known.seen != Some(mark)
    }

    /// Notes what a look found; nothing when the log could not be looked at.
    pub fn looked(&mut self, key: K, mark: Mark, cleanable: Option<Cleanable>) {
        if let Some(known) = self.logs.get_mut(&key) {
            known.seen = Some(mark);
            known.cleanable = cleanable;
        }
    }

    /// Forgets logs that are no longer here or no longer compacted; one that is being cleaned is forgotten after that.
    pub fn retain(&mut self, mut is_compacted: impl FnMut(&K) -> bool) {
        self.logs.retain(|key, known| known.running || is_compacted(key));
    }

    /// The log to clean next, which counts as being cleaned from now on: one whose records wait longer than
    /// `max.compaction.lag.ms` before all others, then the dirtiest.
    pub fn take_next(&mut self) -> Option<(K, Cleanable)> {
        let ready = self.logs.iter_mut().filter(|(_, known)| !known.running && !known.uncleanable);
        let due = ready.filter_map(|(key, known)| Some((*key, known.cleanable.filter(|c| c.is_due)?, known)));
        let (key, cleanable, known) =
            due.max_by(|(_, a, _), (_, b, _)| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal))?;
        known.running = true;
        Some((key, cleanable))
    }

    /// A cleaning has ended; the log is worth a look again. Without success it is not due before that.
    pub fn ended(&mut self, key: K) {
        if let Some(known) = self.logs.get_mut(&key) {
            *known = Known { seen: None, cleanable: None, running: false, uncleanable: known.uncleanable };
        }
    }

    /// The log is not cleaned any more, as long as it is known here.
    pub fn set_uncleanable(&mut self, key: K) {
        if let Some(known) = self.logs.get_mut(&key) {
            known.uncleanable = true;
        }
    }

    /// Every log is worth a look, because settings of logs have changed.
    pub fn look_again(&mut self) {
        self.logs.values_mut().for_each(|known| known.seen = None);
    }

    /// Gives every log another chance, because the settings of the cleaner have changed.
    pub fn reset_uncleanable(&mut self) {
        self.logs.values_mut().for_each(|known| known.uncleanable = false);
    }

    /// Logs that are not cleaned any more, with the bytes that wait in them.
    pub fn uncleanable(&self) -> impl Iterator<Item = (K, u64)> {
        let marked = self.logs.iter().filter(|(_, known)| known.uncleanable);
        marked.map(|(key, known)| (*key, known.cleanable.map_or(0, |cleanable| cleanable.cleanable_bytes)))
    }

    /// Share of bytes that wait in the dirtiest log, 0 to 1.
    pub fn dirtiest_ratio(&self) -> f64 {
        self.of_cleanable(|cleanable| cleanable.dirty_ratio())
    }

    /// Time by which the oldest record that waits is past `max.compaction.lag.ms`.
    pub fn compaction_delay_max_ms(&self) -> i64 {
        self.of_cleanable(|cleanable| cleanable.max_compaction_delay_ms as f64) as i64
    }

    fn of_cleanable(&self, value: impl Fn(&Cleanable) -> f64) -> f64 {
        let logs = self.logs.values().filter(|known| !known.uncleanable);
        logs.filter_map(|known| known.cleanable.as_ref()).map(value).fold(0.0, f64::max)
    }
}

fn order(cleanable: &Cleanable) -> (bool, f64) {
    (cleanable.max_compaction_delay_ms > 0, cleanable.dirty_ratio())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(end_offset: Offset) -> Mark {
        Mark { start_offset: 0, end_offset }
    }

    const UNTIMED: Timed = Timed { retention: false, compaction_lag: true, compaction_lag_max: false };

    fn cleanable(dirty_bytes: u64, delay_ms: i64) -> Cleanable {
        Cleanable {
            first_dirty_offset: 3,
            first_uncleanable_offset: 8,
            held_back_by: HeldBack::ActiveSegment,
            clean_bytes: 100,
            cleanable_bytes: dirty_bytes,
            max_compaction_delay_ms: delay_ms,
            checkpoint_is_invalid: false,
            is_due: true,
        }
    }

    /// A plan in which each log was looked at.
    fn plan(logs: &[(i32, Cleanable)]) -> Plan<i32> {
        let mut plan = Plan::new();
        for (key, cleanable) in logs {
            assert!(plan.wants_look(*key, mark(9), UNTIMED));
            plan.looked(*key, mark(9), Some(*cleanable));
        }
        plan
    }

    #[test]
    fn late_logs_go_first_then_the_dirtiest_and_none_twice_at_a_time() {
        let idle = Cleanable { is_due: false, ..cleanable(9_000, 0) };
        let mut plan = plan(&[(1, cleanable(50, 0)), (2, cleanable(400, 0)), (3, cleanable(10, 5)), (4, idle)]);
        let order: Vec<i32> = std::iter::from_fn(|| plan.take_next()).map(|(key, _)| key).collect();
        assert_eq!(order, [3, 2, 1]);
        plan.ended(2);
        assert!(plan.take_next().is_none(), "not before another look");
        assert!(plan.wants_look(2, mark(9), UNTIMED));
        assert!(!plan.wants_look(1, mark(10), UNTIMED), "it is being cleaned");
    }

    #[test]
    fn a_log_is_looked_at_again_when_it_or_its_settings_changed() {
        let mut plan = plan(&[(1, cleanable(50, 0))]);
        assert!(!plan.wants_look(1, mark(9), UNTIMED));
        assert!(plan.wants_look(1, mark(10), UNTIMED));
        assert!(plan.wants_look(1, Mark { start_offset: 1, ..mark(9) }, UNTIMED));
        plan.look_again();
        assert!(plan.wants_look(1, mark(9), UNTIMED));
    }

    #[test]
    fn an_idle_log_is_looked_at_again_where_time_alone_changes_something() {
        let held_back = Cleanable { held_back_by: HeldBack::CompactionLag, ..cleanable(0, 0) };
        let clean = Cleanable { first_dirty_offset: 9, ..cleanable(0, 0) };
        let mut plan = plan(&[(1, cleanable(50, 0)), (2, held_back), (3, clean)]);
        let lag = Timed { compaction_lag_max: true, ..UNTIMED };
        assert!(plan.wants_look(1, mark(9), lag));
        assert!(plan.wants_look(1, mark(9), Timed { retention: true, ..UNTIMED }));
        assert!(plan.wants_look(2, mark(9), UNTIMED));
        assert!(!plan.wants_look(3, mark(9), lag), "everything is clean");
        assert!(!plan.wants_look(2, mark(9), Timed { compaction_lag: false, ..UNTIMED }));
    }

    #[test]
    fn an_uncleanable_log_waits_for_other_settings_and_is_counted() {
        let mut plan = plan(&[(1, cleanable(50, 0))]);
        assert!(plan.take_next().is_some());
        plan.set_uncleanable(1);
        plan.ended(1);
        plan.looked(1, mark(9), Some(cleanable(70, 0)));
        assert!(plan.take_next().is_none());
        assert_eq!(plan.uncleanable().collect::<Vec<_>>(), [(1, 70)]);
        plan.reset_uncleanable();
        assert_eq!(plan.take_next().map(|(key, _)| key), Some(1));
    }

    #[test]
    fn a_log_that_is_no_longer_compacted_is_forgotten_once_its_cleaning_has_ended() {
        let mut plan = plan(&[(1, cleanable(50, 0))]);
        assert!(plan.take_next().is_some());
        plan.retain(|_| false);
        assert!(!plan.wants_look(1, mark(9), UNTIMED), "still being cleaned");
        plan.ended(1);
        plan.retain(|_| false);
        assert_eq!(plan.logs.len(), 0);
    }
}
