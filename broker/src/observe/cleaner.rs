//! Compaction as an operator sees it.

use super::family::{Families, Source};

/// Compaction of this node, as its owner published it last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CleanerView {
    /// Largest share of the offset map that was filled, of the last cleanings; 0 to 1.
    pub map_filled_max: f64,
    /// Bytes that the last cleanings wrote, over those that they read.
    pub recopied: f64,
    /// Longest of the last cleanings, in seconds.
    pub clean_seconds_max: f64,
    /// Time by which the oldest record that waits is past `max.compaction.lag.ms`, in seconds.
    pub compaction_delay_seconds_max: f64,
    /// Share of bytes that wait in the dirtiest log; 0 to 1.
    pub dirty_max: f64,
    /// Milliseconds since logs were looked through last.
    pub since_last_run_ms: i64,
    /// Each log directory, and what of it cannot be cleaned.
    pub directories: Vec<UncleanableView>,
}

/// What of a log directory cannot be cleaned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UncleanableView {
    /// The directory.
    pub directory: String,
    /// Number of partitions.
    pub partitions: usize,
    /// Their bytes that wait to be cleaned.
    pub bytes: u64,
}

/// The series of compaction.
pub struct CleanerSource {
    /// What was published last.
    pub read: Box<dyn Fn() -> CleanerView + Send + Sync>,
}

impl Source for CleanerSource {
    fn collect(&self, families: &mut Families) {
        let view = (self.read)();
        let percent = |share: f64| (100.0 * share).floor();
        let mut gauge = |name, help, value| {
            families.gauge(name, help).row(&[], value);
        };
        gauge(
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            "Largest part of the offset map that the last cleanings filled",
            percent(view.map_filled_max),
        );
        gauge(
            "kafka_log_logcleaner_cleaner_recopy_percent",
            "Bytes that the last cleanings wrote, of those that they read",
            percent(view.recopied),
        );
        gauge(
            "kafka_log_logcleaner_max_clean_time_secs",
            "Longest of the last cleanings, in seconds",
            view.clean_seconds_max.floor(),
        );
        gauge(
            "kafka_log_logcleaner_max_compaction_delay_secs",
            "Seconds by which a record waits longer for compaction than max.compaction.lag.ms",
            view.compaction_delay_seconds_max.floor(),
        );
        // A cleaning that breaks off ends alone, and its log is marked uncleanable.
        gauge("kafka_log_logcleaner_deadthreadcount", "Cleaners that ended by a fault", 0.0);
        gauge(
            "kafka_log_logcleanermanager_max_dirty_percent",
            "Part of the dirtiest log that waits for compaction",
            percent(view.dirty_max),
        );
        gauge(
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            "Milliseconds since logs were looked through last",
            view.since_last_run_ms as f64,
        );
        for directory in &view.directories {
            let labels = [("logDirectory", &*directory.directory)];
            families
                .gauge("kafka_log_logcleanermanager_uncleanable_partitions_count", "Partitions that compaction gave up")
                .row(&labels, directory.partitions as f64);
            families
                .gauge("kafka_log_logcleanermanager_uncleanable_bytes", "Bytes that wait in such partitions")
                .row(&labels, directory.bytes as f64);
        }
    }
}
