//! Puts the node together, starts its parts in the order in which they need each other, and stops them in the opposite
//! order. Nothing is decided here.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use base::{Clock, Entropy, SystemClock, SystemEntropy, TopicId};
use cluster::controller::{RegisterBroker, SUPPORTED_FEATURES};
use cluster::records::Endpoint;
use coordinator::group::GroupConfig;
use partition_log::{Disk, FileCache, RealDisk};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::config::{Config, GroupsConfig, Listener, SecurityProtocol};
use crate::net::budget::ByteBudget;
use crate::net::connection::ConnectionSettings;
use crate::net::listener::{self, ConnectionCount, Shared};
use crate::net::open_files::OpenFiles;
use crate::node::Node;
use crate::observe::cluster::Granularity;
use crate::observe::{BrokerState, Health, Metrics};
use crate::runtime::answer_bytes::{ANSWER_BYTES_MAX, AnswerBytes};
use crate::runtime::controller::{
    self, ControllerHandle, ControllerSettings, MetadataFollower, Retention, SnapshotRule,
};
use crate::runtime::coordinator::{GroupCoordinator, hosted};
use crate::runtime::fetch_sessions::FetchSessions;
use crate::runtime::partition::{Keeper, KeeperSettings, LogDir, MetadataChange, Partitions, Scrub};
use crate::runtime::producer_ids::ProducerIds;
use crate::runtime::series::{self, Shown};
use crate::security::Authorizer;
use crate::storage::{self, Storage};
use crate::tasks::Tasks;

/// Changes of the metadata that may wait for the keeper.
const CHANGES_WAITING_MAX: usize = 16;
/// Longest wait for connections to end at the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a node until it is told to stop. The process may have `open_files_max` files open.
///
/// # Errors
/// The node cannot start; the text is one line that says what to do.
pub fn run(config: Config, open_files_max: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(serve(Arc::new(config), open_files_max))
}

