//! Topics and partitions as the image keeps them: a partition costs one small struct, and what partitions of a topic
//! have in common is stored once.

use std::sync::Arc;

use base::{LeaderEpoch, NodeId, PartitionIndex, TopicId};

use crate::DirectoryId;
use crate::records::{NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord};

/// A topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicImage {
    /// Name.
    pub name: Arc<str>,
    /// Id.
    pub id: TopicId,
    pub(super) partitions: Vec<PartitionImage>,
}

impl TopicImage {
    /// All partitions; the index is the place in the slice.
    pub fn partitions(&self) -> &[PartitionImage] {
        &self.partitions
    }

    /// One partition.
    pub fn partition(&self, index: PartitionIndex) -> Option<&PartitionImage> {
        self.partitions.get(usize::try_from(index).ok()?)
    }
}

/// Which brokers hold a partition, and in what state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaSets {
    /// Assigned brokers, the preferred leader first.
    pub replicas: Vec<NodeId>,
    /// In-sync replicas.
    pub isr: Vec<NodeId>,
    /// Replicas that a reassignment takes away.
    pub removing_replicas: Vec<NodeId>,
    /// Replicas that a reassignment adds.
    pub adding_replicas: Vec<NodeId>,
    /// Replicas out of sync that hold every committed record (KIP-966).
    pub eligible_leader_replicas: Vec<NodeId>,
    /// Members that the eligible replicas had last.
    pub last_known_elr: Vec<NodeId>,
    /// Log directory of each replica, in the order of `replicas`; empty in logs older than 3.7.
    pub directories: Vec<DirectoryId>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionImage {
    /// The leader, or -1.
    pub leader: NodeId,
    /// Rises with every change of leader.
    pub leader_epoch: LeaderEpoch,
    /// Rises with every change of the partition.
    pub partition_epoch: i32,
    /// True while a leader that was elected unclean has not confirmed its log.
    pub leader_recovering: bool,
    sets: Arc<ReplicaSets>,
}

impl PartitionImage {
    /// Which brokers hold the partition.
    pub fn sets(&self) -> &ReplicaSets {
        &self.sets
    }

    /// Assigned brokers, the preferred leader first.
    pub fn replicas(&self) -> &[NodeId] {
        &self.sets.replicas
    }

    /// In-sync replicas.
    pub fn isr(&self) -> &[NodeId] {
        &self.sets.isr
    }

    /// The log directory that a broker was told to use, when it holds the partition and one was assigned.
    pub fn directory_of(&self, broker: NodeId) -> Option<DirectoryId> {
        let place = self.sets.replicas.iter().position(|replica| *replica == broker)?;
        self.sets.directories.get(place).copied()
    }

    pub(super) fn from_record(record: &PartitionRecord, before: Option<&PartitionImage>) -> PartitionImage {
        let sets = ReplicaSets {
            replicas: record.replicas.clone(),
            isr: record.isr.clone(),
            removing_replicas: record.removing_replicas.clone(),
            adding_replicas: record.adding_replicas.clone(),
            eligible_leader_replicas: record.eligible_leader_replicas.clone().unwrap_or_default(),
            last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
            directories: record.directories.clone(),
        };
        PartitionImage {
            leader: record.leader,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
            leader_recovering: record.leader_recovery_state == 1,
            sets: shared(sets, before),
        }
    }

    pub(super) fn apply(&mut self, change: &PartitionChangeRecord) {
        let sets = Arc::make_mut(&mut self.sets);
        let replace = |target: &mut Vec<NodeId>, value: &Option<Vec<NodeId>>| {
            if let Some(value) = value {
                target.clone_from(value);
            }
        };
        replace(&mut sets.isr, &change.isr);
        replace(&mut sets.replicas, &change.replicas);
        replace(&mut sets.removing_replicas, &change.removing_replicas);
        replace(&mut sets.adding_replicas, &change.adding_replicas);
        replace(&mut sets.eligible_leader_replicas, &change.eligible_leader_replicas);
        replace(&mut sets.last_known_elr, &change.last_known_elr);
        if let Some(directories) = &change.directories {
            sets.directories.clone_from(directories);
        }
        if change.leader != NO_LEADER_CHANGE {
            self.leader = change.leader;
            self.leader_epoch += 1;
        }
        if change.leader_recovery_state >= 0 {
            self.leader_recovering = change.leader_recovery_state == 1;
        }
        self.partition_epoch += 1;
    }

    pub(super) fn clear_elr(&mut self) -> bool {
        let changed = !self.sets.eligible_leader_replicas.is_empty() || !self.sets.last_known_elr.is_empty();
        if changed {
            let sets = Arc::make_mut(&mut self.sets);
            sets.eligible_leader_replicas.clear();
            sets.last_known_elr.clear();
            self.partition_epoch += 1;
        }
        changed
    }

    /// The record that a snapshot holds for the partition.
    pub(super) fn to_record(&self, topic_id: TopicId, partition_id: PartitionIndex) -> PartitionRecord {
        let sets = self.sets();
        let unless_empty = |set: &[NodeId]| (!set.is_empty()).then(|| set.to_vec());
        PartitionRecord {
            partition_id,
            topic_id,
            replicas: sets.replicas.clone(),
            isr: sets.isr.clone(),
            removing_replicas: sets.removing_replicas.clone(),
            adding_replicas: sets.adding_replicas.clone(),
            leader: self.leader,
            leader_recovery_state: i8::from(self.leader_recovering),
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            directories: sets.directories.clone(),
            eligible_leader_replicas: unless_empty(&sets.eligible_leader_replicas),
            last_known_elr: unless_empty(&sets.last_known_elr),
        }
    }
}

/// The sets of the partition before, when they are the same: on one node every partition of a topic shares them.
fn shared(sets: ReplicaSets, before: Option<&PartitionImage>) -> Arc<ReplicaSets> {
    match before {
        Some(before) if *before.sets == sets => Arc::clone(&before.sets),
        Some(_) | None => Arc::new(sets),
    }
}
