//! Which snapshots stay, and how far the log behind them goes back (Kafka: KafkaRaftLog.maybeClean). Pure: the directory is
//! described, the time comes in. The newest snapshot always stays.

use base::TimestampMs;

use super::SnapshotId;

/// `metadata.max.retention.bytes` and `metadata.max.retention.ms`; none for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Bytes of the log and of all snapshots together.
    pub bytes: Option<u64>,
    /// Age of the last record that a snapshot covers.
    pub ms: Option<i64>,
}

/// A snapshot in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// Where it ends.
    pub id: SnapshotId,
    /// Its size.
    pub bytes: u64,
    /// Time of the last record that it covers; none when its header cannot be read.
    pub last_timestamp_ms: Option<TimestampMs>,
}

impl Retention {
    /// The snapshot before which everything may go next, when there is too much; `kept` is sorted, oldest first. One step:
    /// how much it frees is known afterwards, because segments go as a whole.
    pub fn next_start(&self, kept: &[KeptSnapshot], log_bytes: u64, now_ms: TimestampMs) -> Option<SnapshotId> {
        let [oldest, next, ..] = kept else { return None };
        let bytes = kept.iter().fold(log_bytes, |sum, snapshot| sum.saturating_add(snapshot.bytes));
        let too_large = self.bytes.is_some_and(|most| bytes > most);
        let too_old = match (self.ms, oldest.last_timestamp_ms) {
            (Some(most), Some(timestamp)) => now_ms.saturating_sub(timestamp) > most,
            _ => false,
        };
        (too_large || too_old).then_some(next.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(snapshots: &[(i64, u64, i64)]) -> Vec<KeptSnapshot> {
        let one = |&(end_offset, bytes, timestamp)| KeptSnapshot {
            id: SnapshotId { end_offset, epoch: 1 },
            bytes,
            last_timestamp_ms: Some(timestamp),
        };
        snapshots.iter().map(one).collect()
    }

    fn next_start(retention: Retention, snapshots: &[(i64, u64, i64)], log_bytes: u64, now_ms: i64) -> Option<i64> {
        retention.next_start(&kept(snapshots), log_bytes, now_ms).map(|id| id.end_offset)
    }

    #[test]
    fn the_only_snapshot_stays_however_large_and_old() {
        let retention = Retention { bytes: Some(1), ms: Some(1) };
        assert_eq!(next_start(retention, &[(10, 500, 0)], 1_000, 1_000_000), None);
        assert_eq!(next_start(retention, &[], 1_000, 1_000_000), None);
    }

    #[test]
    fn snapshots_and_log_count_together() {
        let retention = Retention { bytes: Some(600), ms: None };
        assert_eq!(next_start(retention, &[(10, 100, 0), (20, 100, 0)], 400, 0), None);
        assert_eq!(next_start(retention, &[(10, 100, 0), (20, 100, 0)], 401, 0), Some(20));
    }

    #[test]
    fn age_is_that_of_the_oldest_snapshots_last_record() {
        let retention = Retention { bytes: None, ms: Some(100) };
        assert_eq!(next_start(retention, &[(10, 1, 50), (20, 1, 90)], 1, 150), None);
        assert_eq!(next_start(retention, &[(10, 1, 50), (20, 1, 90)], 1, 151), Some(20));
    }

    #[test]
    fn without_limits_and_without_a_readable_time_everything_stays() {
        assert_eq!(next_start(Retention::default(), &[(10, 1, 0), (20, 1, 0)], u64::MAX, i64::MAX), None);
        let unreadable = [(10, None), (20, Some(0))].map(|(end_offset, last_timestamp_ms)| KeptSnapshot {
            id: SnapshotId { end_offset, epoch: 1 },
            bytes: 1,
            last_timestamp_ms,
        });
        assert_eq!(Retention { bytes: None, ms: Some(0) }.next_start(&unreadable, 1, i64::MAX), None);
    }
}
