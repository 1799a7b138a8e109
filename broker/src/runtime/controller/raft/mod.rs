//! openraft behind [`Consensus`]: the only module that names it.

mod log_store;
mod network;
mod state_machine;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Clock, NodeId};
use cluster::records::control::VotersRecord;
use cluster::{DirectoryId, MetadataImage, Record};
use openraft::error::{ClientWriteError, InitializeError, RaftError};
use openraft::storage::RaftLogStorage;
use openraft::{Config, Raft, ServerState, SnapshotPolicy};
use tokio::sync::watch;

use self::log_store::{LogStart, LogStore, snapshot_log_id};
use self::network::NoPeers;
use self::state_machine::{Applied, StateMachine, applied_of, image_of};
use self::types::{Member, Proposal, Types, epoch_of, membership_of};
use super::ControllerError;
use super::consensus::{Consensus, Leadership, Proposed, QuorumCounters, Role};
use super::store::OpenedStore;
use crate::tasks::Tasks;

/// Shortest and longest time without a leader before a node stands for election. Kafka's 1 s; a loaded machine of two
/// cores misses openraft's default of 150 ms.
const ELECTION_TIMEOUT_MS: (u64, u64) = (1_000, 2_000);
/// Interval of the leader's heartbeats.
const HEARTBEAT_MS: u64 = 250;
/// Time in which a snapshot must be sent and installed.
const SNAPSHOT_TIMEOUT_MS: u64 = 30_000;
/// Entries behind a snapshot that stay for followers that are a little late.
const ENTRIES_KEPT: u64 = 1_000;

/// This node's place in the quorum.
pub struct MemberSettings {
    /// The node.
    pub node_id: NodeId,
    /// Directory of its metadata log.
    pub directory_id: DirectoryId,
    /// The quorum of a new cluster, unless formatting has written another.
    pub initial_voters: VotersRecord,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Starts background work.
    pub tasks: Tasks,
}

/// A running member.
pub struct RaftMember {
    raft: Raft<Types>,
    image: watch::Receiver<Arc<MetadataImage>>,
    clock: Arc<dyn Clock>,
    counters: Arc<QuorumCounters>,
    leadership: watch::Receiver<Leadership>,
}

/// Starts a member on what its directory holds. A new quorum is founded; a quorum of one elects its leader at once.
///
/// # Errors
/// The snapshot contradicts itself, or the member cannot start.
pub async fn start(settings: MemberSettings, opened: OpenedStore) -> Result<RaftMember, ControllerError> {
    let node_id = settings.node_id;
    let pristine = opened.quorum_state.is_none() && opened.batches.is_empty() && opened.snapshot.is_none();
    let found = opened.bootstrap.as_ref().and_then(|bootstrap| bootstrap.voters.clone());
    let founders = membership_of(&found.unwrap_or_else(|| settings.initial_voters.clone()));
    let (image, applied, purged) = match &opened.snapshot {
        Some((id, content)) => {
            let last = snapshot_log_id(id.end_offset, id.epoch, content.raft_index);
            let image = image_of(content, *id).map_err(|error| ControllerError::failed(&error))?;
            (image, applied_of(content, last), Some(last))
        }
        None => (MetadataImage::empty(), Applied::default(), None),
    };
    let log_start = LogStart {
        purged,
        membership: opened.snapshot.as_ref().map(|_| applied.membership.membership().clone()),
        batches: opened.batches,
        end_offset: opened.end_offset,
        quorum_state: opened.quorum_state,
    };
    let store = opened.handle;
    let counters = Arc::new(QuorumCounters::default());
    let place = (node_id, settings.directory_id);
    let mut log = LogStore::new(place, settings.clock.clone(), store.clone(), log_start, counters.clone());
    let (published, image_seen) = watch::channel(Arc::new(image.clone()));
    let view = log.get_log_reader().await;
    let alone = log.is_only_voter();
    let machine = StateMachine::new(image, applied, published, settings.clock.clone(), store, view, counters.clone());
    let config = Arc::new(config().validate().map_err(|error| ControllerError::failed(&error))?);
    let raft = Raft::new(node_id, config, NoPeers, log, machine).await;
    let raft = raft.map_err(|error| ControllerError::failed(&error))?;
    let leadership = follow_leadership(&raft, node_id, &settings.tasks);
    if pristine {
        let members: BTreeMap<NodeId, Member> = founders.nodes().map(|(id, node)| (*id, node.clone())).collect();
        match raft.initialize(members).await {
            // Another founder was quicker, and its quorum has reached this node.
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => {}
            Err(error) => return Err(ControllerError::failed(&error)),
        }
    } else if alone {
        // Nobody else can lead, so that there is nobody to wait for.
        raft.trigger().elect().await.map_err(|error| ControllerError::failed(&error))?;
    }
    Ok(RaftMember { raft, image: image_seen, clock: settings.clock, counters, leadership })
}

