//! The checkpoint files of the log directories: recovery points, log start offsets, high watermarks. Written when they
//! differ from what was written last, so that an idle node writes nothing.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use base::{Offset, TopicPartition};
use partition_log::Disk;
use partition_log::formats::offset_checkpoint::{self, Offsets};
use partition_log::names::{LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT};

use super::live::Partition;

/// One of the three files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    RecoveryPoint,
    LogStartOffset,
    HighWatermark,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::RecoveryPoint, Kind::LogStartOffset, Kind::HighWatermark];

    fn file_name(self) -> &'static str {
        match self {
            Kind::RecoveryPoint => RECOVERY_POINT_CHECKPOINT,
            Kind::LogStartOffset => LOG_START_OFFSET_CHECKPOINT,
            Kind::HighWatermark => REPLICATION_OFFSET_CHECKPOINT,
        }
    }

    fn of(self, partition: &Partition) -> Option<Offset> {
        let reader = partition.reader();
        match self {
            Kind::RecoveryPoint => Some(reader.recovery_point()),
            // A log that starts at 0 needs no entry: that is what a missing one means.
            Kind::LogStartOffset => Some(reader.log_start_offset()).filter(|offset| *offset > 0),
            Kind::HighWatermark => Some(reader.high_watermark()),
        }
    }
}

/// What the files of all directories say.
pub(super) struct Checkpoints {
    disk: Arc<dyn Disk>,
    dirs: Vec<PathBuf>,
    written: HashMap<(Kind, usize), Offsets>,
    /// Lines of partitions that are offline: what the next start needs to tell their damage from a torn write.
    kept: HashMap<(Kind, usize), Offsets>,
}

impl Checkpoints {
    /// Reads the files. A file that cannot be read counts as missing: recovery then checks more than it had to.
    pub fn read(disk: Arc<dyn Disk>, dirs: Vec<PathBuf>) -> Self {
        let mut written = HashMap::new();
        for (at, dir) in dirs.iter().enumerate() {
            for kind in Kind::ALL {
                let path = dir.join(kind.file_name());
                match offset_checkpoint::read(disk.as_ref(), &path) {
                    Ok(offsets) => {
                        written.insert((kind, at), offsets);
                    }
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "checkpoint not readable; its logs are checked from their start");
                    }
                }
            }
        }
        Checkpoints { disk, dirs, written, kept: HashMap::new() }
    }

    /// What a file says of a partition; 0 when it says nothing.
    pub fn get(&self, kind: Kind, dir: usize, partition: &TopicPartition) -> Offset {
        self.written.get(&(kind, dir)).and_then(|offsets| offsets.get(partition)).copied().unwrap_or(0)
    }

    /// Keeps the lines of a partition that could not be opened. Everything below `synced` stays known to have been synced.
    pub fn keep(&mut self, dir: usize, partition: &TopicPartition, synced: Offset) {
        for kind in Kind::ALL {
            let known = self.get(kind, dir, partition);
            let offset = if kind == Kind::RecoveryPoint { known.max(synced) } else { known };
            if offset > 0 {
                self.kept.entry((kind, dir)).or_default().insert(partition.clone(), offset);
            }
        }
    }

    /// Removes the lines of partitions whose logs were deleted, at once: a log that is made under the same name must not
    /// be opened with the offsets of the old one (Kafka: LogManager.asyncDelete).
    pub fn forget(&mut self, partitions: &BTreeSet<TopicPartition>) {
        for at in 0..self.dirs.len() {
            for kind in Kind::ALL {
                if let Some(kept) = self.kept.get_mut(&(kind, at)) {
                    kept.retain(|partition, _| !partitions.contains(partition));
                }
                let Some(written) = self.written.get(&(kind, at)) else { continue };
                if partitions.iter().any(|partition| written.contains_key(partition)) {
                    let mut offsets = written.clone();
                    offsets.retain(|partition, _| !partitions.contains(partition));
                    self.write_dir(kind, at, offsets);
                }
            }
        }
    }

    /// Writes the file of each directory whose content changed.
    pub fn write(&mut self, kind: Kind, partitions: &[Arc<Partition>]) {
        for at in 0..self.dirs.len() {
            let offsets: Offsets = partitions
                .iter()
                .filter(|partition| partition.log_dir() == at)
                .filter_map(|partition| {
                    let name = TopicPartition::new(partition.topic().name.clone(), partition.index());
                    Some((name, kind.of(partition)?))
                })
                .collect();
            self.write_dir(kind, at, offsets);
        }
    }

    /// Writes the file of one directory if its content changed.
    pub fn write_dir(&mut self, kind: Kind, dir: usize, mut offsets: Offsets) {
        for (partition, offset) in self.kept.get(&(kind, dir)).into_iter().flatten() {
            offsets.insert(partition.clone(), *offset);
        }
        if self.written.get(&(kind, dir)) == Some(&offsets) {
            return;
        }
        let path = self.dirs[dir].join(kind.file_name());
        match offset_checkpoint::write(self.disk.as_ref(), &path, &offsets) {
            Ok(()) => {
                self.written.insert((kind, dir), offsets);
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "checkpoint not written; the next start checks more of the logs");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use partition_log::SimDisk;

    use super::*;

    #[test]
    fn lines_of_partitions_that_are_offline_stay_and_those_of_deleted_ones_go() {
        let disk = SimDisk::new();
        let dir = PathBuf::from("/d");
        disk.create_dir(&dir).unwrap();
        let names = ["gone", "offline", "live"].map(|topic| TopicPartition::new(topic, 0));
        let [gone, offline, live] = names.clone();
        let offsets: Offsets = names.into_iter().map(|name| (name, 7)).collect();
        offset_checkpoint::write(&disk, &dir.join(RECOVERY_POINT_CHECKPOINT), &offsets).unwrap();
        let read = |disk: &SimDisk| Checkpoints::read(Arc::new(disk.clone()), vec![dir.clone()]);
        let mut checkpoints = read(&disk);
        checkpoints.keep(0, &offline, 9);
        checkpoints.forget(&BTreeSet::from([gone.clone()]));
        let found = |partition| read(&disk.after_power_cut(1)).get(Kind::RecoveryPoint, 0, partition);
        assert_eq!((found(&gone), found(&offline), found(&live)), (0, 9, 7));
        checkpoints.write_dir(Kind::RecoveryPoint, 0, Offsets::from([(live.clone(), 8)]));
        assert_eq!((found(&gone), found(&offline), found(&live)), (0, 9, 8));
        checkpoints.forget(&BTreeSet::from([offline.clone()]));
        assert_eq!((found(&offline), found(&live)), (0, 8));
    }
}