/// What the parts of the node share.
struct Seams {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    files: Arc<FileCache>,
    tasks: Tasks,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl Seams {
    fn new(files: &OpenFiles) -> Seams {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        Seams {
            metrics: Metrics::new(clock.clone()),
            clock,
            entropy: Arc::new(SystemEntropy),
            files: FileCache::new(disk, files.segments),
            tasks: Tasks::new(),
            health: Arc::default(),
        }
    }
}

async fn serve(config: Arc<Config>, open_files_max: u64) -> anyhow::Result<()> {
    let files = OpenFiles::share(open_files_max);
    let seams = Seams::new(&files);
    seams.health.set(BrokerState::Starting);
    // Sockets first: a port in use must not leave freshly formatted directories behind. Clients that connect from here
    // on wait in the backlog until the node is ready.
    let sockets = open_sockets(&config).await?;
    if let Some(address) = &config.http_listen {
        crate::observe::http::serve(address, seams.metrics.clone(), seams.health.clone(), &seams.tasks).await?;
    }
    let disk = seams.files.disk().clone();
    let storage = storage::open(disk.as_ref(), &config, seams.clock.as_ref(), seams.entropy.as_ref())?;
    let controller = start_controller(&config, &seams, &storage).await?;
    seams.health.set(BrokerState::Recovery);
    let broker_epoch = register(&config, &seams, &storage, &controller, &sockets).await?;
    let image = Arc::new(ArcSwap::from(controller.image()));
    let partitions = Arc::new(Partitions::new(image.clone()));
    let mut keeper = Keeper::start(keeper_settings(&config, &seams, &storage), partitions.clone())?;
    let groups = Arc::new(start_groups(&config, &seams));
    let follower = controller.follow();
    keeper.open_all(image.load_full()).await;
    let (changes, told) = mpsc::channel(CHANGES_WAITING_MAX);
    let (close, closing) = oneshot::channel();
    seams.tasks.spawn_owner("keeper", keeper.run(told, closing));
    start_scrub(&config, &seams, &partitions);
    let node = Arc::new(Node {
        node_id: config.node_id,
        cluster_id: storage.cluster_id.clone(),
        clock: seams.clock.clone(),
        entropy: seams.entropy.clone(),
        authorizer: Authorizer,
        metrics: seams.metrics.clone(),
        config: config.clone(),
        image,
        controller: controller.clone(),
        producer_ids: ProducerIds::new(config.node_id, controller.clone()),
        partitions,
        groups,
        fetch_sessions: FetchSessions::new(usize::try_from(config.net.fetch_sessions_max).unwrap_or(0)),
        answer_bytes: AnswerBytes::new(ANSWER_BYTES_MAX),
    });
    show_series(&node, &seams, &storage);
    seams.tasks.spawn_owner("metadata", follow_metadata(node.clone(), follower, changes));
    seams.tasks.spawn(hosted::make_topic_when_wanted(
        node.groups.clone(),
        controller.clone(),
        config.offsets_topic.clone(),
        seams.entropy.clone(),
        seams.tasks.stop_signal(),
    ));
    controller.unfence(broker_epoch).await?;
    node.settled().await;
    accept(&node, &seams, sockets, files.connections);
    seams.health.set(BrokerState::Running);
    announce(&config, &storage);
    let failed = tokio::select! {
        () = wait_for_stop() => false,
        () = controller.failed() => true,
    };
    stop(&seams, &controller, close).await;
    drop(storage);
    tracing::info!("stopped");
    anyhow::ensure!(
        !failed,
        "the metadata log cannot be written; look at the disk of {}",
        config.storage.metadata_log_dir.display()
    );
    Ok(())
}

/// Opens the sockets of all broker listeners, each with the name of its listener.
async fn open_sockets(config: &Config) -> anyhow::Result<Vec<(Arc<str>, TcpListener)>> {
    let mut sockets = Vec::new();
    for listener in &config.listeners.broker {
        check_protocol(listener)?;
        for socket in listener::listen(&listener.name, &listener.host, listener.port).await? {
            sockets.push((Arc::<str>::from(listener.name.as_str()), socket));
        }
    }
    Ok(sockets)
}

fn check_protocol(listener: &Listener) -> anyhow::Result<()> {
    anyhow::ensure!(
        listener.protocol == SecurityProtocol::Plaintext,
        "listener {}: {} is not served yet; use PLAINTEXT",
        listener.name,
        listener.protocol.name()
    );
    Ok(())
}

async fn start_controller(config: &Config, seams: &Seams, storage: &Storage) -> anyhow::Result<ControllerHandle> {
    let directory = storage.directories.iter().find(|directory| directory.path == config.storage.metadata_log_dir);
    let directory = directory.context("the metadata log directory is not among the data directories")?;
    let size = |bytes: i64| u64::try_from(bytes).unwrap_or(u64::MAX);
    let settings = ControllerSettings {
        node_id: config.node_id,
        metadata_log_dir: directory.path.clone(),
        directory_id: directory.id,
        files: seams.files.clone(),
        settings: Arc::new(config.settings.iter().map(|(name, set)| (name.to_owned(), set.value.clone())).collect()),
        endpoints: config.listeners.controller.iter().map(|listener| endpoint(listener, listener.port)).collect(),
        segment_bytes: size(config.metadata.segment_bytes.into()),
        segment_ms: config.metadata.segment_ms,
        retention: Retention {
            bytes: u64::try_from(config.metadata.retention_bytes).ok(),
            ms: Some(config.metadata.retention_ms).filter(|ms| *ms >= 0),
        },
        snapshots: SnapshotRule {
            record_bytes: size(config.metadata.bytes_between_snapshots),
            interval_ms: size(config.metadata.snapshot_interval_max_ms),
        },
        flushes: seams.metrics.flushes().clone(),
        clock: seams.clock.clone(),
        tasks: seams.tasks.clone(),
    };
    Ok(controller::start(settings).await?)
}

fn endpoint(listener: &Listener, port: u16) -> Endpoint {
    Endpoint {
        name: listener.name.clone(),
        host: listener.host.clone(),
        port,
        security_protocol: listener.protocol.id(),
    }
}

/// Registers this node as controller and broker. A port that the system chose is told to clients as it is.
async fn register(
    config: &Config,
    seams: &Seams,
    storage: &Storage,
    controller: &ControllerHandle,
    sockets: &[(Arc<str>, TcpListener)],
) -> anyhow::Result<i64> {
    let bound = |name: &str| {
        let socket = sockets.iter().find(|(of, _)| &**of == name);
        socket.and_then(|(_, socket)| socket.local_addr().ok()).map_or(0, |address: SocketAddr| address.port())
    };
    let advertised = config.listeners.advertised.iter().map(|listener| match listener.port {
        0 => endpoint(listener, bound(&listener.name)),
        port => endpoint(listener, port),
    });
    let broker = RegisterBroker {
        broker_id: config.node_id,
        incarnation_id: TopicId(seams.entropy.uuid()),
        endpoints: advertised.collect(),
        features: SUPPORTED_FEATURES.iter().map(|feature| feature.to_supported()).collect(),
        rack: config.rack.clone(),
        log_dirs: storage.directories.iter().map(|directory| directory.id).collect(),
    };
    let controllers = config.listeners.controller.iter().map(|listener| endpoint(listener, listener.port));
    Ok(controller.register(broker, controllers.collect()).await?)
}

fn keeper_settings(config: &Arc<Config>, seams: &Seams, storage: &Storage) -> KeeperSettings {
    let in_log_dirs = storage.directories.iter().filter(|directory| config.storage.log_dirs.contains(&directory.path));
    KeeperSettings {
        config: config.clone(),
        log_dirs: in_log_dirs.map(|directory| LogDir { path: directory.path.clone(), id: directory.id }).collect(),
        files: seams.files.clone(),
        clock: seams.clock.clone(),
        entropy: seams.entropy.clone(),
        tasks: seams.tasks.clone(),
        metrics: seams.metrics.clone(),
        // A log thread is busy for microseconds at a time; the other cores are for the requests.
        threads: std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(4)),
    }
}

