//! The cleaner of this node: finds the compacted logs that are worth it, and cleans so many at a time (Kafka: LogCleaner,
//! LogCleanerManager). It changes no log itself: it asks the logs' owners, and reads and writes on threads that may wait.

mod checkpoint;
mod pace;
mod plan;
mod run;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Entropy, TopicId, TopicPartition};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use partition_log::{Cleanable, CleaningOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::keeper::KeeperSettings;
use super::live::{Partition, PartitionKey, Topic};
use super::log_thread::{LogThread, LookAt};
use super::registry::Partitions;
use crate::config::CleanerConfig;
use crate::observe::cleaner::CleanerSource;
use checkpoint::CleanedOffsets;
use pace::{Cancel, Pace};
use plan::{Mark, Plan, Timed};
use run::{Ended, Order};
use view::Board;

/// Commands that may wait.
const COMMANDS_WAITING_MAX: usize = 16;
/// Logs that one message to a log thread asks for, so that appends do not wait for many of them.
const LOOKS_AT_ONCE_MAX: usize = 64;
/// Shortest pause between two looks; `log.cleaner.backoff.ms` may be 0.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Longest pause; Kafka's "never" is Long.MAX.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest time for which the checkpoints may lie behind.
const SAVE_DELAY: Duration = Duration::from_secs(1);
/// Most memory of one cleaning's offset map, as in Kafka.
const MAP_BYTES_MAX: usize = i32::MAX as usize;

enum Command {
    Configure(CleanerConfig),
    Forget(Arc<Topic>, oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

/// Handle of the keeper to the cleaner; the default is one that is switched off.
#[derive(Default)]
pub(super) struct CleanerHandle(Option<mpsc::Sender<Command>>);

impl CleanerHandle {
    async fn tell(&self, command: Command) {
        if let Some(queue) = &self.0 {
            // A cleaner that has ended cleans nothing, which is what all commands could ask for.
            let _ = queue.send(command).await;
        }
    }

    /// Settings of logs have changed, and the cleaner's are these.
    pub async fn configure(&self, config: CleanerConfig) {
        self.tell(Command::Configure(config)).await;
    }

    /// Returns when nothing of the topic is cleaned any more, nor ever will be: its directories may be renamed.
    pub async fn forget(&self, topic: Arc<Topic>) {
        let (reply, done) = oneshot::channel();
        self.tell(Command::Forget(topic, reply)).await;
        let _ = done.await;
    }

    /// Returns when nothing is cleaned any more and the checkpoints are written.
    pub async fn close(&self) {
        let (reply, done) = oneshot::channel();
        self.tell(Command::Close(reply)).await;
        let _ = done.await;
    }
}

/// Logs to look at, by the thread that owns them.
type ToLook = Vec<(LogThread, Vec<(Arc<Partition>, Mark)>)>;

/// A cleaning that is under way.
struct Running {
    partition: Arc<Partition>,
    cleanable: Cleanable,
    options: CleaningOptions,
    cancel: Arc<Cancel>,
    began: Duration,
}

/// See the head of this file.
pub(super) struct Cleaner {
    config: CleanerConfig,
    partitions: Arc<Partitions>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    cleaned: CleanedOffsets,
    save_at: Option<Instant>,
    pace: Arc<Pace>,
    plan: Plan<PartitionKey>,
    /// The compacted partitions as of the last look.
    known: HashMap<PartitionKey, Arc<Partition>>,
    /// Topics that are being deleted.
    gone: HashSet<TopicId>,
    running: HashMap<PartitionKey, Running>,
    jobs: FuturesUnordered<BoxFuture<'static, (PartitionKey, Ended)>>,
    /// Partitions whose disk refused, which was told.
    refused: HashSet<PartitionKey>,
    board: Board,
}

impl Cleaner {
    /// Starts it after the logs were opened and before anything is appended to them.
    pub fn start(settings: &KeeperSettings, config: CleanerConfig, partitions: Arc<Partitions>) -> CleanerHandle {
        if !config.enable {
            return CleanerHandle::default();
        }
        let paths = settings.log_dirs.iter().map(|dir| dir.path.clone());
        let mut cleaned = CleanedOffsets::read(settings.files.disk().clone(), paths);
        let held: HashMap<TopicPartition, Arc<Partition>> =
            partitions.all().into_iter().map(|partition| (name_of(&partition), partition)).collect();
        cleaned.bound(|dir, name| {
            let partition = held.get(name).filter(|partition| partition.log_dir() == dir)?;
            Some(partition.reader().log_end_offset())
        });
        let directories = settings.log_dirs.iter().map(|dir| dir.path.display().to_string()).collect();
        let board = Board::new(settings.clock.clone(), directories);
        settings.metrics.add_source(CleanerSource { read: board.reader() });
        let cleaner = Cleaner {
            pace: Arc::new(Pace::new(settings.clock.clone(), config.io_bytes_per_second_max)),
            config,
            partitions,
            clock: settings.clock.clone(),
            entropy: settings.entropy.clone(),
            cleaned,
            save_at: None,
            plan: Plan::new(),
            known: HashMap::new(),
            gone: HashSet::new(),
            running: HashMap::new(),
            jobs: FuturesUnordered::new(),
            refused: HashSet::new(),
            board,
        };
        let (queue, commands) = mpsc::channel(COMMANDS_WAITING_MAX);
        settings.tasks.spawn_owner("cleaner", cleaner.run(commands));
        CleanerHandle(Some(queue))
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut look_at = Instant::now();
        loop {
            let save_at = self.save_at;
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Command::Configure(config)) => {
                        self.configure(config);
                        look_at = look_at.min(Instant::now() + self.pause());
                    }
                    Some(Command::Forget(topic, reply)) => {
                        self.forget(&topic).await;
                        let _ = reply.send(());
                    }
                    Some(Command::Close(reply)) => {
                        self.close().await;
                        let _ = reply.send(());
                        return;
                    }
                    None => return self.close().await,
                },
                Some((key, ended)) = self.jobs.next() => self.go_on_after(key, ended).await,
                () = tokio::time::sleep_until(look_at) => {
                    self.look(true).await;
                    look_at = Instant::now() + self.pause();
                }
                () = async { tokio::time::sleep_until(save_at.unwrap_or_else(Instant::now)).await }, if save_at.is_some() => {
                    self.save();
                }
            }
            self.begin_next();
            if self.cleaned.is_unsaved() && self.save_at.is_none() {
                self.save_at = Some(Instant::now() + SAVE_DELAY);
            }
        }
    }

