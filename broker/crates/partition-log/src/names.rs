//! Names of the files and directories that Kafka keeps (Kafka: LogFileUtils, LocalLog, SnapshotFile). Text only.

use std::path::{Path, PathBuf};

use base::{Offset, TopicPartition};
use thiserror::Error;

/// Longest name that a file system takes, in bytes.
const NAME_LEN_MAX: usize = 255;

/// Highest offset that may name a file: what its segment can hold must not reach the end of the numbers.
const OFFSET_MAX: Offset = Offset::MAX - u32::MAX as Offset;

/// Holds the highest offset known to be synced, per partition.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// Holds the high watermark, per partition.
pub const REPLICATION_OFFSET_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Holds the first readable offset where it lies inside a segment, per partition.
pub const LOG_START_OFFSET_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// Holds the first offset that compaction has not seen, per partition.
pub const CLEANER_OFFSET_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// Present after an orderly stop.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// Locked by the process that owns the directory.
pub const LOCK_FILE: &str = ".lock";
/// Says to which cluster and node the directory belongs.
pub const META_PROPERTIES: &str = "meta.properties";
/// First offset of each leader epoch, in the partition's directory.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// Topic id, in the partition's directory.
pub const PARTITION_METADATA: &str = "partition.metadata";

/// Made by an operator in the directory of a partition that is offline for damage: the next start cuts the log at the
/// damage and removes the file.
pub const ACCEPT_DATA_LOSS: &str = "accept-data-loss";

/// What a file in a partition's directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Record batches.
    Log,
    /// Offset index.
    Index,
    /// Time index.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state as of the offset that names the file.
    Snapshot,
}

impl FileKind {
    /// All kinds.
    pub const ALL: [FileKind; 5] =
        [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Snapshot];

    /// The end of the file's name.
    pub fn suffix(self) -> &'static str {
        match self {
            FileKind::Log => ".log",
            FileKind::Index => ".index",
            FileKind::TimeIndex => ".timeindex",
            FileKind::TxnIndex => ".txnindex",
            FileKind::Snapshot => ".snapshot",
        }
    }
}

/// A change of a file that is under way, told by an addition to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leftover {
    /// `.deleted`: removed from the log, the file goes after a while.
    Deleted,
    /// `.cleaned`: being written by compaction.
    Cleaned,
    /// `.swap`: written by compaction and about to take its place.
    Swap,
}

impl Leftover {
    /// The addition.
    pub fn suffix(self) -> &'static str {
        match self {
            Leftover::Deleted => ".deleted",
            Leftover::Cleaned => ".cleaned",
            Leftover::Swap => ".swap",
        }
    }
}

/// A file of a partition's directory whose name begins with an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OffsetFile {
    /// The offset that names it: the first one of a segment, or the end of what a snapshot covers.
    pub offset: Offset,
    /// What it holds.
    pub kind: FileKind,
    /// Present while it is being put in place or removed.
    pub leftover: Option<Leftover>,
}

impl OffsetFile {
    /// Reads a name; `None` for any other file.
    pub fn parse(name: &str) -> Option<OffsetFile> {
        let (name, leftover) = [Leftover::Deleted, Leftover::Cleaned, Leftover::Swap]
            .into_iter()
            .find_map(|leftover| Some((name.strip_suffix(leftover.suffix())?, Some(leftover))))
            .unwrap_or((name, None));
        let kind = FileKind::ALL.into_iter().find(|kind| name.ends_with(kind.suffix()))?;
        let digits = name.strip_suffix(kind.suffix())?;
        if digits.len() != 20 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let offset = digits.parse().ok().filter(|offset| *offset <= OFFSET_MAX)?;
        Some(OffsetFile { offset, kind, leftover })
    }
}

/// Name of a file of a partition's directory: the offset in 20 digits and what it holds.
pub fn offset_file(directory: &Path, offset: Offset, kind: FileKind) -> PathBuf {
    directory.join(format!("{offset:020}{}", kind.suffix()))
}

/// The same name with the addition of a change under way.
pub fn with_leftover(path: &Path, leftover: Leftover) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(leftover.suffix());
    PathBuf::from(name)
}

/// Name of a segment file that recovery takes out of the log without removing it, because acknowledged records may be in
/// it. Kafka and a later start leave such files alone.
pub fn set_aside(path: &Path, now_ms: base::TimestampMs) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{now_ms}.aside"));
    PathBuf::from(name)
}

