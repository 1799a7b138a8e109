//! Partitions and brokers as Metadata, DescribeTopicPartitions and DescribeCluster show them to a client that came in by
//! one listener (Kafka: KRaftMetadataCache).

use base::{NodeId, PartitionIndex};
use cluster::MetadataImage;
use cluster::image::{BrokerRegistration, PartitionImage};
use cluster::records::Endpoint;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::BrokerId;

/// No leader.
const NO_LEADER: NodeId = NodeId(-1);

/// What an older version of a client cannot be told as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Replicas that are not alive are left out, with an error (Metadata version 0).
    pub hide_dead_replicas: bool,
    /// A leader without the client's listener is told by its own code (Metadata from version 6 on).
    pub listener_not_found: bool,
}

/// One partition, as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// 0, or why the partition cannot be used.
    pub error_code: i16,
    /// Index in the topic.
    pub index: PartitionIndex,
    /// The leader, or -1.
    pub leader: NodeId,
    /// Epoch of the leader.
    pub leader_epoch: i32,
    /// Assigned brokers.
    pub replicas: Vec<NodeId>,
    /// In-sync replicas.
    pub isr: Vec<NodeId>,
    /// Replicas that are not alive.
    pub offline: Vec<NodeId>,
}

/// Brokers that are alive and have the listener.
pub fn alive_brokers<'a>(
    image: &'a MetadataImage,
    listener: &'a str,
) -> impl Iterator<Item = (&'a BrokerRegistration, &'a Endpoint)> {
    image.brokers().filter(|broker| !broker.fenced).filter_map(|broker| Some((&**broker, broker.endpoint(listener)?)))
}

/// A node that clients may take for the controller. Brokers pass on what is for the controller, so that any one of them
/// is as good, and clients spread over them (KIP-590).
pub fn some_broker(image: &MetadataImage, listener: &str, choice: u64) -> NodeId {
    let alive: Vec<NodeId> = alive_brokers(image, listener).map(|(broker, _)| broker.id).collect();
    let count = alive.len().max(1) as u64;
    alive.get((choice % count) as usize).copied().unwrap_or(NO_LEADER)
}

/// Shows a partition to a client.
pub fn view(
    image: &MetadataImage,
    listener: &str,
    dialect: Dialect,
    index: PartitionIndex,
    partition: &PartitionImage,
) -> PartitionView {
    let alive = |id: &NodeId| image.broker(*id).is_some_and(|b| !b.fenced && b.endpoint(listener).is_some());
    let shown = |ids: &[NodeId]| -> Vec<NodeId> {
        ids.iter().copied().filter(|id| !dialect.hide_dead_replicas || alive(id)).collect()
    };
    let (replicas, isr) = (shown(partition.replicas()), shown(partition.isr()));
    let leader_alive = alive(&partition.leader);
    let leader_known = image.broker(partition.leader).is_some_and(|broker| !broker.fenced);
    let error = if !leader_alive {
        match leader_known && dialect.listener_not_found {
            true => Some(ResponseError::ListenerNotFound),
            false => Some(ResponseError::LeaderNotAvailable),
        }
    } else if replicas.len() < partition.replicas().len() || isr.len() < partition.isr().len() {
        Some(ResponseError::ReplicaNotAvailable)
    } else {
        None
    };
    PartitionView {
        error_code: error.map_or(0, |error| error.code()),
        index,
        leader: if leader_alive { partition.leader } else { NO_LEADER },
        leader_epoch: partition.leader_epoch,
        replicas,
        isr,
        offline: partition.replicas().iter().copied().filter(|id| !alive(id)).collect(),
    }
}

/// Ids as answers hold them.
pub fn broker_ids(ids: &[NodeId]) -> Vec<BrokerId> {
    ids.iter().map(|id| BrokerId(id.0)).collect()
}

#[cfg(test)]
mod tests {
    use base::TopicId;
    use cluster::image::MetadataDelta;
    use cluster::records::{PartitionRecord, Record, RegisterBrokerRecord, TopicRecord};

    use super::*;

    const NEW: Dialect = Dialect { hide_dead_replicas: false, listener_not_found: true };
    const OLD: Dialect = Dialect { hide_dead_replicas: true, listener_not_found: false };

    fn image(brokers: &[(i32, &str, bool)], leader: i32) -> MetadataImage {
        let mut records: Vec<Record> = brokers
            .iter()
            .map(|(id, listener, fenced)| {
                let endpoint =
                    Endpoint { name: (*listener).to_owned(), host: "h".to_owned(), port: 1, security_protocol: 0 };
                let record = RegisterBrokerRecord {
                    broker_id: NodeId(*id),
                    end_points: vec![endpoint],
                    fenced: *fenced,
                    ..RegisterBrokerRecord::default()
                };
                record.into()
            })
            .collect();
        records.push(TopicRecord { name: "t".to_owned(), topic_id: TopicId::ZERO }.into());
        let replicas = vec![NodeId(1), NodeId(2)];
        let partition = PartitionRecord {
            partition_id: 0,
            leader: NodeId(leader),
            isr: replicas.clone(),
            replicas,
            leader_epoch: 4,
            ..PartitionRecord::default()
        };
        records.push(partition.into());
        let mut image = MetadataImage::empty();
        let mut delta = MetadataDelta::default();
        records.iter().for_each(|record| image.replay(record, &mut delta).unwrap());
        image
    }

    fn shown(image: &MetadataImage, dialect: Dialect) -> PartitionView {
        view(image, "L", dialect, 0, image.topic("t").unwrap().partition(0).unwrap())
    }

    #[test]
    fn a_partition_is_shown_as_it_is() {
        let image = image(&[(1, "L", false), (2, "L", false)], 1);
        let view = shown(&image, NEW);
        assert_eq!((view.error_code, view.leader, view.leader_epoch, view.offline.len()), (0, NodeId(1), 4, 0));
    }

    #[test]
    fn a_dead_replica_is_offline_and_hidden_from_the_oldest_clients() {
        let image = image(&[(1, "L", false), (2, "L", true)], 1);
        assert_eq!((shown(&image, NEW).error_code, shown(&image, NEW).offline), (0, vec![NodeId(2)]));
        let old = shown(&image, OLD);
        assert_eq!((old.error_code, old.replicas), (ResponseError::ReplicaNotAvailable.code(), vec![NodeId(1)]));
    }

    #[test]
    fn a_leader_that_cannot_be_reached_is_none() {
        let other_listener = image(&[(1, "M", false), (2, "L", false)], 1);
        assert_eq!(shown(&other_listener, NEW).error_code, ResponseError::ListenerNotFound.code());
        assert_eq!(shown(&other_listener, OLD).error_code, ResponseError::LeaderNotAvailable.code());
        let none = image(&[(1, "L", false), (2, "L", false)], -1);
        let view = shown(&none, NEW);
        assert_eq!((view.error_code, view.leader), (ResponseError::LeaderNotAvailable.code(), NodeId(-1)));
    }
}