/// Starts the look at what lies on the disk, unless it is turned off.
fn start_scrub(config: &Config, seams: &Seams, partitions: &Arc<Partitions>) {
    let bytes_per_second = u64::try_from(config.logs.scrub_bytes_per_second).unwrap_or(0);
    let Some(log_dir) = config.storage.log_dirs.first().filter(|_| bytes_per_second > 0) else { return };
    let scrub = Scrub {
        partitions: partitions.clone(),
        disk: seams.files.disk().clone(),
        log_dir: log_dir.clone(),
        clock: seams.clock.clone(),
        counts: seams.metrics.scrub().clone(),
        bytes_per_second,
    };
    seams.tasks.spawn(scrub.run(seams.tasks.clone()));
}

fn start_groups(config: &Config, seams: &Seams) -> GroupCoordinator {
    let GroupsConfig {
        session_timeout_min_ms,
        session_timeout_max_ms,
        initial_rebalance_delay_ms,
        members_max,
        offset_metadata_bytes_max,
        commit_timeout_ms,
        offsets_retention_ms,
        offsets_retention_check_interval_ms,
        ..
    } = config.groups.clone();
    let group_config = GroupConfig {
        session_timeout_min_ms,
        session_timeout_max_ms,
        group_size_max: usize::try_from(members_max).unwrap_or(usize::MAX),
        initial_rebalance_delay_ms,
        offset_metadata_len_max: usize::try_from(offset_metadata_bytes_max).unwrap_or(0),
        offsets_retention_ms,
        offsets_retention_check_interval_ms,
        ..GroupConfig::default()
    };
    let commit_timeout = Duration::from_millis(u64::try_from(commit_timeout_ms).unwrap_or(0));
    GroupCoordinator::new(group_config, commit_timeout, seams.clock.clone(), seams.tasks.clone())
}

