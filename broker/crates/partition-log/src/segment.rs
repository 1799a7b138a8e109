//! One segment as its owner and its readers share it: how far it reaches, its open file, its index in memory. All of it
//! is read without a lock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use base::{Offset, TimestampMs};

use crate::disk::{Disk, read_file};
use crate::errors::{IoContext, StorageError};
use crate::file_cache::{FileCache, OpenFile};
use crate::names::{FileKind, offset_file};
use crate::offset_index::{self, OffsetEntries};
use crate::time_index::{self, TimeEntry};
use crate::txn_index::{self, AbortedTxn};

/// Largest index file that is read; Kafka's default limit is 10 MiB and a topic may raise it.
const INDEX_BYTES_MAX: u64 = 1 << 30;
/// The largest timestamp is still in the time index only.
const NOT_LOADED: i64 = i64::MIN;

/// What readers of a segment need when its files have other names.
#[derive(Debug)]
struct Retired {
    file: Arc<OpenFile>,
    index: Arc<OffsetEntries>,
    aborted_txns: Vec<AbortedTxn>,
}

/// A segment of a log.
#[derive(Debug)]
pub(crate) struct Segment {
    base_offset: Offset,
    size_bytes: AtomicU64,
    /// No more is appended.
    sealed: AtomicBool,
    max_timestamp: AtomicI64,
    max_timestamp_offset: AtomicI64,
    /// When its file was last known to change, for segments whose records have no timestamps.
    modified_ms: AtomicI64,
    file: ArcSwapOption<OpenFile>,
    index: ArcSwapOption<OffsetEntries>,
    used: AtomicBool,
    /// Present once other files have its names: its readers go on with these.
    retired: OnceLock<Retired>,
    has_txn_index: AtomicBool,
}

impl Segment {
    pub(crate) fn new(base_offset: Offset, size_bytes: u64, sealed: bool, modified_ms: TimestampMs) -> Arc<Self> {
        // A new segment has no timestamps to load.
        let max_timestamp = if size_bytes == 0 { record_batch::NO_TIMESTAMP } else { NOT_LOADED };
        Arc::new(Segment {
            base_offset,
            size_bytes: AtomicU64::new(size_bytes),
            sealed: AtomicBool::new(sealed),
            max_timestamp: AtomicI64::new(max_timestamp),
            max_timestamp_offset: AtomicI64::new(base_offset),
            modified_ms: AtomicI64::new(modified_ms),
            file: ArcSwapOption::empty(),
            index: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
            retired: OnceLock::new(),
            has_txn_index: AtomicBool::new(false),
        })
    }

