//! Series of the groups whose coordinator this node is, under the names of kafka_exporter. Lag is on by default: it is what
//! operators ask for first. A partition without committed offset has no series, because -1 would spoil every sum.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Clock, Offset, PartitionIndex, TimestampMs};

use super::cluster::{Granularity, ReadPartitions};
use super::family::{Families, Source};
use super::waits::PURGATORY;

/// What a scrape reads of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// Id of the group.
    pub group: Arc<str>,
    /// Members at this moment.
    pub members: usize,
    /// Committed offsets.
    pub offsets: Vec<CommittedView>,
}

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedView {
    /// Topic.
    pub topic: Arc<str>,
    /// Partition.
    pub partition: PartitionIndex,
    /// The next offset that the group reads.
    pub offset: Offset,
    /// Time of the batch that the group reads next, in wall-clock milliseconds; none when there is none to read, or when
    /// it cannot be read.
    pub unread_since_ms: Option<TimestampMs>,
}

/// Reads the views of the groups that this node coordinates.
pub type ReadGroups = Box<dyn Fn() -> Vec<GroupView> + Send + Sync>;

/// The series of groups.
pub struct GroupSource {
    /// The groups that this node coordinates.
    pub groups: ReadGroups,
    /// The partitions that this node holds; lag is known for those.
    pub partitions: ReadPartitions,
    /// Finest series that are shown.
    pub granularity: Granularity,
    /// What the ages of records are counted to.
    pub clock: Arc<dyn Clock>,
}

impl Source for GroupSource {
    fn collect(&self, families: &mut Families) {
        let ends: HashMap<_, _> =
            (self.partitions)().into_iter().map(|view| ((view.topic, view.partition), view.high_watermark)).collect();
        let now_ms = self.clock.wall_ms();
        let groups = (self.groups)();
        let members: usize = groups.iter().map(|group| group.members).sum();
        families.gauge(PURGATORY.0, PURGATORY.1).row(&[("delayedOperation", "Heartbeat")], members as f64);
        for group in groups {
            families
                .gauge("kafka_consumergroup_members", "Members of the group")
                .row(&[("consumergroup", &group.group)], group.members as f64);
            if self.granularity >= Granularity::Topic {
                collect_offsets(&group, &ends, now_ms, self.granularity, families);
            }
        }
    }
}

/// Sums over the partitions of one topic.
#[derive(Default)]
struct Sums {
    offset: Offset,
    lag: Option<Offset>,
}

/// Nothing unread is no lag; an unread record whose time is not known gives none.
fn lag_seconds(lag: Offset, unread_since_ms: Option<TimestampMs>, now_ms: TimestampMs) -> Option<f64> {
    if lag == 0 {
        return Some(0.0);
    }
    // A producer's clock may be ahead of this one.
    unread_since_ms.map(|since| now_ms.saturating_sub(since).max(0) as f64 / 1e3)
}

fn collect_offsets(
    group: &GroupView,
    ends: &HashMap<(Arc<str>, PartitionIndex), Offset>,
    now_ms: TimestampMs,
    granularity: Granularity,
    families: &mut Families,
) {
    let mut sums: HashMap<&str, Sums> = HashMap::new();
    for committed in &group.offsets {
        // A topic that was cut below the committed offset has nothing left to read, not less than nothing.
        let lag = ends
            .get(&(committed.topic.clone(), committed.partition))
            .map(|end| end.saturating_sub(committed.offset).max(0));
        let sum = sums.entry(&committed.topic).or_default();
        sum.offset = sum.offset.saturating_add(committed.offset);
        if let Some(lag) = lag {
            sum.lag = Some(sum.lag.unwrap_or(0).saturating_add(lag));
        }
        if granularity == Granularity::Partition {
            let partition = committed.partition.to_string();
            let labels = [("consumergroup", &*group.group), ("topic", &*committed.topic), ("partition", &*partition)];
            families
                .gauge("kafka_consumergroup_current_offset", "Committed offset")
                .row(&labels, committed.offset as f64);
            if let Some(lag) = lag {
                families.gauge("kafka_consumergroup_lag", "Records behind the end").row(&labels, lag as f64);
            }
            if let Some(seconds) = lag.and_then(|lag| lag_seconds(lag, committed.unread_since_ms, now_ms)) {
                families
                    .gauge("monedula_consumer_group_lag_seconds", "Age of the oldest batch that the group has not read")
                    .row(&labels, seconds);
            }
        }
    }
    for (topic, sum) in sums {
        let labels = [("consumergroup", &*group.group), ("topic", topic)];
        families
            .gauge("kafka_consumergroup_current_offset_sum", "Committed offsets of the topic, summed")
            .row(&labels, sum.offset as f64);
        if let Some(lag) = sum.lag {
            families
                .gauge("kafka_consumergroup_lag_sum", "Records of the topic behind the end, summed")
                .row(&labels, lag as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_in_seconds_is_the_age_of_what_is_unread() {
        assert_eq!(lag_seconds(0, None, 9_000), Some(0.0));
        assert_eq!(lag_seconds(0, Some(1_000), 9_000), Some(0.0));
        assert_eq!(lag_seconds(5, Some(1_500), 9_000), Some(7.5));
        assert_eq!(lag_seconds(5, Some(9_100), 9_000), Some(0.0));
        assert_eq!(lag_seconds(5, None, 9_000), None);
    }
}