    /// As long as there is something to clean there is no pause.
    async fn go_on_after(&mut self, key: PartitionKey, ended: Ended) {
        let done = matches!(ended, Ended::Done(_));
        self.ended(key, ended);
        if let Some(partition) = self.known.get(&key).filter(|_| done).cloned() {
            let mark = mark_of(&partition);
            self.look_at(&partition.thread().clone(), &[(partition, mark)]).await;
            self.begin_next();
            if self.running.is_empty() {
                self.look(false).await;
            }
        }
    }

    fn configure(&mut self, config: CleanerConfig) {
        if config != self.config {
            self.pace.set_rate(config.io_bytes_per_second_max);
            self.plan.reset_uncleanable();
            self.config = config;
        }
        self.plan.look_again();
    }

    /// `log.cleaner.backoff.ms`.
    fn pause(&self) -> Duration {
        Duration::from_millis(self.config.backoff_ms).clamp(PAUSE_MIN, PAUSE_MAX)
    }

    fn save(&mut self) {
        self.save_at = None;
        tokio::task::block_in_place(|| self.cleaned.save());
    }

    /// Looks at the compacted logs that have changed, and at those that time alone may have changed if `timed`.
    async fn look(&mut self, timed: bool) {
        let mut known = HashMap::new();
        let mut to_look: ToLook = Vec::new();
        let topics = self.partitions.topics();
        if !self.gone.is_empty() {
            let here: HashSet<TopicId> = topics.iter().map(|entry| entry.topic.id).collect();
            self.gone.retain(|gone| here.contains(gone));
        }
        for entry in topics.iter().filter(|entry| !self.gone.contains(&entry.topic.id)) {
            let config = entry.topic.config.load();
            if !config.cleanup_compact {
                continue;
            }
            let timed = Timed {
                retention: timed && config.cleanup_delete,
                compaction_lag: timed,
                compaction_lag_max: config.max_compaction_lag_ms != i64::MAX,
            };
            for partition in entry.partitions.iter().flatten() {
                known.insert(partition.key(), partition.clone());
                let mark = mark_of(partition);
                if self.plan.wants_look(partition.key(), mark, timed) {
                    let at = to_look.iter().position(|(thread, _)| thread.is_same(partition.thread()));
                    let at = at.unwrap_or_else(|| {
                        to_look.push((partition.thread().clone(), Vec::new()));
                        to_look.len() - 1
                    });
                    to_look[at].1.push((partition.clone(), mark));
                }
            }
        }
        self.plan.retain(|key| known.contains_key(key));
        self.refused.retain(|key| known.contains_key(key));
        self.known = known;
        for (thread, logs) in to_look {
            for part in logs.chunks(LOOKS_AT_ONCE_MAX) {
                self.look_at(&thread, part).await;
            }
        }
        self.board.looked(&self.plan, |key| self.known.get(key).map(|partition| partition.log_dir()));
    }

