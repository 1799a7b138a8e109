//! CreatePartitions (Kafka: ReplicationControlManager.createPartitions).

use base::{NodeId, PartitionIndex};

use super::placement::{check, new_partition, place};
use super::{AssignmentError, Command, Controller, Decision, PARTITIONS_PER_REQUEST_MAX, PlacementError, seed_of};
use crate::records::Record;

/// A topic that is to have more partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionsTopic {
    /// Name.
    pub name: String,
    /// Partitions that it is to have in all.
    pub count: i32,
    /// Brokers of each new partition, when the client chose them.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

/// Adds partitions. Names stand once: the caller has refused repeated ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreatePartitions {
    /// The topics.
    pub topics: Vec<PartitionsTopic>,
    /// True to only find out what would happen.
    pub validate_only: bool,
}

/// Why a topic gets no partitions. The texts are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreatePartitionsError {
    /// No such topic.
    #[error("This server does not host this topic-partition.")]
    UnknownTopic,
    /// As many as there are.
    #[error("Topic already has {0} partition(s).")]
    Same(usize),
    /// Fewer than there are.
    #[error("The topic {name} currently has {current} partition(s); {wanted} would not be an increase.")]
    Fewer {
        /// The topic.
        name: String,
        /// Partitions that it has.
        current: usize,
        /// Partitions asked for.
        wanted: i32,
    },
    /// Another number of assignments than of new partitions.
    #[error("Attempted to add {additional} additional partition(s), but only {given} assignment(s) were specified.")]
    AssignmentCount {
        /// New partitions.
        additional: usize,
        /// Assignments.
        given: usize,
    },
    /// An assignment that cannot be.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// No brokers for the topic's number of replicas.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// More partitions than one request may make.
    #[error("Excessively large number of additional partitions per request.")]
    TooManyPartitions,
}

impl Command for CreatePartitions {
    /// One result for each topic, in the order of the request.
    type Answer = Vec<Result<(), CreatePartitionsError>>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        if self.additional_in_all(on) > PARTITIONS_PER_REQUEST_MAX {
            return Decision::unchanged(vec![Err(CreatePartitionsError::TooManyPartitions); self.topics.len()]);
        }
        let mut records = Vec::new();
        let answer = self.topics.iter().map(|topic| add(topic, on).map(|mut own| records.append(&mut own))).collect();
        if self.validate_only {
            records.clear();
        }
        Decision { records, answer }
    }
}

impl CreatePartitions {
    fn additional_in_all(&self, on: &Controller<'_>) -> usize {
        let one = |topic: &PartitionsTopic| {
            let current = on.image.topic(&topic.name).map_or(0, |topic| topic.partitions().len());
            usize::try_from(topic.count).unwrap_or(0).saturating_sub(current)
        };
        self.topics.iter().map(one).fold(0, usize::saturating_add)
    }
}

fn add(asked: &PartitionsTopic, on: &Controller<'_>) -> Result<Vec<Record>, CreatePartitionsError> {
    let topic = on.image.topic(&asked.name).ok_or(CreatePartitionsError::UnknownTopic)?;
    let current = topic.partitions().len();
    let wanted = usize::try_from(asked.count).unwrap_or(0);
    if wanted == current {
        return Err(CreatePartitionsError::Same(current));
    }
    if wanted < current {
        return Err(CreatePartitionsError::Fewer { name: asked.name.clone(), current, wanted: asked.count });
    }
    let additional = wanted - current;
    let replication_factor = topic.partition(0).map_or(1, |partition| partition.replicas().len());
    let placed = match &asked.assignments {
        Some(given) if given.len() != additional => {
            return Err(CreatePartitionsError::AssignmentCount { additional, given: given.len() });
        }
        Some(given) => {
            given.iter().try_for_each(|replicas| check(on.image, replicas, Some(replication_factor)))?;
            given.clone()
        }
        // A topic goes on where the stripes of its partitions ended, as far as the brokers are the same.
        None => place(on.image, additional, replication_factor as i16, seed_of(topic.id).wrapping_add(current as u64))?,
    };
    let mut records = Vec::with_capacity(additional);
    for (index, replicas) in (current as PartitionIndex..).zip(&placed) {
        let partition = new_partition(on.image, topic.id, index, replicas);
        records.push(partition.ok_or(AssignmentError::NoneActive(index))?.into());
    }
    Ok(records)
}
