//! The keeper of this node's logs: follows the metadata, makes, opens and deletes logs, puts changed settings in force,
//! and sees to what is done from time to time. It changes no log itself; it asks the log threads.

mod offline;
mod opening;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Entropy, NodeId, PartitionIndex, TopicPartition};
use cluster::configs::{BrokerLayers, TopicConfig};
use cluster::{ConfigResource, DirectoryId, MetadataDelta, MetadataImage, ResourceKind};
use futures_util::future::join_all;
use partition_log::formats::clean_shutdown::{self, CleanShutdown};
use partition_log::names::{DirKind, parse_partition_dir};
use partition_log::{DeletedLog, FileCache};
use tokio::sync::{mpsc, oneshot};

use super::checkpoints::{Checkpoints, Kind};
use super::cleaner::{Cleaner, CleanerHandle};
use super::live::PartitionKey;
use super::log_thread::{Care, LogThread};
use super::registry::{Partitions, Published};
use super::settings::log_config;
use crate::config::{CleanerConfig, Config};
use crate::observe::Metrics;
use crate::tasks::Tasks;

/// Logs opened or deleted at the same time; bounds what waits in the queues of the log threads.
const AT_ONCE_MAX: usize = 512;

/// A directory of `log.dirs`.
#[derive(Debug, Clone)]
pub struct LogDir {
    /// Where it is.
    pub path: PathBuf,
    /// Its `directory.id`.
    pub id: DirectoryId,
}

/// What the keeper works with.
pub struct KeeperSettings {
    /// The node's settings.
    pub config: Arc<Config>,
    /// The log directories, in the order of `log.dirs`.
    pub log_dirs: Vec<LogDir>,
    /// Open files and the disk.
    pub files: Arc<FileCache>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids of deleted directories.
    pub entropy: Arc<dyn Entropy>,
    /// Starts background work.
    pub tasks: Tasks,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Number of log threads.
    pub threads: usize,
}

/// What the controller tells after each change of the metadata.
pub struct MetadataChange {
    /// The metadata after the change.
    pub image: Arc<MetadataImage>,
    /// What changed.
    pub delta: MetadataDelta,
}

/// What stood in the directories when the node started.
struct Found {
    dir_of: HashMap<TopicPartition, usize>,
    clean: Vec<bool>,
}

/// See the head of this file.
pub struct Keeper {
    settings: KeeperSettings,
    node_id: NodeId,
    partitions: Arc<Partitions>,
    threads: Vec<LogThread>,
    checkpoints: Checkpoints,
    cleaner: CleanerHandle,
    found: Found,
    image: Arc<MetadataImage>,
}

impl Keeper {
    /// Starts the log threads and looks what the directories hold.
    ///
    /// # Errors
    /// A directory cannot be listed, or no thread can be started.
    pub fn start(settings: KeeperSettings, partitions: Arc<Partitions>) -> anyhow::Result<Keeper> {
        let disk = settings.files.disk().clone();
        let paths: Vec<PathBuf> = settings.log_dirs.iter().map(|dir| dir.path.clone()).collect();
        let threads = (0..settings.threads.max(1))
            .map(|_| {
                let flushes = settings.metrics.flushes().clone();
                LogThread::start(settings.clock.clone(), settings.tasks.clone(), flushes)
            })
            .collect::<std::io::Result<Vec<_>>>()?;
        let mut found = Found { dir_of: HashMap::new(), clean: Vec::new() };
        for (at, path) in paths.iter().enumerate() {
            let clean = matches!(clean_shutdown::read(disk.as_ref(), path)?, CleanShutdown::Clean { .. });
            // Whatever happens from here on, the next start must not believe it.
            clean_shutdown::remove(disk.as_ref(), path)?;
            found.clean.push(clean);
            for entry in disk.list_dir(path)?.into_iter().filter(|entry| entry.is_dir) {
                match parse_partition_dir(&entry.name) {
                    Ok((partition, DirKind::Live)) => {
                        found.dir_of.insert(partition, at);
                    }
                    Ok((_, DirKind::Delete)) => DeletedLog::found(&path.join(&entry.name)).remove(disk.as_ref())?,
                    Ok((_, DirKind::Future | DirKind::Stray)) | Err(_) => {}
                }
            }
        }
        let checkpoints = Checkpoints::read(disk, paths);
        let cleaner = CleanerHandle::default();
        let node_id = settings.config.node_id;
        let image = Arc::new(MetadataImage::empty());
        Ok(Keeper { settings, node_id, partitions, threads, checkpoints, cleaner, found, image })
    }

    /// Opens everything that the metadata assigns to this node.
    pub async fn open_all(&mut self, image: Arc<MetadataImage>) {
        let delta = MetadataDelta::between(&self.image, &image);
        self.apply(MetadataChange { image, delta }).await;
        self.set_strays_aside();
        self.cleaner = Cleaner::start(&self.settings, CleanerConfig::read(self.layers()), self.partitions.clone());
    }