/// Directory of a partition.
pub fn partition_dir(partition: &TopicPartition) -> String {
    format!("{}-{}", partition.topic, partition.partition)
}

/// Why a directory of a log directory is no partition's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("directory '{name}' is not of the form topic-partition or topic-partition.uniqueId-delete")]
pub struct NotAPartition {
    /// Name of the directory.
    pub name: String,
}

/// What the directory of a partition is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DirKind {
    /// Serves.
    Live,
    /// `-delete`: the partition was deleted.
    Delete,
    /// `-future`: the copy that will replace the one in another log directory.
    Future,
    /// `-stray`: found at start and unknown to the cluster.
    Stray,
}

impl DirKind {
    fn suffix(self) -> &'static str {
        match self {
            DirKind::Live => "",
            DirKind::Delete => "-delete",
            DirKind::Future => "-future",
            DirKind::Stray => "-stray",
        }
    }
}

/// Name of a partition's directory while it is deleted, copied or found stray. `unique_id` is a UUID's 32 digits.
/// The topic is cut where the name would be too long (Kafka: LocalLog.logDirNameWithSuffixCappedLength).
pub fn renamed_dir(partition: &TopicPartition, unique_id: &uuid::Uuid, kind: DirKind) -> String {
    let ending = format!("-{}.{}{}", partition.partition, unique_id.simple(), kind.suffix());
    let kept = partition.topic.len().min(NAME_LEN_MAX - ending.len());
    // Topic names are ASCII, so that any cut is one between characters; a foreign name is kept whole.
    format!("{}{ending}", partition.topic.get(..kept).unwrap_or(&partition.topic))
}

/// Reads the name of a partition's directory (Kafka: LocalLog.parseTopicPartitionName).
pub fn parse_partition_dir(name: &str) -> Result<(TopicPartition, DirKind), NotAPartition> {
    let refused = || NotAPartition { name: name.to_owned() };
    let kind = [DirKind::Delete, DirKind::Future, DirKind::Stray]
        .into_iter()
        .find(|kind| name.ends_with(kind.suffix()))
        .filter(|_| name.contains('.'))
        .unwrap_or(DirKind::Live);
    let live = match kind {
        DirKind::Live => name,
        DirKind::Delete | DirKind::Future | DirKind::Stray => name.rsplit_once('.').ok_or_else(refused)?.0,
    };
    let (topic, index) = live.rsplit_once('-').ok_or_else(refused)?;
    let index = index.parse().ok().filter(|index| *index >= 0).ok_or_else(refused)?;
    if topic.is_empty() { Err(refused()) } else { Ok((TopicPartition::new(topic, index), kind)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_named_by_twenty_digits() {
        let path = offset_file(Path::new("t-0"), 42, FileKind::TimeIndex);
        assert_eq!(path, Path::new("t-0/00000000000000000042.timeindex"));
        for kind in FileKind::ALL {
            for leftover in [None, Some(Leftover::Deleted), Some(Leftover::Cleaned), Some(Leftover::Swap)] {
                let name = format!("{:020}{}{}", 7, kind.suffix(), leftover.map_or("", Leftover::suffix));
                assert_eq!(OffsetFile::parse(&name), Some(OffsetFile { offset: 7, kind, leftover }));
            }
        }
        for name in [
            "leader-epoch-checkpoint",
            "7.log",
            "0000000000000000000x.log",
            "99999999999999999999.log",
            "09223372036854775807.log",
        ] {
            assert_eq!(OffsetFile::parse(name), None);
        }
    }

    #[test]
    fn a_directory_names_its_partition() {
        let partition = TopicPartition::new("a.b-c", 12);
        let id = uuid::Uuid::from_u128(0xabc);
        assert_eq!(partition_dir(&partition), "a.b-c-12");
        assert_eq!(parse_partition_dir("a.b-c-12"), Ok((partition.clone(), DirKind::Live)));
        for kind in [DirKind::Delete, DirKind::Future, DirKind::Stray] {
            let name = renamed_dir(&partition, &id, kind);
            assert_eq!(parse_partition_dir(&name), Ok((partition.clone(), kind)));
        }
        assert_eq!(renamed_dir(&partition, &id, DirKind::Delete), format!("a.b-c-12.{:032x}-delete", 0xabc));
        assert!(parse_partition_dir("no-number").is_err() && parse_partition_dir("-1").is_err());
        let long = TopicPartition::new("x".repeat(249), 0);
        assert_eq!(renamed_dir(&long, &id, DirKind::Delete).len(), 255);
    }
}
