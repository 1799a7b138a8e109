//! Who leads a partition when a broker goes or comes back (Kafka: PartitionChangeBuilder, in part): a leader is in sync
//! and active, or there is none. The order of preference is that of the assignment.

use base::{NodeId, PartitionIndex};

use crate::image::{MetadataImage, PartitionImage};
use crate::records::{PartitionChangeRecord, Record};

/// No broker leads.
const NO_LEADER: NodeId = NodeId(-1);

/// Changes for the partitions that a broker led, now that it may not lead. Its place among the in-sync replicas goes to
/// the others; the last one keeps it, because nobody else has the records.
pub fn broker_gone(image: &MetadataImage, gone: NodeId) -> Vec<Record> {
    changes(image, |partition| {
        if !partition.isr().contains(&gone) && partition.leader != gone {
            return None;
        }
        let others: Vec<NodeId> = partition.isr().iter().copied().filter(|replica| *replica != gone).collect();
        let mut change = PartitionChangeRecord::default();
        if partition.leader == gone {
            change.leader = first_active(image, partition, &others).unwrap_or(NO_LEADER);
        }
        if !others.is_empty() && others.len() < partition.isr().len() {
            change.isr = Some(others);
        }
        (change != PartitionChangeRecord::default()).then_some(change)
    })
}

/// Changes for the partitions that wait for a leader, now that a broker may lead.
pub fn broker_back(image: &MetadataImage, back: NodeId) -> Vec<Record> {
    changes(image, |partition| {
        let may_lead = partition.leader == NO_LEADER && partition.isr().contains(&back);
        may_lead.then(|| PartitionChangeRecord { leader: back, ..PartitionChangeRecord::default() })
    })
}

fn first_active(image: &MetadataImage, partition: &PartitionImage, among: &[NodeId]) -> Option<NodeId> {
    partition.replicas().iter().copied().find(|replica| among.contains(replica) && image.is_active(*replica))
}

fn changes(image: &MetadataImage, change: impl Fn(&PartitionImage) -> Option<PartitionChangeRecord>) -> Vec<Record> {
    let mut records = Vec::new();
    for topic in image.topics() {
        for (index, partition) in topic.partitions().iter().enumerate() {
            if let Some(change) = change(partition) {
                let named =
                    PartitionChangeRecord { partition_id: index as PartitionIndex, topic_id: topic.id, ..change };
                records.push(named.into());
            }
        }
    }
    records
}
