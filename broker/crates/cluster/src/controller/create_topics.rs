//! CreateTopics (Kafka: ReplicationControlManager.createTopics).

use std::collections::{BTreeMap, BTreeSet};

use base::{NodeId, PartitionIndex, TopicId};

use super::placement::{check, new_partition, place};
use super::{
    AssignmentError, Command, Controller, Decision, InvalidTopicName, PARTITIONS_PER_REQUEST_MAX, PlacementError,
    seed_of, validate_topic_name,
};
use crate::ResourceKind;
use crate::configs::{TopicConfigError, topic};
use crate::records::{ConfigRecord, PartitionRecord, Record, TopicRecord};

/// A topic that is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTopic {
    /// Name.
    pub name: String,
    /// Id that it gets, drawn at random by the caller.
    pub id: TopicId,
    /// Number of partitions, -1 for the default.
    pub partitions: i32,
    /// Number of replicas, -1 for the default.
    pub replication_factor: i16,
    /// Brokers of each partition, when the client chose them.
    pub assignments: Vec<(PartitionIndex, Vec<NodeId>)>,
    /// Its own settings.
    pub configs: Vec<(String, Option<String>)>,
}

/// Makes topics. Names stand once: the caller has refused repeated ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreateTopics {
    /// The topics.
    pub topics: Vec<NewTopic>,
    /// True to only find out what would happen.
    pub validate_only: bool,
}

/// A topic that was made, or would be.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatedTopic {
    /// Its id.
    pub id: TopicId,
    /// Its partitions.
    pub partitions: i32,
    /// Replicas of each.
    pub replication_factor: i16,
    /// What it sets itself.
    pub configs: BTreeMap<String, String>,
}

/// Why a topic is not made. The texts are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateTopicsError {
    /// Not a name.
    #[error(transparent)]
    Name(#[from] InvalidTopicName),
    /// A name that metrics cannot tell from an existing one.
    #[error("Topic '{name}' collides with existing topic: {existing}")]
    Collides {
        /// Name asked for.
        name: String,
        /// The other.
        existing: String,
    },
    /// The topic is there.
    #[error("Topic '{0}' already exists.")]
    Exists(String),
    /// Settings without a value.
    #[error("Null value not supported for topic configs: {}", .0.join(","))]
    NullConfigs(Vec<String>),
    /// A setting that is not one, or not a value of it.
    #[error(transparent)]
    Config(#[from] TopicConfigError),
    /// Both an assignment and a number of replicas.
    #[error("A manual partition assignment was specified, but replication factor was not set to -1.")]
    AssignmentAndReplicationFactor,
    /// Both an assignment and a number of partitions.
    #[error("A manual partition assignment was specified, but numPartitions was not set to -1.")]
    AssignmentAndPartitions,
    /// A partition that is assigned twice.
    #[error("Found multiple manual partition assignments for partition {0}")]
    RepeatedPartition(PartitionIndex),
    /// A partition that is left out.
    #[error("partitions should be a consecutive 0-based integer sequence")]
    NotConsecutive,
    /// An assignment that cannot be.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
    /// No such number of replicas.
    #[error("Replication factor must be larger than 0, or -1 to use the default value.")]
    ReplicationFactorNotPositive,
    /// No such number of partitions.
    #[error("Number of partitions was set to an invalid non-positive value.")]
    PartitionsNotPositive,
    /// No brokers for so many replicas.
    #[error("Unable to replicate the partition {replication_factor} time(s): {reason}")]
    Placement {
        /// Replicas wanted.
        replication_factor: i16,
        /// What is in the way.
        reason: PlacementError,
    },
    /// More partitions than one request may make.
    #[error("Excessively large number of partitions per request.")]
    TooManyPartitions,
}

impl Command for CreateTopics {
    /// One result for each topic, in the order of the request.
    type Answer = Vec<Result<CreatedTopic, CreateTopicsError>>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        if self.partitions_in_all(on) > PARTITIONS_PER_REQUEST_MAX {
            return Decision::unchanged(vec![Err(CreateTopicsError::TooManyPartitions); self.topics.len()]);
        }
        let mut records = Vec::new();
        let answer = self
            .topics
            .iter()
            .map(|topic| {
                let (mut own, created) = create(topic, on)?;
                records.append(&mut own);
                Ok(created)
            })
            .collect();
        if self.validate_only {
            records.clear();
        }
        Decision { records, answer }
    }
}

impl CreateTopics {
    fn partitions_in_all(&self, on: &Controller<'_>) -> usize {
        let default = default_partitions(on).unsigned_abs() as usize;
        let one = |topic: &NewTopic| match topic.partitions {
            _ if !topic.assignments.is_empty() => topic.assignments.len(),
            -1 => default,
            count => usize::try_from(count).unwrap_or(0),
        };
        self.topics.iter().map(one).fold(0, usize::saturating_add)
    }
}

