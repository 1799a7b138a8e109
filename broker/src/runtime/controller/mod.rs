//! The controller and the metadata log: topics, partitions, settings, registrations and features of the cluster. A node
//! that is the only voter runs the same quorum as one of many (KIP-500, KIP-595).
//!
//! Who wants to change the metadata hands a command of `cluster::controller` to [`ControllerHandle::run`]; who wants to
//! know it reads the published image or follows its changes.

mod consensus;
mod follower;
mod owner;
mod raft;
mod snapshots;
pub mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Clock, NodeId, TopicId};
use cluster::controller::{
    Command, RegisterBroker, RegisterController, RegistrationError, SUPPORTED_FEATURES, UnfenceBroker,
    bootstrap_records,
};
use cluster::records::Endpoint;
use cluster::records::control::{KRaftVersionRange, Voter, VoterEndpoint, VotersRecord};
use cluster::{DirectoryId, MetadataImage};
use partition_log::FileCache;
use tokio::sync::{mpsc, oneshot, watch};

use self::consensus::{Consensus, Leadership, QuorumCounters, Role};
use self::owner::{Message, OwnerSettings};
use self::store::{StoreError, StoreOptions, WeakStoreHandle};
use crate::observe::DurationHistogram;
use crate::observe::quorum::QuorumView;
use crate::tasks::Tasks;

pub use follower::MetadataFollower;
pub use snapshots::SnapshotRule;
pub use store::Retention;

/// Time in which a quorum of one must have elected its leader.
const LEADER_WAIT: Duration = Duration::from_secs(30);
/// Time between two looks for snapshots and segments past their retention (Kafka: KafkaRaftClient, its snapshot cleaner).
const CLEAN_INTERVAL: Duration = Duration::from_secs(60);

/// Why a command came to nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControllerError {
    /// This node is not the active controller, or was not when its records should have been agreed on.
    #[error("This is not the correct controller for this cluster.")]
    NotController,
    /// The node stops.
    #[error("the node stops")]
    Stopped,
    /// No leader was elected in time.
    #[error("no controller was elected within {0:?}")]
    NoLeader(Duration),
    /// The quorum's member on this node has failed.
    #[error("the controller failed: {0}")]
    Failed(Arc<str>),
    /// The metadata log cannot be used.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The cluster refused this node.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
}

impl ControllerError {
    fn failed(error: &dyn std::error::Error) -> ControllerError {
        ControllerError::Failed(error.to_string().into())
    }
}

/// What the controller of a node works with.
pub struct ControllerSettings {
    /// The node.
    pub node_id: NodeId,
    /// `metadata.log.dir`.
    pub metadata_log_dir: PathBuf,
    /// Its `directory.id`.
    pub directory_id: DirectoryId,
    /// Open files, and the disk.
    pub files: Arc<FileCache>,
    /// What the node was started with, by Kafka's names.
    pub settings: Arc<BTreeMap<String, String>>,
    /// The node's controller listeners, which a quorum of one does not need.
    pub endpoints: Vec<Endpoint>,
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// What is kept of log and snapshots.
    pub retention: Retention,
    /// When snapshots are made.
    pub snapshots: SnapshotRule,
    /// Times of syncing a log.
    pub flushes: Arc<DurationHistogram>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Starts background work.
    pub tasks: Tasks,
}

/// Gives commands to the controller and shows the metadata. Cheap to clone.
#[derive(Clone)]
pub struct ControllerHandle {
    node_id: NodeId,
    messages: mpsc::Sender<Message>,
    images: watch::Receiver<Arc<MetadataImage>>,
    leadership: watch::Receiver<Leadership>,
    counters: Arc<QuorumCounters>,
}

