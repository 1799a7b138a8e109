//! Opening logs: those that the metadata assigns to this node, found in its directories or made in one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{PartitionIndex, TopicId, TopicPartition};
use cluster::MetadataDelta;
use cluster::image::{PartitionImage, TopicImage};
use futures_util::future::join_all;
use partition_log::names::partition_dir;
use partition_log::{LogOptions, OpenError};

use super::super::checkpoints::Kind;
use super::super::live::{Partition, PartitionKey, Topic};
use super::super::log_thread::ToOpen;
use super::super::registry::{Published, TopicEntry};
use super::super::settings::log_config;
use super::offline::tell_recovery;
use super::{AT_ONCE_MAX, Keeper};

impl Keeper {
    pub(super) async fn open_logs(&mut self, delta: &MetadataDelta, published: &mut Published) {
        let mut by_topic: BTreeMap<TopicId, Vec<PartitionIndex>> = BTreeMap::new();
        for (topic, index) in &delta.partitions_changed {
            by_topic.entry(*topic).or_default().push(*index);
        }
        let mut to_open = Vec::new();
        for (id, indexes) in by_topic {
            let Some(image) = self.image.topic_by_id(id).cloned() else { continue };
            let entry = published.by_id.get(&id).cloned().unwrap_or_else(|| self.new_entry(&image));
            let mut partitions = entry.partitions.clone();
            partitions.resize(image.partitions().len(), None);
            for index in indexes {
                let Some(assigned) = image.partition(index) else { continue };
                let known = usize::try_from(index).ok().and_then(|at| partitions.get(at)).cloned().flatten();
                match known {
                    Some(partition) if partition.leader_epoch() != assigned.leader_epoch => {
                        self.thread_of(partition.key()).lead(partition.key(), assigned.leader_epoch).await;
                    }
                    Some(_) => {}
                    // What could not be opened stays as it is until the next start.
                    None if published.offline.contains(&(id, index)) => {}
                    None if assigned.replicas().contains(&self.node_id) => {
                        to_open.push(self.plan_opening(&entry.topic, index, assigned));
                    }
                    None => {}
                }
            }
            publish_entry(published, entry.topic.clone(), partitions);
        }
        let mut to_open = to_open.into_iter().peekable();
        while to_open.peek().is_some() {
            let part: Vec<ToOpen> = to_open.by_ref().take(AT_ONCE_MAX).collect();
            self.open_part(part, published).await;
        }
    }

    async fn open_part(&mut self, part: Vec<ToOpen>, published: &mut Published) {
        let opening = part.into_iter().map(|to_open| {
            let key: PartitionKey = (to_open.topic.id, to_open.options.partition.partition);
            let thread = self.thread_of(key).clone();
            async move { (to_open.clone(), key, thread.open(to_open).await) }
        });
        let mut opened: BTreeMap<TopicId, Vec<Arc<Partition>>> = BTreeMap::new();
        for (planned, key, mut outcome) in join_all(opening).await {
            let (name, dir) = (planned.options.partition.clone(), planned.log_dir);
            if matches!(outcome, Some(Err(OpenError::OtherTopic { .. }))) {
                self.set_stray_aside(&name, dir);
                outcome = self.thread_of(key).open(planned.afresh()).await;
            }
            match outcome {
                Some(Ok((partition, report))) => {
                    tell_recovery(&name, &report);
                    opened.entry(key.0).or_default().push(partition);
                }
                Some(Err(error)) => {
                    self.note_offline(&name, dir, &error);
                    published.offline.insert(key);
                }
                None => {}
            }
        }
        for (id, partitions) in opened {
            let Some(entry) = published.by_id.get(&id).cloned() else { continue };
            let mut slots = entry.partitions.clone();
            for partition in partitions {
                if let Some(slot) = usize::try_from(partition.index()).ok().and_then(|at| slots.get_mut(at)) {
                    *slot = Some(partition);
                }
            }
            publish_entry(published, entry.topic.clone(), slots);
        }
    }

    fn new_entry(&self, image: &TopicImage) -> Arc<TopicEntry> {
        let topic = Arc::new(Topic {
            name: image.name.clone(),
            id: image.id,
            config: ArcSwap::from_pointee(self.topic_config(&image.name)),
            metrics: self.settings.metrics.topic(&image.name),
        });
        Arc::new(TopicEntry { topic, partitions: Vec::new() })
    }

    fn plan_opening(&mut self, topic: &Arc<Topic>, index: PartitionIndex, assigned: &PartitionImage) -> ToOpen {
        let partition = TopicPartition::new(topic.name.clone(), index);
        let dir = self.found.dir_of.remove(&partition);
        let log_dir = dir.unwrap_or_else(|| self.choose_dir(assigned));
        if dir.is_none() && self.checkpoints.get(Kind::RecoveryPoint, log_dir, &partition) > 0 {
            tracing::warn!(%partition, "the checkpoints know this partition and its directory is gone; it begins empty");
            tokio::task::block_in_place(|| self.checkpoints.forget(&BTreeSet::from([partition.clone()])));
        }
        let at_start = |kind| if dir.is_some() { self.checkpoints.get(kind, log_dir, &partition) } else { 0 };
        let options = LogOptions {
            directory: self.settings.log_dirs[log_dir].path.join(partition_dir(&partition)),
            topic_id: Some(topic.id),
            config: log_config(&topic.config.load(), self.producer_id_expiration_ms()),
            files: self.settings.files.clone(),
            recovery_point: at_start(Kind::RecoveryPoint),
            log_start_offset: at_start(Kind::LogStartOffset),
            high_watermark: at_start(Kind::HighWatermark),
            clean_shutdown: dir.is_none() || self.found.clean[log_dir],
            now_ms: self.settings.clock.wall_ms(),
            partition,
        };
        ToOpen { options, topic: topic.clone(), leader_epoch: assigned.leader_epoch, log_dir }
    }

    /// The directory that the metadata names, or else the one with the fewest partitions (Kafka:
    /// LogManager.nextLogDirs).
    fn choose_dir(&self, assigned: &PartitionImage) -> usize {
        let dirs = &self.settings.log_dirs;
        let named = assigned.directory_of(self.node_id);
        if let Some(at) = dirs.iter().position(|dir| Some(dir.id) == named) {
            return at;
        }
        if dirs.len() == 1 {
            return 0;
        }
        let mut counts = vec![0usize; dirs.len()];
        for partition in self.partitions.all() {
            counts[partition.log_dir()] += 1;
        }
        counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(at, _)| at)
    }
}

fn publish_entry(published: &mut Published, topic: Arc<Topic>, partitions: Vec<Option<Arc<Partition>>>) {
    let entry = Arc::new(TopicEntry { topic, partitions });
    published.by_name.insert(entry.topic.name.clone(), entry.clone());
    published.by_id.insert(entry.topic.id, entry);
}