    pub(crate) fn base_offset(&self) -> Offset {
        self.base_offset
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    /// Lets readers see more. Only the owner calls this, after the bytes are written.
    pub(crate) fn set_size_bytes(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Release);
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_sealed(&self, sealed: bool) {
        self.sealed.store(sealed, Ordering::Relaxed);
    }

    /// Whether a transaction was aborted here.
    pub(crate) fn has_txn_index(&self) -> bool {
        self.has_txn_index.load(Ordering::Acquire)
    }

    pub(crate) fn set_has_txn_index(&self) {
        self.has_txn_index.store(true, Ordering::Release);
    }

    pub(crate) fn modified_ms(&self) -> TimestampMs {
        self.modified_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_modified_ms(&self, now_ms: TimestampMs) {
        self.modified_ms.store(now_ms, Ordering::Relaxed);
    }

    /// `offset` less the base offset, as indexes keep it; clamped to what they can keep.
    pub(crate) fn relative(&self, offset: Offset) -> u32 {
        offset.saturating_sub(self.base_offset).clamp(0, i64::from(u32::MAX)) as u32
    }

    pub(crate) fn log_path(&self, directory: &Path) -> PathBuf {
        self.path(directory, FileKind::Log)
    }

    pub(crate) fn path(&self, directory: &Path, kind: FileKind) -> PathBuf {
        offset_file(directory, self.base_offset, kind)
    }

    pub(crate) fn open_file(&self) -> Option<Arc<OpenFile>> {
        self.file.load_full()
    }

    /// The file if it is open, noted as used.
    pub(crate) fn open_file_used(&self) -> Option<Arc<OpenFile>> {
        self.note_used();
        match self.retired.get() {
            Some(retired) => Some(retired.file.clone()),
            None => self.file.load_full(),
        }
    }

    fn note_used(&self) {
        // Mostly it is set already, and a store would move the cache line between the readers.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_open_file(&self, file: Option<Arc<OpenFile>>) {
        self.file.store(file);
    }

    /// The file, opened when it is not.
    pub(crate) fn file(self: &Arc<Self>, cache: &FileCache, directory: &Path) -> io::Result<Arc<OpenFile>> {
        match self.open_file_used() {
            Some(open) => Ok(open),
            None => cache.open(self, directory),
        }
    }

    /// Takes hold of all that its readers need, before its files get other names and other files get theirs.
    pub(crate) fn retire(self: &Arc<Self>, cache: &FileCache, directory: &Path) -> Result<(), StorageError> {
        let disk = cache.disk().as_ref();
        let file = self.file(cache, directory).context("open", &self.log_path(directory))?;
        let index = self.index(disk, directory).context("read", &self.path(directory, FileKind::Index))?;
        let aborted = self.aborted_txns(disk, directory);
        let aborted_txns = aborted.context("read", &self.path(directory, FileKind::TxnIndex))?;
        self.retired.get_or_init(|| Retired { file, index, aborted_txns });
        Ok(())
    }

    /// Whether its files may have got other names, and other files theirs.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.get().is_some()
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Lets go of the file and, when nothing more is appended, of the index; both come back when they are needed.
    pub(crate) fn release(&self) {
        self.file.store(None);
        if self.is_sealed() {
            self.index.store(None);
        }
    }

    pub(crate) fn drop_index(&self) {
        self.index.store(None);
    }

    pub(crate) fn index_in_memory(&self) -> Option<Arc<OffsetEntries>> {
        match self.retired.get() {
            Some(retired) => Some(retired.index.clone()),
            None => self.index.load_full(),
        }
    }

    /// The index, read from its file when it is not in memory. A missing or broken file costs a longer scan only.
    pub(crate) fn index(&self, disk: &dyn Disk, directory: &Path) -> io::Result<Arc<OffsetEntries>> {
        if let Some(index) = self.index_in_memory() {
            return Ok(index);
        }
        let bytes = self.read_or_empty(disk, directory, FileKind::Index)?;
        let loaded = Arc::new(OffsetEntries::new(&offset_index::decode(&bytes, self.size_bytes())));
        // The owner and several readers may load at once; all go on with the first, to which the owner appends.
        let before = self.index.compare_and_swap(&None::<Arc<OffsetEntries>>, Some(loaded.clone()));
        Ok(before.clone().unwrap_or(loaded))
    }

    pub(crate) fn set_index(&self, index: Arc<OffsetEntries>) {
        self.index.store(Some(index));
    }

    pub(crate) fn time_entries(&self, disk: &dyn Disk, directory: &Path) -> io::Result<Vec<TimeEntry>> {
        Ok(time_index::decode(&self.read_or_empty(disk, directory, FileKind::TimeIndex)?, self.base_offset))
    }

    /// The aborted transactions whose marker lies in this segment; none when the file is missing.
    pub(crate) fn aborted_txns(&self, disk: &dyn Disk, directory: &Path) -> io::Result<Vec<AbortedTxn>> {
        if let Some(retired) = self.retired.get() {
            return Ok(retired.aborted_txns.clone());
        }
        let bytes = self.read_or_empty(disk, directory, FileKind::TxnIndex)?;
        let corrupt = || io::Error::new(io::ErrorKind::InvalidData, "transaction index is corrupt");
        txn_index::decode(&bytes, self.base_offset).ok_or_else(corrupt)
    }

    fn read_or_empty(&self, disk: &dyn Disk, directory: &Path, kind: FileKind) -> io::Result<Vec<u8>> {
        match read_file(disk, &self.path(directory, kind), INDEX_BYTES_MAX) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The largest timestamp and the last offset of the batch that has it; a timestamp of -1 when no record has one.
    pub(crate) fn max_timestamp(&self, disk: &dyn Disk, directory: &Path) -> io::Result<TimeEntry> {
        if let Some(known) = self.max_timestamp_in_memory() {
            return Ok(known);
        }
        let last = self.time_entries(disk, directory)?.last().copied();
        let last = last.unwrap_or(TimeEntry { timestamp: record_batch::NO_TIMESTAMP, offset: self.base_offset });
        self.set_max_timestamp(last);
        Ok(last)
    }

    pub(crate) fn max_timestamp_in_memory(&self) -> Option<TimeEntry> {
        // The owner stores the timestamp first: a reader that sees the new offset sees the new timestamp too, and one
        // that sees the old offset begins its search too early, which is harmless.
        let offset = self.max_timestamp_offset.load(Ordering::Acquire);
        let timestamp = self.max_timestamp.load(Ordering::Acquire);
        (timestamp != NOT_LOADED).then_some(TimeEntry { timestamp, offset })
    }

    pub(crate) fn set_max_timestamp(&self, entry: TimeEntry) {
        self.max_timestamp.store(entry.timestamp, Ordering::Release);
        self.max_timestamp_offset.store(entry.offset, Ordering::Release);
    }
}
