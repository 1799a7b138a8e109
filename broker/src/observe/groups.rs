//! Series of the groups whose coordinator this node is, under the names of kafka_exporter. Lag is on by default: it is what
//! operators ask for first. A partition without committed offset has no series, because -1 would spoil every sum.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Offset, PartitionIndex};

use super::cluster::{Granularity, ReadPartitions};
use super::family::{Families, Source};

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
}

impl Source for GroupSource {
    fn collect(&self, families: &mut Families) {
        let ends: HashMap<_, _> =
            (self.partitions)().into_iter().map(|view| ((view.topic, view.partition), view.high_watermark)).collect();
        for group in (self.groups)() {
            families
                .gauge("kafka_consumergroup_members", "Members of the group")
                .row(&[("consumergroup", &group.group)], group.members as f64);
            if self.granularity >= Granularity::Topic {
                collect_offsets(&group, &ends, self.granularity, families);
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

fn collect_offsets(
    group: &GroupView,
    ends: &HashMap<(Arc<str>, PartitionIndex), Offset>,
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