fn config() -> Config {
    Config {
        cluster_name: super::store::METADATA_TOPIC.to_owned(),
        election_timeout_min: ELECTION_TIMEOUT_MS.0,
        election_timeout_max: ELECTION_TIMEOUT_MS.1,
        heartbeat_interval: HEARTBEAT_MS,
        install_snapshot_timeout: SNAPSHOT_TIMEOUT_MS,
        max_in_snapshot_log_to_keep: ENTRIES_KEPT,
        // Snapshots follow Kafka's settings, which count bytes and time.
        snapshot_policy: SnapshotPolicy::Never,
        ..Config::default()
    }
}

/// Turns openraft's metrics into what the controller wants to know.
fn follow_leadership(raft: &Raft<Types>, node_id: NodeId, tasks: &Tasks) -> watch::Receiver<Leadership> {
    let mut metrics = raft.metrics();
    let (tell, seen) = watch::channel(Leadership::default());
    tasks.spawn_owner("quorum-watch", async move {
        loop {
            let now = {
                let m = metrics.borrow_and_update();
                let leads = m.current_leader == Some(node_id) && m.state == ServerState::Leader;
                // The first entry of a term commits what earlier leaders left behind it.
                let applied_term = m.last_applied.map(|applied| applied.leader_id.term);
                let ready_here = leads && applied_term == Some(m.current_term);
                Leadership {
                    epoch: epoch_of(m.current_term),
                    leader: m.current_leader,
                    role: role_of(m.state),
                    vote: m.vote.leader_id().voted_for(),
                    ready_here,
                    failed: m.running_state.is_err(),
                }
            };
            tell.send_if_modified(|before| std::mem::replace(before, now) != now);
            if metrics.changed().await.is_err() {
                tell.send_modify(|last| {
                    last.leader = None;
                    last.ready_here = false;
                });
                return;
            }
        }
    });
    seen
}

fn role_of(state: ServerState) -> Role {
    match state {
        ServerState::Leader => Role::Leader,
        ServerState::Candidate => Role::Candidate,
        ServerState::Learner => Role::Observer,
        ServerState::Follower | ServerState::Shutdown => Role::Follower,
    }
}

impl Consensus for RaftMember {
    async fn propose(&self, records: Arc<[Record]>) -> Result<Proposed, ControllerError> {
        let (clock, counters, proposed_at) = (self.clock.clone(), self.counters.clone(), self.clock.monotonic());
        let answer = self.raft.client_write_ff(Proposal(records)).await;
        let answer = answer.map_err(|error| ControllerError::failed(&error))?;
        Ok(Box::pin(async move {
            match answer.await {
                Ok(Ok(applied)) => {
                    let micros = clock.monotonic().saturating_sub(proposed_at).as_micros();
                    counters.commits.fetch_add(1, Ordering::Relaxed);
                    counters.commit_micros.fetch_add(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
                    Ok(applied.data)
                }
                Ok(Err(ClientWriteError::ForwardToLeader(_))) => Err(ControllerError::NotController),
                Ok(Err(error @ ClientWriteError::ChangeMembershipError(_))) => Err(ControllerError::failed(&error)),
                Err(_) => Err(ControllerError::Stopped),
            }
        }))
    }

    fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    fn image(&self) -> watch::Receiver<Arc<MetadataImage>> {
        self.image.clone()
    }

    fn counters(&self) -> Arc<QuorumCounters> {
        self.counters.clone()
    }

    async fn snapshot(&self) {
        if let Err(error) = self.raft.trigger().snapshot().await {
            tracing::warn!(%error, "no snapshot of the metadata was begun");
        }
    }

    async fn shutdown(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(%error, "the quorum's member did not end in order");
        }
    }
}