    async fn look_at(&mut self, thread: &LogThread, logs: &[(Arc<Partition>, Mark)]) {
        let asked = logs.iter().map(|(partition, _)| LookAt {
            key: partition.key(),
            checkpoint: self.cleaned.get(partition.log_dir(), &name_of(partition)),
        });
        let looked = thread.look(asked.collect()).await;
        for ((partition, mark), cleanable) in logs.iter().zip(looked) {
            if let Some(found) = cleanable.filter(|found| found.checkpoint_is_invalid) {
                self.cleaned.set(partition.log_dir(), name_of(partition), found.first_dirty_offset);
            }
            self.plan.looked(partition.key(), *mark, cleanable);
        }
    }

    /// Begins cleanings, as many as may run at a time.
    fn begin_next(&mut self) {
        let threads = self.config.threads.max(1);
        while self.running.len() < threads {
            let Some((key, cleanable)) = self.plan.take_next() else { return };
            let Some(partition) = self.known.get(&key).filter(|_| !self.gone.contains(&key.0)).cloned() else {
                self.plan.ended(key);
                continue;
            };
            let options = CleaningOptions {
                now_ms: self.clock.wall_ms(),
                map_bytes_max: (self.config.dedupe_buffer_bytes / threads).min(MAP_BYTES_MAX),
                map_load_factor: self.config.buffer_load_factor,
                seed: self.entropy.next_u64(),
            };
            let cancel = Arc::new(Cancel::default());
            let order = Order {
                partition: partition.clone(),
                cleanable,
                options,
                pace: self.pace.clone(),
                cancel: cancel.clone(),
            };
            self.running.insert(key, Running { partition, cleanable, options, cancel, began: self.clock.monotonic() });
            self.jobs.push(Box::pin(async move { (key, run::clean(order).await) }));
        }
    }

    fn ended(&mut self, key: PartitionKey, ended: Ended) {
        let Some(running) = self.running.remove(&key) else { return };
        let name = name_of(&running.partition);
        match ended {
            Ended::Done(report) => {
                let took = self.clock.monotonic().saturating_sub(running.began);
                let (from, to) = (running.cleanable.first_dirty_offset, report.end_offset);
                tracing::info!(partition = %name, from, to, keys = report.map_keys, segments = report.segments_read, bytes = report.bytes_read, kept_bytes = report.bytes_written, ms = took.as_millis() as u64, "log cleaned");
                self.cleaned.set(running.partition.log_dir(), name, report.end_offset);
                self.refused.remove(&key);
                self.board.cleaned(&report, running.options.map_slots(), took, self.config.threads.max(1));
            }
            Ended::Nothing | Ended::Interrupted => {}
            Ended::Refused(error) => {
                if self.refused.insert(key) {
                    tracing::error!(partition = %name, %error, "the log cannot be cleaned now; look at the disk. It is tried again until it succeeds");
                }
            }
            Ended::Hopeless(reason) => {
                tracing::error!(partition = %name, reason, "the log cannot be cleaned and grows until this is repaired; it serves on, and is tried again after a restart");
                self.plan.set_uncleanable(key);
            }
        }
        self.plan.ended(key);
    }

    async fn forget(&mut self, topic: &Topic) {
        self.gone.insert(topic.id);
        self.cancel(|key| key.0 == topic.id).await;
        self.cleaned.forget_topic(&topic.name);
    }

    async fn close(&mut self) {
        self.cancel(|_| true).await;
        self.save();
    }

    /// Tells cleanings to end and waits until they have.
    async fn cancel(&mut self, which: impl Fn(&PartitionKey) -> bool) {
        let told: Vec<PartitionKey> = self.running.keys().filter(|key| which(key)).copied().collect();
        for key in &told {
            if let Some(running) = self.running.get(key) {
                running.cancel.cancel();
            }
        }
        while told.iter().any(|key| self.running.contains_key(key)) {
            let Some((key, ended)) = self.jobs.next().await else { return };
            self.ended(key, ended);
        }
    }
}

fn name_of(partition: &Partition) -> TopicPartition {
    TopicPartition::new(partition.topic().name.clone(), partition.index())
}

fn mark_of(partition: &Partition) -> Mark {
    let reader = partition.reader();
    Mark { start_offset: reader.log_start_offset(), end_offset: reader.log_end_offset() }
}