    /// Directories of partitions that the cluster does not know, or holds elsewhere, are renamed and kept (Kafka:
    /// LogManager, stray partitions).
    fn set_strays_aside(&mut self) {
        for (partition, at) in std::mem::take(&mut self.found.dir_of) {
            if &*partition.topic != METADATA_TOPIC && !self.holds(&partition) {
                self.set_stray_aside(&partition, at);
            }
        }
    }

    fn holds(&self, partition: &TopicPartition) -> bool {
        let topic = self.image.topic(&partition.topic);
        topic
            .and_then(|topic| topic.partition(partition.partition))
            .is_some_and(|assigned| assigned.replicas().contains(&self.node_id))
    }

    /// Follows the metadata until it is told to close.
    pub async fn run(
        mut self,
        mut changes: mpsc::Receiver<MetadataChange>,
        mut close: oneshot::Receiver<oneshot::Sender<()>>,
    ) {
        let logs = self.settings.config.logs.clone();
        let millis = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0).clamp(1, FOREVER_MS));
        let mut high_watermarks = every(millis(logs.high_watermark_checkpoint_interval_ms));
        let mut recovery_points = every(millis(logs.recovery_point_checkpoint_interval_ms.into()));
        let mut start_offsets = every(millis(logs.start_offset_checkpoint_interval_ms.into()));
        let mut retention = every(millis(logs.retention_check_interval_ms));
        let mut producers = every(millis(logs.producer_id_expiration_check_interval_ms.into()));
        let mut flush = every(millis(logs.flush_check_interval_ms));
        loop {
            tokio::select! {
                biased;
                told = &mut close => {
                    self.close().await;
                    if let Ok(done) = told {
                        let _ = done.send(());
                    }
                    return;
                }
                Some(change) = changes.recv() => self.apply(change).await,
                _ = high_watermarks.tick() => self.checkpoint(Kind::HighWatermark),
                _ = recovery_points.tick() => self.checkpoint(Kind::RecoveryPoint),
                _ = start_offsets.tick() => self.checkpoint(Kind::LogStartOffset),
                _ = retention.tick() => {
                    // Memory that a burst of reads has left behind; busy readers have it back at once.
                    self.settings.files.release_read_buffers();
                    self.care(Care::Retention).await;
                }
                _ = producers.tick() => self.care(Care::ExpiredProducers).await,
                _ = flush.tick() => self.care(Care::Flush).await,
            }
        }
    }

    async fn care(&self, care: Care) {
        for thread in &self.threads {
            thread.care(care).await;
        }
    }

    fn checkpoint(&mut self, kind: Kind) {
        let all = self.partitions.all();
        tokio::task::block_in_place(|| self.checkpoints.write(kind, &all));
    }

    async fn apply(&mut self, change: MetadataChange) {
        let MetadataChange { image, delta } = change;
        self.image = image.clone();
        let mut published = (*self.partitions.published()).clone();
        self.delete_logs(&delta, &mut published).await;
        self.open_logs(&delta, &mut published).await;
        self.change_settings(&delta, &published).await;
        self.partitions.publish(published, image.offset);
    }

    async fn delete_logs(&mut self, delta: &MetadataDelta, published: &mut Published) {
        let mut deleted = BTreeSet::new();
        for id in delta.topics_deleted.keys() {
            let Some(entry) = published.by_id.remove(id) else { continue };
            if published.by_name.get(&entry.topic.name).is_some_and(|named| named.topic.id == *id) {
                published.by_name.remove(&entry.topic.name);
            }
            let offline: Vec<_> = published.offline.iter().filter(|(topic, _)| topic == id).copied().collect();
            self.cleaner.forget(entry.topic.clone()).await;
            let delay = entry.topic.config.load().file_delete_delay_ms;
            for key in offline {
                published.offline.remove(&key);
                self.delete_offline(&TopicPartition::new(entry.topic.name.clone(), key.1), delay);
            }
            for partition in entry.partitions.iter().flatten() {
                let key = partition.key();
                let unique_id = self.settings.entropy.uuid();
                match self.thread_of(key).delete(key, unique_id).await {
                    Some(Ok(deleted)) => self.remove_later(deleted, delay),
                    Some(Err(error)) => {
                        tracing::error!(topic = %entry.topic.name, partition = key.1, %error, "the log cannot be deleted");
                    }
                    None => {}
                }
            }
            let names = (0..entry.partitions.len()).filter_map(|index| PartitionIndex::try_from(index).ok());
            deleted.extend(names.map(|index| TopicPartition::new(entry.topic.name.clone(), index)));
            self.settings.metrics.forget_topic(&entry.topic.name);
        }
        if !deleted.is_empty() {
            tokio::task::block_in_place(|| self.checkpoints.forget(&deleted));
        }
    }

    fn remove_later(&self, deleted: DeletedLog, delay_ms: i64) {
        let disk = self.settings.files.disk().clone();
        let tasks = self.settings.tasks.clone();
        let mut stop = tasks.stop_signal();
        let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0).min(FOREVER_MS));
        self.settings.tasks.spawn(async move {
            tokio::select! {
                // The next start removes what is left.
                () = stop.stopped() => return,
                () = tokio::time::sleep(delay) => {}
            }
            tasks.spawn_blocking(move || {
                if let Err(error) = deleted.remove(disk.as_ref()) {
                    tracing::warn!(%error, "files of a deleted partition are left; the next start removes them");
                }
            });
        });
    }

    fn layers(&self) -> BrokerLayers<'_> {
        BrokerLayers {
            at_start: &*self.settings.config.settings,
            all_brokers: self.image.configs(&ConfigResource::all_brokers()),
            this_broker: self.image.configs(&ConfigResource::broker(self.node_id)),
        }
    }

    fn topic_config(&self, name: &str) -> TopicConfig {
        TopicConfig::effective(self.image.topic_configs(name), &self.layers())
    }

    fn producer_id_expiration_ms(&self) -> i64 {
        self.layers().number("producer.id.expiration.ms").unwrap_or_default()
    }

    async fn change_settings(&self, delta: &MetadataDelta, published: &Published) {
        let own = self.node_id.0.to_string();
        let broker_changed = delta.configs_changed.iter().any(|resource| {
            resource.kind == ResourceKind::Broker && (resource.name.is_empty() || *resource.name == *own)
        });
        let expiration_ms = self.producer_id_expiration_ms();
        for entry in published.by_id.values() {
            let topic_changed = || delta.configs_changed.contains(&ConfigResource::topic(entry.topic.name.clone()));
            if !(broker_changed || topic_changed()) {
                continue;
            }
            let config = self.topic_config(&entry.topic.name);
            let for_log = log_config(&config, expiration_ms);
            entry.topic.config.store(Arc::new(config));
            for partition in entry.partitions.iter().flatten() {
                self.thread_of(partition.key()).set_config(partition.key(), for_log.clone()).await;
            }
        }
        if !delta.configs_changed.is_empty() {
            self.cleaner.configure(CleanerConfig::read(self.layers())).await;
        }
    }

    fn thread_of(&self, key: PartitionKey) -> &LogThread {
        let (topic, index) = key;
        // Partitions of a topic go to the threads in turn, beginning somewhere that the topic's id decides.
        let start = topic.0.as_u128() as usize;
        &self.threads[start.wrapping_add(index as usize) % self.threads.len()]
    }

    /// Closes all logs, writes the checkpoints and says that the stop was clean.
    async fn close(&mut self) {
        self.cleaner.close().await;
        let mut clean = vec![true; self.settings.log_dirs.len()];
        let mut offsets: HashMap<(Kind, usize), BTreeMap<TopicPartition, i64>> = HashMap::new();
        for closed in join_all(self.threads.iter().map(LogThread::close)).await.into_iter().flatten() {
            let name = TopicPartition::new(closed.partition.topic().name.clone(), closed.partition.index());
            let dir = closed.partition.log_dir();
            match closed.outcome {
                Ok(log) => {
                    let mut note = |kind, offset| {
                        offsets.entry((kind, dir)).or_default().insert(name.clone(), offset);
                    };
                    note(Kind::RecoveryPoint, log.recovery_point);
                    note(Kind::HighWatermark, log.high_watermark);
                    if log.log_start_offset > 0 {
                        note(Kind::LogStartOffset, log.log_start_offset);
                    }
                }
                Err(error) => {
                    tracing::error!(partition = %name, %error, "the log could not be closed in order; the next start checks it");
                    clean[dir] = false;
                }
            }
        }
        let broker_epoch = self.image.broker(self.node_id).map_or(-1, |broker| broker.epoch);
        tokio::task::block_in_place(|| {
            for ((kind, dir), offsets) in offsets {
                self.checkpoints.write_dir(kind, dir, offsets);
            }
            let disk = self.settings.files.disk().as_ref();
            for (dir, _) in self.settings.log_dirs.iter().zip(clean).filter(|(_, clean)| *clean) {
                if let Err(error) = clean_shutdown::write(disk, &dir.path, broker_epoch) {
                    tracing::warn!(dir = %dir.path.display(), %error, "the next start checks the logs, as after a crash");
                }
            }
        });
    }
}

/// Directory of the metadata log, which the controller owns.
const METADATA_TOPIC: &str = "__cluster_metadata";
/// Longest interval between rounds of care, in milliseconds; Kafka's "never" is Long.MAX.
const FOREVER_MS: u64 = 365 * 24 * 3_600_000;

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}