/// Puts each change of the metadata in force: first for those who ask what there is, then for the logs, then for the
/// groups, whose state is in the logs.
async fn follow_metadata(node: Arc<Node>, mut follower: MetadataFollower, changes: mpsc::Sender<MetadataChange>) {
    while let Some((image, delta)) = follower.changed().await {
        node.image.store(image.clone());
        if changes.send(MetadataChange { image: image.clone(), delta: delta.clone() }).await.is_err() {
            // The keeper has closed the logs: the node stops.
            return;
        }
        node.partitions.applied(image.offset).await;
        hosted::follow(&node.groups, &node.partitions, node.node_id, &image, &delta).await;
    }
}

fn accept(node: &Arc<Node>, seams: &Seams, sockets: Vec<(Arc<str>, TcpListener)>, connections_max: usize) {
    let net = &node.config.net;
    let idle = match net.connection_idle_max_ms {
        ms if ms < 0 => Duration::MAX,
        ms => Duration::from_millis(ms.unsigned_abs()),
    };
    let shared = Shared {
        node: node.clone(),
        tasks: seams.tasks.clone(),
        budget: ByteBudget::new(
            usize::try_from(net.queued_request_bytes_max).unwrap_or(usize::MAX),
            usize::try_from(net.request_bytes_max).unwrap_or(0),
        ),
        count: Arc::new(ConnectionCount::new(connections_max)),
        settings: ConnectionSettings { frame_bytes_max: usize::try_from(net.request_bytes_max).unwrap_or(0), idle },
    };
    for (name, socket) in sockets {
        seams.tasks.spawn(listener::accept_loop(name, socket, shared.clone()));
    }
}

fn show_series(node: &Arc<Node>, seams: &Seams, storage: &Storage) {
    let layers = node.config.settings.layers();
    let (controller, node_id) = (node.controller.clone(), node.node_id);
    let shown = Shown {
        node_id,
        image: node.image.clone(),
        partitions: node.partitions.clone(),
        groups: node.groups.clone(),
        is_active_controller: Box::new({
            let controller = controller.clone();
            move || controller.leader() == Some(node_id)
        }),
        quorum: Box::new(move || controller.quorum()),
        tasks: seams.tasks.clone(),
        clock: seams.clock.clone(),
        min_insync_replicas: layers.number("min.insync.replicas").and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
        granularity: Granularity::of(&layers.text("monedula.metrics.topic.granularity").unwrap_or_default()),
        disk: seams.files.disk().clone(),
        log_dirs: storage.directories.iter().map(|directory| directory.path.clone()).collect(),
    };
    series::show(&seams.metrics, shown);
    seams.metrics.add_source(seams.health.clone());
}

/// Says on stdout that the node is ready, where it listens, where its data is, and what to try first.
fn announce(config: &Config, storage: &Storage) {
    let dirs: Vec<String> = storage.directories.iter().map(|dir| dir.path.display().to_string()).collect();
    let address = config.listeners.advertised.first().map_or_else(String::new, |l| format!("{}:{}", l.host, l.port));
    // Kafka's own lines, which container tools wait for.
    tracing::info!("The broker has been unfenced. Transitioning from RECOVERY to RUNNING.");
    tracing::info!("Kafka Server started");
    let text = format!(
        "monedula {} is ready: bootstrap {address}, data in {}, cluster {}\ntry: kcat -b {address} -L",
        env!("CARGO_PKG_VERSION"),
        dirs.join(", "),
        storage.cluster_id,
    );
    // A closed stdout is no reason to stop.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

async fn wait_for_stop() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without handlers the signals end the process by themselves.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Ends what changes the logs before the logs, and the metadata last.
async fn stop(seams: &Seams, controller: &ControllerHandle, close: oneshot::Sender<oneshot::Sender<()>>) {
    tracing::info!("stopping");
    seams.health.set(BrokerState::ShuttingDown);
    seams.tasks.stop();
    let (done, closed) = oneshot::channel();
    if close.send(done).is_ok() {
        // A keeper that ended by itself has closed the logs as well.
        let _ = closed.await;
    }
    controller.shutdown().await;
    if tokio::time::timeout(STOP_TIMEOUT, seams.tasks.wait()).await.is_err() {
        tracing::warn!("some tasks did not end in time; nothing of the data depends on them");
    }
}