fn default_partitions(on: &Controller<'_>) -> i32 {
    let number = on.with_layers(|layers| layers.number("num.partitions"));
    number.and_then(|number| i32::try_from(number).ok()).unwrap_or(1)
}

fn create(topic: &NewTopic, on: &Controller<'_>) -> Result<(Vec<Record>, CreatedTopic), CreateTopicsError> {
    check_name(&topic.name, on)?;
    let configs = check_configs(topic, on)?;
    let partitions = match topic.assignments.is_empty() {
        true => place_partitions(topic, on)?,
        false => assigned_partitions(topic, on)?,
    };
    let created = CreatedTopic {
        id: topic.id,
        partitions: partitions.len() as i32,
        replication_factor: partitions.first().map_or(0, |partition| partition.replicas.len() as i16),
        configs,
    };
    let head = TopicRecord { name: topic.name.clone(), topic_id: topic.id };
    let set = |(name, value): (&String, &String)| {
        let record = ConfigRecord {
            resource_type: ResourceKind::Topic as i8,
            resource_name: topic.name.clone(),
            name: name.clone(),
            value: Some(value.clone()),
        };
        record.into()
    };
    let records = std::iter::once(head.into())
        .chain(created.configs.iter().map(set))
        .chain(partitions.into_iter().map(Into::into))
        .collect();
    Ok((records, created))
}

/// Kafka notes the errors of all topics step by step and lets a later one replace an earlier one; the order here gives
/// the same error for each topic.
fn check_name(name: &str, on: &Controller<'_>) -> Result<(), CreateTopicsError> {
    if on.image.topic(name).is_some() {
        return Err(CreateTopicsError::Exists(name.to_owned()));
    }
    if let Some(existing) = on.image.colliding_topic(name) {
        return Err(CreateTopicsError::Collides { name: name.to_owned(), existing: existing.to_string() });
    }
    Ok(validate_topic_name(name)?)
}

fn check_configs(topic: &NewTopic, on: &Controller<'_>) -> Result<BTreeMap<String, String>, CreateTopicsError> {
    let without_value = topic.configs.iter().filter(|(_, value)| value.is_none());
    let names: Vec<String> = without_value.map(|(name, _)| name.clone()).collect();
    if !names.is_empty() {
        return Err(CreateTopicsError::NullConfigs(names));
    }
    let set = topic.configs.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    let configs: BTreeMap<String, String> = set.collect();
    on.with_layers(|layers| topic::validate(&configs, layers))?;
    Ok(configs)
}

fn assigned_partitions(topic: &NewTopic, on: &Controller<'_>) -> Result<Vec<PartitionRecord>, CreateTopicsError> {
    if topic.replication_factor != -1 {
        return Err(CreateTopicsError::AssignmentAndReplicationFactor);
    }
    if topic.partitions != -1 {
        return Err(CreateTopicsError::AssignmentAndPartitions);
    }
    let mut indexes = BTreeSet::new();
    let mut expected_len = None;
    let mut partitions = Vec::with_capacity(topic.assignments.len());
    for (index, replicas) in &topic.assignments {
        if !indexes.insert(*index) {
            return Err(CreateTopicsError::RepeatedPartition(*index));
        }
        check(on.image, replicas, expected_len)?;
        expected_len = Some(replicas.len());
        let partition = new_partition(on.image, topic.id, *index, replicas);
        partitions.push(partition.ok_or(AssignmentError::NoneActive(*index))?);
    }
    if indexes.iter().copied().ne(0..topic.assignments.len() as PartitionIndex) {
        return Err(CreateTopicsError::NotConsecutive);
    }
    partitions.sort_by_key(|partition| partition.partition_id);
    Ok(partitions)
}

fn place_partitions(topic: &NewTopic, on: &Controller<'_>) -> Result<Vec<PartitionRecord>, CreateTopicsError> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        return Err(CreateTopicsError::ReplicationFactorNotPositive);
    }
    if topic.partitions < -1 || topic.partitions == 0 {
        return Err(CreateTopicsError::PartitionsNotPositive);
    }
    let count = if topic.partitions == -1 { default_partitions(on) } else { topic.partitions };
    let replication_factor = match topic.replication_factor {
        -1 => {
            let number = on.with_layers(|layers| layers.number("default.replication.factor"));
            number.and_then(|number| i16::try_from(number).ok()).unwrap_or(1)
        }
        asked => asked,
    };
    let refused = |reason| CreateTopicsError::Placement { replication_factor, reason };
    let placed =
        place(on.image, count.unsigned_abs() as usize, replication_factor, seed_of(topic.id)).map_err(refused)?;
    let numbered = placed.iter().enumerate();
    let partition = |(index, replicas): (usize, &Vec<NodeId>)| {
        new_partition(on.image, topic.id, index as PartitionIndex, replicas).ok_or(refused(PlacementError::AllFenced))
    };
    numbered.map(partition).collect()
}
