//! The metadata log's directory, `__cluster_metadata-0`: log, vote and snapshots in Kafka's files. One thread owns it, so
//! that votes and appends reach the disk in the order in which they were asked for. Knows nothing of how the quorum agrees.

pub mod batches;
pub mod quorum_state;
mod retention;
pub mod snapshot;
mod thread;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Clock, Offset, TopicId, TopicPartition};
use bytes::Bytes;
use partition_log::disk::{Disk, read_file};
use partition_log::{
    Access, Bound, FileCache, Log, LogConfig, LogOptions, LogReader, OpenError, ReadError, ReadRequest,
};

use crate::observe::DurationHistogram;

pub use batches::{BadBatch, Payload, StoredBatch};
pub use quorum_state::QuorumState;
pub use retention::{KeptSnapshot, Retention};
pub use snapshot::{BadSnapshot, SnapshotContent, SnapshotId};
pub use thread::{Done, StoreHandle, WeakStoreHandle};

/// Name of the directory and of the partition.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
/// Its id (Kafka: Uuid.METADATA_TOPIC_ID).
const METADATA_TOPIC_ID: TopicId = TopicId(uuid::Uuid::from_u128(1));
/// Largest snapshot that is read.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
/// Bytes read from the log at once.
const READ_BYTES: usize = 1 << 20;

/// What is needed to open the directory.
#[derive(Clone)]
pub struct StoreOptions {
    /// `metadata.log.dir`, in which the directory stands.
    pub log_dir: PathBuf,
    /// Open files, and the disk.
    pub files: Arc<FileCache>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// What is kept of log and snapshots.
    pub retention: Retention,
    /// Times of syncing a log.
    pub flushes: Arc<DurationHistogram>,
}

/// The directory as it was found.
pub struct OpenedStore {
    /// The owner.
    pub handle: StoreHandle,
    /// The vote; none when this node never took part in an election.
    pub quorum_state: Option<QuorumState>,
    /// What formatting wrote, when no later snapshot took its place.
    pub bootstrap: Option<SnapshotContent>,
    /// The newest snapshot of the metadata.
    pub snapshot: Option<(SnapshotId, SnapshotContent)>,
    /// The batches that follow it, or all when there is none.
    pub batches: Vec<StoredBatch>,
    /// Offset that the next record gets.
    pub end_offset: Offset,
}

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk refused.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The newest snapshot is damaged, which no crash does. An older one must not stand in for it unasked.
    #[error("the snapshot {path} is damaged: {source}")]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: BadSnapshot,
    },
    /// A batch of the log says something that this program does not understand.
    #[error("the metadata log cannot be read: {0}")]
    Batch(#[from] BadBatch),
    /// The log does not go on where the snapshot ends.
    #[error("the snapshot ends at offset {snapshot}, but the log begins at {log_start} and ends at {log_end}")]
    Gap {
        /// End of the snapshot.
        snapshot: Offset,
        /// Start of the log.
        log_start: Offset,
        /// End of the log.
        log_end: Offset,
    },
}

/// Opens the directory, or makes it, and starts the thread that owns it.
///
/// # Errors
/// The disk refuses, or what it holds is damaged in a part that was acknowledged.
pub fn open(options: StoreOptions) -> Result<OpenedStore, StoreError> {
    let directory = options.log_dir.join(format!("{METADATA_TOPIC}-0"));
    let disk = options.files.disk().clone();
    let at = |path: &PathBuf| {
        let path = path.clone();
        move |source| StoreError::Io { path, source }
    };
    if disk.metadata(&directory).map_err(at(&directory))?.is_none() {
        // The vote comes before the log, so that the directory must be there for good before either.
        disk.create_dir(&directory).map_err(at(&directory))?;
        disk.sync_dir(&options.log_dir).map_err(at(&options.log_dir))?;
    }
    let found = snapshot::list(disk.as_ref(), &directory).map_err(at(&directory))?;
    let newest = found.last().copied();
    let loaded = match newest {
        Some(id) => {
            let path = directory.join(id.file_name());
            let bytes = read_file(disk.as_ref(), &path, SNAPSHOT_BYTES_MAX).map_err(at(&path))?;
            let content = snapshot::decode(&bytes).map_err(|source| StoreError::Snapshot { path, source })?;
            Some((id, content))
        }
        None => None,
    };
    let (bootstrap, snapshot) = match loaded {
        Some((id, content)) if id.end_offset == 0 => (Some(content), None),
        other => (None, other),
    };
    let quorum_state = quorum_state::read(disk.as_ref(), &directory).map_err(at(&directory))?;
    let start = snapshot.as_ref().map_or(0, |(id, _)| id.end_offset);
    let log = Log::open(log_options(&options, directory.clone(), start))?.log;
    let (log_start, log_end) = (log.log_start_offset(), log.log_end_offset());
    let batches = match start {
        start if start < log_start || start > log_end => {
            return Err(StoreError::Gap { snapshot: start, log_start, log_end });
        }
        start => read_batches(&log.reader(), start, log_end)?,
    };
    let kept = kept_snapshots(disk.as_ref(), &directory, found, log_start).map_err(at(&directory))?;
    let handle = thread::start(log, directory.clone(), kept, start, &options).map_err(at(&directory))?;
    Ok(OpenedStore { handle, quorum_state, bootstrap, snapshot, batches, end_offset: log_end })
}

/// Removes the snapshots that end before the log's start, which a cut has left behind, and describes the others. The newest
/// is never among those that go: without it the log would have no beginning.
fn kept_snapshots(
    disk: &dyn Disk,
    directory: &Path,
    found: Vec<SnapshotId>,
    log_start: Offset,
) -> io::Result<Vec<KeptSnapshot>> {
    let (gone, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(|id| id.end_offset < log_start);
    gone.into_iter().try_for_each(|id| snapshot::remove_file(disk, directory, id))?;
    kept.into_iter().map(|id| snapshot::describe(disk, directory, id)).collect()
}

fn log_options(options: &StoreOptions, directory: PathBuf, recovery_point: Offset) -> LogOptions {
    let config = LogConfig {
        segment_bytes: options.segment_bytes,
        segment_ms: options.segment_ms,
        retention_ms: -1,
        retention_bytes: -1,
        ..LogConfig::default()
    };
    LogOptions {
        partition: TopicPartition::new(METADATA_TOPIC, 0),
        directory,
        topic_id: Some(METADATA_TOPIC_ID),
        config: Arc::new(config),
        files: options.files.clone(),
        // Everything that a snapshot covers was on disk before the snapshot was.
        recovery_point,
        log_start_offset: 0,
        high_watermark: recovery_point,
        clean_shutdown: false,
        now_ms: options.clock.wall_ms(),
    }
}

/// The batches from one offset to another. Waits for the disk.
fn read_batches(reader: &LogReader, from: Offset, to: Offset) -> Result<Vec<StoredBatch>, StoreError> {
    let mut found = Vec::new();
    let mut next = from;
    while next < to {
        let request = ReadRequest { offset: next, max_bytes: READ_BYTES, min_one_batch: true, bound: Bound::LogEnd };
        let mut rest: Bytes = reader.read(&request, Access::Wait)?.records;
        if rest.is_empty() {
            break;
        }
        while !rest.is_empty() && next < to {
            let batch = batches::parse(&rest)?;
            let _ = rest.split_to(batch.bytes.len());
            next = batch.last_offset + 1;
            found.push(StoredBatch { bytes: Bytes::copy_from_slice(&batch.bytes), ..batch });
        }
    }
    Ok(found)
}
