//! `cleaner-offset-checkpoint` of each log directory: up to where each log was cleaned. Written in full when it changed,
//! as Kafka does; an entry that is lost or too low costs a cleaning and no data.

use std::path::PathBuf;
use std::sync::Arc;

use base::{Offset, TopicPartition};
use partition_log::Disk;
use partition_log::formats::offset_checkpoint::{self, Offsets};
use partition_log::names::CLEANER_OFFSET_CHECKPOINT;

struct Directory {
    path: PathBuf,
    offsets: Offsets,
    unsaved: bool,
}

/// What the files of all log directories say, or will say when they are saved.
pub(super) struct CleanedOffsets {
    disk: Arc<dyn Disk>,
    directories: Vec<Directory>,
}

impl CleanedOffsets {
    /// Reads the files. One that cannot be read counts as missing.
    pub(super) fn read(disk: Arc<dyn Disk>, paths: impl Iterator<Item = PathBuf>) -> Self {
        let directories = paths.map(|path| {
            let file = path.join(CLEANER_OFFSET_CHECKPOINT);
            let offsets = offset_checkpoint::read(disk.as_ref(), &file).unwrap_or_else(|error| {
                tracing::warn!(path = %file.display(), %error, "checkpoint not readable; compacted logs are cleaned from their start");
                Offsets::new()
            });
            Directory { path, offsets, unsaved: false }
        });
        let directories = directories.collect();
        CleanedOffsets { disk, directories }
    }

    pub(super) fn get(&self, dir: usize, partition: &TopicPartition) -> Option<Offset> {
        self.directories.get(dir)?.offsets.get(partition).copied()
    }

    pub(super) fn set(&mut self, dir: usize, partition: TopicPartition, offset: Offset) {
        if let Some(directory) = self.directories.get_mut(dir) {
            directory.unsaved |= directory.offsets.insert(partition, offset) != Some(offset);
        }
    }

    /// Keeps the entries for which `end_of` knows where the log in that directory ends, and none above that end: a log
    /// that a crash has cut is dirty from there on (Kafka: LogCleanerManager.maybeTruncateCheckpoint).
    pub(super) fn bound(&mut self, end_of: impl Fn(usize, &TopicPartition) -> Option<Offset>) {
        for (at, directory) in self.directories.iter_mut().enumerate() {
            directory.offsets.retain(|partition, offset| {
                let end = end_of(at, partition);
                let bounded = end.map_or(*offset, |end| end.min(*offset));
                directory.unsaved |= end.is_none() || bounded != *offset;
                *offset = bounded;
                end.is_some()
            });
        }
    }

    /// Forgets the partitions of a topic, so that a later one of its name begins anew.
    pub(super) fn forget_topic(&mut self, name: &str) {
        for directory in &mut self.directories {
            let first = TopicPartition::new(name, 0);
            let of_topic = directory.offsets.range(first..).map(|(partition, _)| partition);
            let gone: Vec<TopicPartition> =
                of_topic.take_while(|partition| &*partition.topic == name).cloned().collect();
            directory.unsaved |= !gone.is_empty();
            gone.iter().for_each(|partition| {
                directory.offsets.remove(partition);
            });
        }
    }

    pub(super) fn is_unsaved(&self) -> bool {
        self.directories.iter().any(|directory| directory.unsaved)
    }

    /// Writes what changed; waits for the disk.
    pub(super) fn save(&mut self) {
        for directory in self.directories.iter_mut().filter(|directory| directory.unsaved) {
            let path = directory.path.join(CLEANER_OFFSET_CHECKPOINT);
            // After a failure the next change tries again.
            directory.unsaved = false;
            if let Err(error) = offset_checkpoint::write(self.disk.as_ref(), &path, &directory.offsets) {
                tracing::error!(path = %path.display(), %error, "checkpoint not written; after the next start compacted logs are cleaned again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use partition_log::SimDisk;

    use super::*;

    fn name(topic: &str) -> TopicPartition {
        TopicPartition::new(topic, 0)
    }

    fn on(disk: &Arc<SimDisk>) -> CleanedOffsets {
        CleanedOffsets::read(disk.clone(), ["/a", "/b"].into_iter().map(PathBuf::from))
    }

    fn disk() -> Arc<SimDisk> {
        let disk = Arc::new(SimDisk::new());
        disk.create_dir("/a".as_ref()).unwrap();
        disk.create_dir("/b".as_ref()).unwrap();
        disk
    }

    #[test]
    fn what_was_saved_is_there_after_a_start_and_what_did_not_change_is_not_written() {
        let disk = disk();
        let mut offsets = on(&disk);
        assert!(!offsets.is_unsaved());
        offsets.set(1, name("t"), 7);
        offsets.save();
        offsets.set(1, name("t"), 7);
        assert!(!offsets.is_unsaved());
        let again = on(&disk);
        assert_eq!((again.get(0, &name("t")), again.get(1, &name("t"))), (None, Some(7)));
    }

    #[test]
    fn an_offset_behind_the_end_of_its_log_is_cut_and_one_without_log_goes() {
        let mut offsets = on(&disk());
        for (topic, offset) in [("cut", 9), ("gone", 9), ("same", 3)] {
            offsets.set(0, name(topic), offset);
        }
        offsets.bound(|dir, partition| (dir == 0 && &*partition.topic != "gone").then_some(5));
        let of = |topic: &str| offsets.get(0, &name(topic));
        assert_eq!((of("cut"), of("gone"), of("same")), (Some(5), None, Some(3)));
    }

    #[test]
    fn a_topic_that_was_deleted_leaves_no_offset_to_a_later_one_of_its_name() {
        let mut offsets = on(&disk());
        offsets.set(0, name("t"), 9);
        offsets.set(0, name("other"), 9);
        offsets.set(0, name("u"), 9);
        offsets.save();
        offsets.forget_topic("t");
        assert!(offsets.is_unsaved());
        assert_eq!((offsets.get(0, &name("t")), offsets.get(0, &name("other"))), (None, Some(9)));
    }
}
