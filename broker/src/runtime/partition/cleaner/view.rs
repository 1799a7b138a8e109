//! What the cleaner publishes for metrics.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::{Clock, TimestampMs};
use partition_log::CleaningReport;

use super::plan::Plan;
use crate::observe::cleaner::{CleanerView, UncleanableView};
use crate::runtime::partition::live::PartitionKey;

/// A cleaning that has ended.
struct Cleaned {
    map_filled: f64,
    bytes_read: u64,
    bytes_written: u64,
    seconds: f64,
}

#[derive(Default)]
struct Published {
    view: CleanerView,
    looked_at_ms: TimestampMs,
}

/// Where the cleaner writes and scrapes read.
pub(super) struct Board {
    clock: Arc<dyn Clock>,
    directories: Vec<String>,
    /// The last cleanings, as many as may run at a time.
    last: VecDeque<Cleaned>,
    view: CleanerView,
    looked_at_ms: TimestampMs,
    published: Arc<ArcSwap<Published>>,
}

impl Board {
    pub(super) fn new(clock: Arc<dyn Clock>, directories: Vec<String>) -> Self {
        let looked_at_ms = clock.wall_ms();
        let none = |directory: &String| UncleanableView { directory: directory.clone(), ..UncleanableView::default() };
        let view = CleanerView { directories: directories.iter().map(none).collect(), ..CleanerView::default() };
        let board = Board { clock, directories, last: VecDeque::new(), view, looked_at_ms, published: Arc::default() };
        board.publish();
        board
    }

    /// For the source of the series.
    pub(super) fn reader(&self) -> Box<dyn Fn() -> CleanerView + Send + Sync> {
        let (published, clock) = (self.published.clone(), self.clock.clone());
        Box::new(move || {
            let published = published.load();
            let since_last_run_ms = clock.wall_ms().saturating_sub(published.looked_at_ms);
            CleanerView { since_last_run_ms, ..published.view.clone() }
        })
    }

    fn publish(&self) {
        self.published.store(Arc::new(Published { view: self.view.clone(), looked_at_ms: self.looked_at_ms }));
    }

    /// All logs were looked at; `dir_of` is the log directory of one.
    pub(super) fn looked(&mut self, plan: &Plan<PartitionKey>, dir_of: impl Fn(&PartitionKey) -> Option<usize>) {
        self.looked_at_ms = self.clock.wall_ms();
        self.view.dirty_max = plan.dirtiest_ratio();
        self.view.compaction_delay_seconds_max = plan.compaction_delay_max_ms() as f64 / 1000.0;
        let none = |directory: &String| UncleanableView { directory: directory.clone(), ..UncleanableView::default() };
        let mut directories: Vec<UncleanableView> = self.directories.iter().map(none).collect();
        for (key, bytes) in plan.uncleanable() {
            if let Some(directory) = dir_of(&key).and_then(|dir| directories.get_mut(dir)) {
                directory.partitions += 1;
                directory.bytes += bytes;
            }
        }
        self.view.directories = directories;
        self.publish();
    }

    /// A log was cleaned with a map of so many slots.
    pub(super) fn cleaned(&mut self, report: &CleaningReport, map_slots: usize, took: Duration, cleanings_max: usize) {
        self.last.push_back(Cleaned {
            map_filled: report.map_keys as f64 / map_slots.max(1) as f64,
            bytes_read: report.bytes_read,
            bytes_written: report.bytes_written,
            seconds: took.as_secs_f64(),
        });
        while self.last.len() > cleanings_max {
            self.last.pop_front();
        }
        let max = |value: fn(&Cleaned) -> f64| self.last.iter().map(value).fold(0.0, f64::max);
        let sum = |value: fn(&Cleaned) -> u64| self.last.iter().map(value).sum::<u64>();
        self.view.map_filled_max = max(|cleaned| cleaned.map_filled);
        self.view.clean_seconds_max = max(|cleaned| cleaned.seconds);
        self.view.recopied =
            sum(|cleaned| cleaned.bytes_written) as f64 / sum(|cleaned| cleaned.bytes_read).max(1) as f64;
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use base::ManualClock;

    use super::*;

    #[test]
    fn figures_are_those_of_the_last_cleanings_only() {
        let clock = Arc::new(ManualClock::at(1_000));
        let mut board = Board::new(clock.clone(), vec!["data".to_owned()]);
        let read = board.reader();
        let report = |map_keys, bytes_read, bytes_written| CleaningReport {
            map_keys,
            bytes_read,
            bytes_written,
            ..CleaningReport::default()
        };
        board.cleaned(&report(90, 100, 100), 100, Duration::from_secs(9), 2);
        board.cleaned(&report(10, 300, 0), 100, Duration::from_secs(2), 2);
        board.cleaned(&report(20, 100, 100), 100, Duration::from_secs(3), 2);
        clock.advance_ms(500);
        let view = read();
        assert_eq!((view.map_filled_max, view.recopied, view.clean_seconds_max), (0.2, 0.25, 3.0));
        assert_eq!((view.since_last_run_ms, view.directories.len()), (500, 1));
    }
}
