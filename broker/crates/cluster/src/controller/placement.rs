//! Which brokers get a new partition: replicas go round the racks, and round the brokers of each rack, and every next
//! partition begins one further (Kafka: StripedReplicaPlacer). A leader is never put on a fenced broker, and fenced ones
//! are used only when a rack has no other left. Also the checks of assignments that a client chose itself.

use std::collections::BTreeMap;

use base::NodeId;

use crate::DirectoryId;
use crate::image::{BrokerRegistration, MetadataImage};
use crate::records::PartitionRecord;

/// Why no broker can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// More replicas than brokers.
    #[error(
        "The target replication factor of {replication_factor} cannot be reached because only {brokers} broker(s) are \
         registered or some brokers have all their log directories cordoned."
    )]
    TooFewBrokers {
        /// Replicas wanted.
        replication_factor: i16,
        /// Brokers that could hold one.
        brokers: usize,
    },
    /// No broker may lead.
    #[error("All brokers are currently fenced.")]
    AllFenced,
}

/// Why an assignment that a client chose is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// No replica.
    #[error("The manual partition assignment includes an empty replica list.")]
    Empty,
    /// A broker that is not there.
    #[error("The manual partition assignment includes broker {0}, but no such broker is registered.")]
    UnknownBroker(NodeId),
    /// The same broker twice.
    #[error("The manual partition assignment includes the broker {0} more than once.")]
    Repeated(NodeId),
    /// Another number of replicas than the partitions before.
    #[error(
        "The manual partition assignment includes a partition with {found} replica(s), but this is not consistent with \
         previous partitions, which have {expected} replica(s)."
    )]
    Inconsistent {
        /// Replicas of this partition.
        found: usize,
        /// Replicas of those before.
        expected: usize,
    },
    /// No broker that could lead.
    #[error(
        "All brokers specified in the manual partition assignment for partition {0} are fenced or in controlled shutdown."
    )]
    NoneActive(i32),
}

/// Brokers in turns: each partition begins one broker further than the one before.
#[derive(Default)]
struct Ring {
    brokers: Vec<NodeId>,
    offset: usize,
    used: usize,
}

impl Ring {
    fn start(&mut self, seed: u64) {
        self.offset = seed as usize % self.brokers.len().max(1);
    }

    fn next_partition(&mut self) {
        self.used = 0;
        self.offset = (self.offset + 1) % self.brokers.len().max(1);
    }

    fn take(&mut self) -> Option<NodeId> {
        let place = (self.offset + self.used) % self.brokers.len().max(1);
        let broker = (self.used < self.brokers.len()).then(|| self.brokers[place]);
        self.used += usize::from(broker.is_some());
        broker
    }
}

#[derive(Default)]
struct Rack {
    unfenced: Ring,
    fenced: Ring,
}

/// Places `partitions` partitions; `seed` moves the point where the first one begins.
pub fn place(
    image: &MetadataImage,
    partitions: usize,
    replication_factor: i16,
    seed: u64,
) -> Result<Vec<Vec<NodeId>>, PlacementError> {
    let mut racks: BTreeMap<Option<&str>, Rack> = BTreeMap::new();
    let (mut total, mut unfenced) = (0, 0);
    for broker in image.brokers().filter(|broker| is_usable(broker)) {
        let rack = racks.entry(broker.rack.as_deref()).or_default();
        total += 1;
        if broker.fenced {
            rack.fenced.brokers.push(broker.id);
        } else {
            unfenced += 1;
            rack.unfenced.brokers.push(broker.id);
        }
    }
    if unfenced == 0 {
        return Err(PlacementError::AllFenced);
    }
    let replicas = usize::from(replication_factor.unsigned_abs());
    if replicas > total {
        return Err(PlacementError::TooFewBrokers { replication_factor, brokers: total });
    }
    let mut racks: Vec<Rack> = racks.into_values().collect();
    let first_rack = seed as usize % racks.len();
    for rack in &mut racks {
        rack.unfenced.start(seed >> 16);
        rack.fenced.start(seed >> 32);
    }
    let mut placed = Vec::with_capacity(partitions);
    for partition in 0..partitions {
        placed.push(place_one(&mut racks, first_rack + partition, replicas));
        for rack in &mut racks {
            rack.unfenced.next_partition();
            rack.fenced.next_partition();
        }
    }
    Ok(placed)
}

/// One partition, beginning at a rack. There are at least as many brokers as replicas, and one that may lead.
fn place_one(racks: &mut [Rack], first_rack: usize, replicas: usize) -> Vec<NodeId> {
    let count = racks.len();
    let mut chosen = Vec::with_capacity(replicas);
    let leader_rack = (first_rack..first_rack + count).find_map(|rack| {
        let leader = racks[rack % count].unfenced.take()?;
        chosen.push(leader);
        Some(rack)
    });
    let mut rack = leader_rack.unwrap_or(first_rack);
    while chosen.len() < replicas {
        rack += 1;
        let next = &mut racks[rack % count];
        chosen.extend(next.unfenced.take().or_else(|| next.fenced.take()));
    }
    chosen
}