/// Opens the metadata log, joins the quorum and starts the controller.
///
/// # Errors
/// The metadata log cannot be used.
pub async fn start(settings: ControllerSettings) -> Result<ControllerHandle, ControllerError> {
    let options = StoreOptions {
        log_dir: settings.metadata_log_dir.clone(),
        files: settings.files.clone(),
        clock: settings.clock.clone(),
        segment_bytes: settings.segment_bytes,
        segment_ms: settings.segment_ms,
        retention: settings.retention,
        flushes: settings.flushes.clone(),
    };
    let opened = tokio::task::spawn_blocking(move || store::open(options)).await;
    let opened = opened.map_err(|_| ControllerError::Stopped)?.map_err(|error| ControllerError::Store(error.into()))?;
    clean_now_and_then(opened.handle.downgrade(), &settings.tasks);
    let bootstrap = match &opened.bootstrap {
        Some(bootstrap) if !bootstrap.records.is_empty() => bootstrap.records.clone(),
        Some(_) | None => bootstrap_records(),
    };
    let member = raft::MemberSettings {
        node_id: settings.node_id,
        directory_id: settings.directory_id,
        initial_voters: quorum_of_one(&settings),
        clock: settings.clock.clone(),
        tasks: settings.tasks.clone(),
    };
    let quorum = Arc::new(raft::start(member, opened).await?);
    let (images, leadership, counters) = (quorum.image(), quorum.leadership(), quorum.counters());
    let owner = OwnerSettings {
        node_id: settings.node_id,
        settings: settings.settings,
        bootstrap,
        snapshots: settings.snapshots,
        clock: settings.clock,
    };
    let messages = owner::start(owner, quorum, &settings.tasks);
    Ok(ControllerHandle { node_id: settings.node_id, messages, images, leadership, counters })
}

/// Has old snapshots and segments removed, as long as the metadata log is open.
fn clean_now_and_then(store: WeakStoreHandle, tasks: &Tasks) {
    let mut stop = tasks.stop_signal();
    tasks.spawn(async move {
        loop {
            tokio::select! {
                () = stop.stopped() => return,
                () = tokio::time::sleep(CLEAN_INTERVAL) => {}
            }
            match store.upgrade() {
                Some(store) => store.clean().await,
                None => return,
            }
        }
    });
}

fn quorum_of_one(settings: &ControllerSettings) -> VotersRecord {
    let endpoint = |e: &Endpoint| VoterEndpoint { name: e.name.clone(), host: e.host.clone(), port: e.port };
    let voter = Voter {
        voter_id: settings.node_id,
        voter_directory_id: settings.directory_id,
        endpoints: settings.endpoints.iter().map(endpoint).collect(),
        kraft_version_feature: KRaftVersionRange {
            min_supported_version: 0,
            max_supported_version: store::batches::KRAFT_VERSION_LEVEL,
        },
    };
    VotersRecord { voters: vec![voter], ..VotersRecord::default() }
}

impl ControllerHandle {
    /// Has the controller decide a command; comes back when its records are applied on this node.
    ///
    /// # Errors
    /// This node is not the active controller, or the records were not agreed on.
    pub async fn run<C>(&self, command: C) -> Result<C::Answer, ControllerError>
    where
        C: Command + Send + 'static,
        C::Answer: Send + 'static,
    {
        let (message, answer) = owner::message(command);
        self.messages.send(message).await.map_err(|_| ControllerError::Stopped)?;
        answer.await.unwrap_or(Err(ControllerError::Stopped))
    }

    /// Hands a command to the controller and does not wait. False when too many wait already.
    pub fn submit<C>(&self, command: C) -> bool
    where
        C: Command + Send + 'static,
        C::Answer: Send + 'static,
    {
        let (message, _) = owner::message(command);
        self.messages.try_send(message).is_ok()
    }

    /// The metadata as applied on this node.
    pub fn image(&self) -> Arc<MetadataImage> {
        self.images.borrow().clone()
    }

    /// Every image from now on; the newest takes the place of those not seen.
    pub fn images(&self) -> watch::Receiver<Arc<MetadataImage>> {
        self.images.clone()
    }

    /// Follows the metadata from an empty cluster on.
    pub fn follow(&self) -> MetadataFollower {
        MetadataFollower::from_nothing(self.images.clone())
    }

