//! Records about brokers and controllers.

use base::{NodeId, TopicId};

use crate::DirectoryId;
use crate::schema::messages;

messages! {
    /// Where a listener of a node is reached.
    Endpoint {
        /// Name of the listener.
        [0] name: String,
        /// Advertised host.
        [0] host: String,
        /// Advertised port.
        [0] port: u16,
        /// Kafka's code: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
        [0] security_protocol: i16,
    }

    /// Levels of a feature that a node can work at.
    SupportedFeature {
        /// Name of the feature.
        [0] name: String,
        /// Lowest level.
        [0] min_supported_version: i16,
        /// Highest level.
        [0] max_supported_version: i16,
    }

    /// A broker registered; its epoch is the offset of this record.
    RegisterBrokerRecord {
        /// The broker.
        [0] broker_id: NodeId,
        /// True for a broker that still follows ZooKeeper; none does any more.
        [2] is_migrating_zk_broker: bool,
        /// Id of this run of the broker's process.
        [0] incarnation_id: TopicId,
        /// Number of this registration.
        [0] broker_epoch: i64,
        /// Its listeners.
        [0] end_points: Vec<Endpoint>,
        /// What it supports.
        [0] features: Vec<SupportedFeature>,
        /// Its rack.
        [0] rack: Option<String>,
        /// True while it may not lead.
        [0, default true] fenced: bool,
        /// True while it shuts down in order.
        [1] in_controlled_shutdown: bool,
        /// Its log directories that work.
        [3, tag 0] log_dirs: Vec<DirectoryId>,
        /// Log directories that take no new partitions (KIP-1066).
        [4, tag 1] cordoned_log_dirs: Option<Vec<DirectoryId>>,
    }

    /// The registration of a broker is gone.
    UnregisterBrokerRecord {
        /// The broker.
        [0] broker_id: NodeId,
        /// Its epoch.
        [0] broker_epoch: i64,
    }

    /// A broker may not lead any more. Written before metadata.version 3.0-IV1 only.
    FenceBrokerRecord {
        /// The broker.
        [0] id: NodeId,
        /// Its epoch.
        [0] epoch: i64,
    }

    /// A broker may lead. Written before metadata.version 3.0-IV1 only.
    UnfenceBrokerRecord {
        /// The broker.
        [0] id: NodeId,
        /// Its epoch.
        [0] epoch: i64,
    }

    /// A registration changed.
    BrokerRegistrationChangeRecord {
        /// The broker.
        [0] broker_id: NodeId,
        /// Its epoch.
        [0] broker_epoch: i64,
        /// -1 unfenced, 0 no change, 1 fenced.
        [0, tag 0] fenced: i8,
        /// 1 when the orderly shutdown begins, 0 for no change.
        [1, tag 1] in_controlled_shutdown: i8,
        /// New log directories, empty for no change.
        [2, tag 2] log_dirs: Vec<DirectoryId>,
        /// New cordoned log directories, none for no change.
        [3, tag 3] cordoned_log_dirs: Option<Vec<DirectoryId>>,
    }

    /// A controller registered.
    RegisterControllerRecord {
        /// The controller.
        [0] controller_id: NodeId,
        /// Id of this run of its process.
        [0] incarnation_id: TopicId,
        /// True when it could migrate from ZooKeeper; none can any more.
        [0] zk_migration_ready: bool,
        /// Its listeners.
        [0] end_points: Vec<Endpoint>,
        /// What it supports.
        [0] features: Vec<SupportedFeature>,
    }

    /// The registration of a controller is gone.
    UnregisterControllerRecord {
        /// The controller.
        [0] controller_id: NodeId,
    }
}

impl BrokerRegistrationChangeRecord {
    /// The lowest version that holds what is set, as Kafka chooses it.
    pub fn lowest_version(&self) -> u16 {
        match self {
            change if change.cordoned_log_dirs.is_some() => 3,
            change if !change.log_dirs.is_empty() => 2,
            change if change.in_controlled_shutdown != 0 => 1,
            BrokerRegistrationChangeRecord { .. } => 0,
        }
    }
}