/// Brokers that may be given a replica: not shutting down, and with a log directory that is not cordoned.
fn is_usable(broker: &BrokerRegistration) -> bool {
    let cordoned = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    let all_cordoned = !broker.log_dirs.is_empty() && broker.log_dirs.iter().all(|dir| cordoned.contains(dir));
    !broker.in_controlled_shutdown && !all_cordoned
}

/// Checks an assignment that a client chose.
pub fn check(image: &MetadataImage, replicas: &[NodeId], expected_len: Option<usize>) -> Result<(), AssignmentError> {
    if replicas.is_empty() {
        return Err(AssignmentError::Empty);
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    let mut before = None;
    for broker in sorted {
        if image.broker(broker).is_none() {
            return Err(AssignmentError::UnknownBroker(broker));
        }
        if before == Some(broker) {
            return Err(AssignmentError::Repeated(broker));
        }
        before = Some(broker);
    }
    match expected_len {
        Some(expected) if expected != replicas.len() => {
            Err(AssignmentError::Inconsistent { found: replicas.len(), expected })
        }
        Some(_) | None => Ok(()),
    }
}

/// A new partition on these brokers; none when no broker among them is active.
pub fn new_partition(
    image: &MetadataImage,
    topic_id: base::TopicId,
    partition_id: i32,
    replicas: &[NodeId],
) -> Option<PartitionRecord> {
    let isr: Vec<NodeId> = replicas.iter().copied().filter(|broker| image.is_active(*broker)).collect();
    Some(PartitionRecord {
        partition_id,
        topic_id,
        leader: *isr.first()?,
        isr,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: replicas.iter().map(|broker| default_directory(image, *broker)).collect(),
        replicas: replicas.to_vec(),
        ..PartitionRecord::default()
    })
}

/// The directory of a broker that has only one; otherwise "unassigned", and the broker chooses.
fn default_directory(image: &MetadataImage, broker: NodeId) -> DirectoryId {
    match image.broker(broker).map(|broker| broker.log_dirs.as_slice()) {
        Some([only]) => *only,
        Some(_) | None => DirectoryId::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::MetadataDelta;
    use crate::records::RegisterBrokerRecord;

    fn cluster(brokers: &[(i32, Option<&str>, bool)]) -> MetadataImage {
        let mut image = MetadataImage::empty();
        for (id, rack, fenced) in brokers {
            let record = RegisterBrokerRecord {
                broker_id: NodeId(*id),
                rack: rack.map(str::to_owned),
                fenced: *fenced,
                log_dirs: vec![base::TopicId(uuid::Uuid::from_u128(*id as u128))],
                ..RegisterBrokerRecord::default()
            };
            image.replay(&record.into(), &mut MetadataDelta::default()).unwrap();
        }
        image
    }

    #[test]
    fn leaders_and_replicas_are_spread_evenly() {
        let image = cluster(&[(1, None, false), (2, None, false), (3, None, false)]);
        for seed in [0, 7, u64::MAX] {
            let placed = place(&image, 6, 2, seed).unwrap();
            for broker in [1, 2, 3].map(NodeId) {
                assert_eq!(placed.iter().filter(|replicas| replicas[0] == broker).count(), 2, "{placed:?}");
                assert_eq!(placed.iter().filter(|replicas| replicas.contains(&broker)).count(), 4, "{placed:?}");
            }
        }
    }

    #[test]
    fn every_rack_gets_a_replica_when_there_are_enough() {
        let image =
            cluster(&[(1, Some("a"), false), (2, Some("a"), false), (3, Some("b"), false), (4, Some("c"), false)]);
        for replicas in place(&image, 12, 3, 5).unwrap() {
            let in_a = replicas.iter().filter(|broker| broker.0 <= 2).count();
            assert_eq!((in_a, replicas.len()), (1, 3), "{replicas:?}");
        }
    }

    #[test]
    fn a_fenced_broker_never_leads_and_is_used_last() {
        let image = cluster(&[(1, None, false), (2, None, true), (3, None, false)]);
        for replicas in place(&image, 6, 2, 1).unwrap() {
            assert!(!replicas.contains(&NodeId(2)));
        }
        for replicas in place(&image, 6, 3, 1).unwrap() {
            assert_eq!(replicas[2], NodeId(2));
        }
    }

    #[test]
    fn bl_110_more_replicas_than_brokers_cannot_be_placed() {
        let image = cluster(&[(1, None, false)]);
        let error = place(&image, 1, 3, 0).unwrap_err();
        assert_eq!(error, PlacementError::TooFewBrokers { replication_factor: 3, brokers: 1 });
        let fenced = cluster(&[(1, None, true)]);
        assert_eq!(place(&fenced, 1, 1, 0), Err(PlacementError::AllFenced));
    }

    #[test]
    fn a_broker_with_one_directory_is_told_to_use_it() {
        let image = cluster(&[(1, None, false)]);
        let record = new_partition(&image, base::TopicId::ZERO, 0, &[NodeId(1)]).unwrap();
        assert_eq!(record.directories, [base::TopicId(uuid::Uuid::from_u128(1))]);
    }
}