    /// The active controller, when this node knows it.
    pub fn leader(&self) -> Option<NodeId> {
        self.leadership.borrow().leader
    }

    /// This node's member of the quorum, as metrics show it.
    pub fn quorum(&self) -> QuorumView {
        let now = *self.leadership.borrow();
        let state = match now.role {
            Role::Follower => "follower",
            Role::Candidate => "candidate",
            Role::Leader => "leader",
            Role::Observer => "observer",
        };
        QuorumView {
            state,
            epoch: now.epoch,
            leader: now.leader,
            vote: now.vote,
            high_watermark: self.images.borrow().offset + 1,
            log_end_offset: self.counters.log_end_offset.load(Ordering::Relaxed),
            commits: self.counters.commits.load(Ordering::Relaxed),
            commit_micros: self.counters.commit_micros.load(Ordering::Relaxed),
            failed: now.failed,
        }
    }

    /// Returns when the metadata log has failed on this node. What is on disk is then known by a new start only, so that
    /// the process must end.
    pub async fn failed(&self) {
        let mut leadership = self.leadership.clone();
        if leadership.wait_for(|now| now.failed).await.is_err() {
            // The quorum's member has ended in order.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this node is the active controller.
    ///
    /// # Errors
    /// It takes too long, or the node stops.
    pub async fn wait_until_active(&self) -> Result<(), ControllerError> {
        let mut leadership = self.leadership.clone();
        let ready = leadership.wait_for(|now| now.ready_here || now.failed);
        match tokio::time::timeout(LEADER_WAIT, ready).await {
            Ok(Ok(now)) if now.failed => Err(ControllerError::Failed("the metadata log cannot be written".into())),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ControllerError::Stopped),
            Err(_) => Err(ControllerError::NoLeader(LEADER_WAIT)),
        }
    }

    /// Registers this node as controller and as broker; the broker stays fenced. Gives the epoch of the registration.
    ///
    /// # Errors
    /// The cluster refuses the node, or there is no controller.
    pub async fn register(&self, broker: RegisterBroker, endpoints: Vec<Endpoint>) -> Result<i64, ControllerError> {
        let controller = RegisterController {
            controller_id: self.node_id,
            incarnation_id: broker.incarnation_id,
            endpoints,
            features: broker.features.clone(),
        };
        self.run_when_active(controller).await??;
        Ok(self.run_when_active(broker).await??)
    }

    /// Lets this node's broker lead, after it has caught up with the metadata.
    ///
    /// # Errors
    /// The broker registered again since, or there is no controller.
    pub async fn unfence(&self, broker_epoch: i64) -> Result<(), ControllerError> {
        Ok(self.run_when_active(UnfenceBroker { broker_id: self.node_id, broker_epoch }).await??)
    }

    /// Waits for the office of the controller, which a node that starts gets a moment after its member of the quorum.
    async fn run_when_active<C>(&self, command: C) -> Result<C::Answer, ControllerError>
    where
        C: Command + Clone + Send + 'static,
        C::Answer: Send + 'static,
    {
        loop {
            self.wait_until_active().await?;
            match self.run(command.clone()).await {
                Err(ControllerError::NotController) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    }

    /// Leaves the quorum and waits until the disk is not used any more.
    pub async fn shutdown(&self) {
        let (done, finished) = oneshot::channel();
        if self.messages.send(Message::Shutdown(done)).await.is_ok() {
            // An owner that ended by itself has left the quorum as well.
            let _ = finished.await;
        }
    }
}

/// This run of the node's process as a broker, for [`ControllerHandle::register`].
pub fn this_broker(
    node_id: NodeId,
    incarnation_id: TopicId,
    endpoints: Vec<Endpoint>,
    rack: Option<String>,
    log_dirs: Vec<DirectoryId>,
) -> RegisterBroker {
    let features = SUPPORTED_FEATURES.iter().map(|feature| feature.to_supported()).collect();
    RegisterBroker { broker_id: node_id, incarnation_id, endpoints, features, rack, log_dirs }
}
