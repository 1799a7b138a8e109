//! The checkpoint files of the log directories: recovery points, log start offsets, high watermarks. Written when they
//! differ from what was written last, so that an idle node writes nothing.

use std::collections::HashMap;
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
        Checkpoints { disk, dirs, written }
    }

    /// What a file says of a partition; 0 when it says nothing.
    pub fn get(&self, kind: Kind, dir: usize, partition: &TopicPartition) -> Offset {
        self.written.get(&(kind, dir)).and_then(|offsets| offsets.get(partition)).copied().unwrap_or(0)
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
    pub fn write_dir(&mut self, kind: Kind, dir: usize, offsets: Offsets) {
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
