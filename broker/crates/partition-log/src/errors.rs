//! Why an operation on a log failed: one enum per operation, with the facts a caller needs to answer or to log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Offset;
use record_batch::BatchError;
use thiserror::Error;

use crate::formats::ReadFileError;
use crate::producers::ProducerError;

/// The disk refused an operation. Shared by all who waited for it.
#[derive(Debug, Clone, Error)]
#[error("cannot {operation} {path}: {source}")]
pub struct StorageError {
    /// What was tried, as a verb.
    pub operation: &'static str,
    /// On which file or directory.
    pub path: PathBuf,
    /// What the disk said.
    pub source: Arc<io::Error>,
}

impl StorageError {
    pub(crate) fn new(operation: &'static str, path: &Path, source: io::Error) -> Self {
        StorageError { operation, path: path.to_path_buf(), source: Arc::new(source) }
    }

    /// True when the volume is full: the log is whole and writable again when there is room.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Adds what was tried, and on what, to an error of the disk.
pub(crate) trait IoContext<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T, StorageError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T, StorageError> {
        self.map_err(|source| StorageError::new(operation, path, source))
    }
}

/// Why a log could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A small file of the directory is not readable.
    #[error(transparent)]
    File(#[from] ReadFileError),
    /// What was synced once is damaged. Cutting it off would lose acknowledged records, so that the log stays closed
    /// until an operator or another replica decides.
    #[error(
        "{path} is damaged at byte {position}, where offset {offset} should be, and it was synced before: {reason}"
    )]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Where the bad batch begins.
        position: u64,
        /// First offset that cannot be read.
        offset: Offset,
        /// What is wrong.
        reason: String,
    },
    /// Records of a message format that was in use before Kafka 0.11. They are not damaged, and nothing is cut.
    #[error("{path} holds records of message format v{magic} at byte {position}, which this version does not read")]
    OldFormat {
        /// The segment.
        path: PathBuf,
        /// Where the record begins.
        position: u64,
        /// The format's number.
        magic: i8,
    },
    /// The directory belongs to a topic with the same name and another id, deleted since.
    #[error("the directory holds topic id {found}, expected {expected}")]
    OtherTopic {
        /// Id in `partition.metadata`.
        found: base::TopicId,
        /// Id asked for.
        expected: base::TopicId,
    },
}

/// Why records were not appended. Nothing of them is in the log.
#[derive(Debug, Clone, Error)]
pub enum AppendError {
    /// The producer's state forbids it.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The bytes are not whole batches. A caller that validates before it appends never sees this.
    #[error(transparent)]
    Malformed(#[from] BatchError),
    /// There are no batches to append.
    #[error("no batches")]
    Empty,
    /// RECORD_LIST_TOO_LARGE: the batches of one request do not fit a segment.
    #[error("{bytes} bytes of batches exceed the segment size {limit}")]
    LargerThanSegment {
        /// Bytes to append.
        bytes: u64,
        /// `segment.bytes`.
        limit: u64,
    },
    /// A replicated batch is not where it should be: before the log's end, or out of order.
    #[error("batch at offset {offset} cannot follow the log end {log_end_offset}")]
    UnexpectedOffset {
        /// Base offset of the batch.
        offset: Offset,
        /// The log's end, or the end of the batch before.
        log_end_offset: Offset,
    },
    /// A replicated batch is damaged.
    #[error("batch at offset {offset} fails its CRC")]
    Corrupt {
        /// Base offset of the batch.
        offset: Offset,
    },
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The log failed before and takes nothing more until it is opened again.
    #[error("the log is offline after a storage failure")]
    Offline,
}

/// Why nothing could be read.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// OFFSET_OUT_OF_RANGE.
    #[error("offset {offset} is outside {log_start_offset}..={log_end_offset}")]
    OutOfRange {
        /// The offset asked for.
        offset: Offset,
        /// First readable offset.
        log_start_offset: Offset,
        /// Offset after the last record.
        log_end_offset: Offset,
    },
    /// What was asked for is not in memory; ask again where waiting for a disk is allowed.
    #[error("the read would wait for the disk")]
    WouldBlock,
    /// The log was closed or deleted.
    #[error("the log is closed")]
    Closed,
    /// Stored bytes are not what they should be.
    #[error("the log is corrupt at offset {offset}: {reason}")]
    Corrupt {
        /// Where a batch was expected.
        offset: Offset,
        /// What is wrong.
        reason: String,
    },
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a log could not be changed, synced or closed.
#[derive(Debug, Clone, Error)]
pub enum LogError {
    /// The disk refused to write. After a failed write or truncation the log is offline.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The disk refused to sync. What was written since the recovery point may be lost although reads still show it:
    /// final for the whole log directory.
    #[error("a sync failed, which is final for the log directory: {0}")]
    SyncFailed(StorageError),
    /// The log failed before and takes nothing more until it is opened again.
    #[error("the log is offline after a storage failure")]
    Offline,
    /// An offset lies outside the log, or above the high watermark where that is the limit.
    #[error("offset {offset} is above {limit}")]
    AboveLimit {
        /// The offset asked for.
        offset: Offset,
        /// The highest allowed.
        limit: Offset,
    },
    /// Part of the log that had to be read again is corrupt.
    #[error(transparent)]
    Read(#[from] ReadError),
}
