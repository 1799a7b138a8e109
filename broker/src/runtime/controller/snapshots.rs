//! When a snapshot of the metadata is due (Kafka: SnapshotGenerator). Pure: bytes and times come in.

use std::time::Duration;

/// When snapshots are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRule {
    /// `metadata.log.max.record.bytes.between.snapshots`: bytes of applied batches, their headers included.
    pub record_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`; 0 for never by time.
    pub interval_ms: u64,
}

/// What happened since the last snapshot was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinceSnapshot {
    /// Bytes of the batches that were applied.
    pub bytes: u64,
    /// Time that passed.
    pub time: Duration,
}

impl SnapshotRule {
    /// Whether a snapshot is due. What has not changed needs no new one, however much time passes.
    pub fn is_due(&self, since: SinceSnapshot) -> bool {
        let by_time = self.interval_ms > 0 && since.time >= Duration::from_millis(self.interval_ms);
        since.bytes > 0 && (since.bytes >= self.record_bytes || by_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_due(record_bytes: u64, interval_ms: u64, bytes: u64, time_ms: u64) -> bool {
        let since = SinceSnapshot { bytes, time: Duration::from_millis(time_ms) };
        SnapshotRule { record_bytes, interval_ms }.is_due(since)
    }

    #[test]
    fn a_snapshot_is_due_from_the_last_byte_of_the_limit_on() {
        assert!(!is_due(3_000, 0, 2_999, 0));
        assert!(is_due(3_000, 0, 3_000, 0));
    }

    #[test]
    fn a_snapshot_is_due_after_the_interval_unless_it_is_zero() {
        assert!(!is_due(3_000, 500, 1, 499));
        assert!(is_due(3_000, 500, 1, 500));
        assert!(!is_due(3_000, 0, 1, u64::MAX));
    }

    #[test]
    fn what_has_not_changed_needs_no_snapshot() {
        assert!(!is_due(3_000, 500, 0, 1_000_000));
        assert!(!is_due(0, 500, 0, 1_000_000));
    }
}
