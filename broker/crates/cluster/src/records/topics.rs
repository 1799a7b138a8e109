//! Records about topics, partitions, configs, features and producer ids.

use base::{LeaderEpoch, NodeId, PartitionIndex, ProducerId, TopicId};

use crate::DirectoryId;
use crate::schema::messages;

messages! {
    /// A topic came to be; its partitions follow.
    TopicRecord {
        /// Name of the topic.
        [0] name: String,
        /// Id of the topic, never used again after its deletion.
        [0] topic_id: TopicId,
    }

    /// A partition came to be.
    PartitionRecord {
        /// Index in the topic.
        [0, default -1] partition_id: PartitionIndex,
        /// The topic.
        [0] topic_id: TopicId,
        /// Assigned brokers, the preferred leader first.
        [0] replicas: Vec<NodeId>,
        /// In-sync replicas.
        [0] isr: Vec<NodeId>,
        /// Replicas that a reassignment takes away.
        [0] removing_replicas: Vec<NodeId>,
        /// Replicas that a reassignment adds.
        [0] adding_replicas: Vec<NodeId>,
        /// The leader, or -1.
        [0, default NodeId(-1)] leader: NodeId,
        /// 0 when the leader is not recovering from an unclean election, 1 when it is.
        [0, tag 0] leader_recovery_state: i8,
        /// Rises with every change of leader.
        [0, default -1] leader_epoch: LeaderEpoch,
        /// Rises with every change of the partition.
        [0, default -1] partition_epoch: i32,
        /// Log directory of each replica, in the order of `replicas`.
        [1] directories: Vec<DirectoryId>,
        /// Replicas out of sync that still hold every committed record (KIP-966).
        [2, tag 1] eligible_leader_replicas: Option<Vec<NodeId>>,
        /// Members that the eligible replicas had last.
        [2, tag 2] last_known_elr: Option<Vec<NodeId>>,
    }

    /// A partition changed; what is absent stayed as it was.
    PartitionChangeRecord {
        /// Index in the topic.
        [0, default -1] partition_id: PartitionIndex,
        /// The topic.
        [0] topic_id: TopicId,
        /// New in-sync replicas.
        [0, tag 0] isr: Option<Vec<NodeId>>,
        /// New leader, -1 for none, -2 for no change.
        [0, tag 1, default NO_LEADER_CHANGE] leader: NodeId,
        /// New assignment.
        [0, tag 2] replicas: Option<Vec<NodeId>>,
        /// New list of replicas to take away.
        [0, tag 3] removing_replicas: Option<Vec<NodeId>>,
        /// New list of replicas to add.
        [0, tag 4] adding_replicas: Option<Vec<NodeId>>,
        /// New recovery state, -1 for no change.
        [0, tag 5, default -1] leader_recovery_state: i8,
        /// New eligible leader replicas.
        [2, tag 6] eligible_leader_replicas: Option<Vec<NodeId>>,
        /// New last known eligible leader replicas.
        [2, tag 7] last_known_elr: Option<Vec<NodeId>>,
        /// New log directories.
        [1, tag 8] directories: Option<Vec<DirectoryId>>,
    }

    /// A topic and all of its partitions and configs are gone.
    RemoveTopicRecord {
        /// The topic.
        [0] topic_id: TopicId,
    }

    /// A dynamic setting was set or taken away.
    ConfigRecord {
        /// Kafka's code of the resource type: 2 topic, 4 broker, 16 client metrics, 32 group.
        [0] resource_type: i8,
        /// Name of the resource; empty for the default of all brokers.
        [0] resource_name: String,
        /// Name of the setting.
        [0] name: String,
        /// Its value, or none to take it away.
        [0] value: Option<String>,
    }

    /// Forgets the eligible leader replicas of one topic, or of all when the name is empty.
    ClearElrRecord {
        /// Name of the topic.
        [0] topic_name: String,
    }

    /// A block of producer ids was handed to a broker.
    ProducerIdsRecord {
        /// The broker that got it.
        [0] broker_id: NodeId,
        /// Epoch of that broker's registration.
        [0, default -1] broker_epoch: i64,
        /// The first id that no block contains yet.
        [0] next_producer_id: ProducerId,
    }

    /// The finalized level of a feature; level 0 takes the feature away.
    FeatureLevelRecord {
        /// Name of the feature.
        [0] name: String,
        /// Its level.
        [0] feature_level: i16,
    }

    /// Nothing happened; keeps the log moving.
    NoOpRecord {}

    /// The records up to the next end belong together.
    BeginTransactionRecord {
        /// What the transaction is for.
        [0, tag 0] name: Option<String>,
    }

    /// The records since the last begin take effect.
    EndTransactionRecord {}

    /// The records since the last begin have no effect.
    AbortTransactionRecord {
        /// Why.
        [0, tag 0] reason: Option<String>,
    }

    /// State of a migration from ZooKeeper; old logs hold it, nothing acts on it.
    ZkMigrationStateRecord {
        /// Kafka's code of the state.
        [0] zk_migration_state: i8,
    }
}

/// Value of `PartitionChangeRecord::leader` that leaves the leader as it was.
pub const NO_LEADER_CHANGE: NodeId = NodeId(-2);
