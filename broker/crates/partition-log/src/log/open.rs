//! Opening a log: from its files after an orderly stop, or through recovery (Kafka: LogLoader).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Offset, TimestampMs, TopicId, TopicPartition};

use super::tidy::{Found, tidy};
use super::{Log, Unsynced};
use crate::active::Active;
use crate::config::LogConfig;
use crate::disk::{Disk, OpenMode, remove_if_exists};
use crate::epochs::Epochs;
use crate::errors::{IoContext, OpenError, StorageError};
use crate::file_cache::FileCache;
use crate::formats::epoch_checkpoint::EpochEntry;
use crate::formats::{ReadFileError, epoch_checkpoint, partition_metadata};
use crate::names::{ACCEPT_DATA_LOSS, FileKind, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA};
use crate::producers::Producers;
use crate::segment::Segment;
use crate::shared::Shared;

/// What is needed to open a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Which partition it is.
    pub partition: TopicPartition,
    /// Its directory, made when it is missing.
    pub directory: PathBuf,
    /// Id of its topic; `None` for the metadata log.
    pub topic_id: Option<TopicId>,
    /// Its settings.
    pub config: Arc<LogConfig>,
    /// Open files of the node, and the disk.
    pub files: Arc<FileCache>,
    /// From `recovery-point-offset-checkpoint`; 0 when it has none.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 when it has none.
    pub log_start_offset: Offset,
    /// From `replication-offset-checkpoint`; 0 when it has none.
    pub high_watermark: Offset,
    /// The directory was closed in order: nothing needs to be checked.
    pub clean_shutdown: bool,
    /// The time.
    pub now_ms: TimestampMs,
}

/// What opening a log took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Segments that were gone through.
    pub recovered_segments: usize,
    /// Log bytes that were read and checked.
    pub scanned_bytes: u64,
    /// Bytes cut off behind the last whole batch, without those of removed segments.
    pub truncated_bytes: u64,
    /// Segments removed because they follow a damaged one, or lie before the log's start.
    pub removed_segments: usize,
    /// Segments among them whose file was kept under another name, because acknowledged records may be in it.
    pub aside_segments: usize,
    /// Records that were synced and are not there any more.
    pub missing_records: i64,
    /// The leader epochs were made again from the batches, because their checkpoint was lost or damaged.
    pub epochs_rebuilt: bool,
    /// `partition.metadata` was damaged and was written again.
    pub topic_id_rewritten: bool,
}

/// An open log.
#[derive(Debug)]
pub struct Opened {
    /// The log.
    pub log: Log,
    /// What it took.
    pub report: RecoveryReport,
}

impl Log {
    /// Opens a log, or makes a new one. After anything but an orderly stop, all that was not synced is checked, and what
    /// follows the first damage is cut off. Damage of what was synced is an error and nothing is changed, unless the
    /// directory holds the file `accept-data-loss`.
    pub fn open(options: LogOptions) -> Result<Opened, OpenError> {
        let accepting = options.directory.join(ACCEPT_DATA_LOSS);
        let disk = options.files.disk().clone();
        match Log::open_as_found(&options, false) {
            Err(OpenError::Corrupt { .. }) if disk.metadata(&accepting).context("look at", &accepting)?.is_some() => {}
            outcome => return outcome,
        }
        // As if nothing had been synced: all is checked from the beginning, and cut at the damage.
        let cut = LogOptions { recovery_point: 0, clean_shutdown: false, ..options };
        let opened = Log::open_as_found(&cut, true)?;
        remove_if_exists(disk.as_ref(), &accepting).context("remove", &accepting)?;
        Ok(opened)
    }

    fn open_as_found(options: &LogOptions, accept_loss: bool) -> Result<Opened, OpenError> {
        let disk = options.files.disk().clone();
        let directory = &options.directory;
        let existed = disk.metadata(directory).context("look at", directory)?.is_some();
        if !existed {
            disk.create_dir(directory).context("create", directory)?;
        }
        let mut unsynced = Unsynced { parent: !existed, ..Unsynced::default() };
        let mut report = RecoveryReport::default();
        unsynced.metadata = settle_topic_id(disk.as_ref(), options, &mut report)?;
        let aside_ms = accept_loss.then_some(options.now_ms);
        let mut found = if existed { tidy(disk.as_ref(), directory, aside_ms)? } else { Found::default() };
        unsynced.directory = found.changed;
        if found.segments.is_empty() {
            create_log_file(disk.as_ref(), options, options.log_start_offset)?;
            found.segments.push((options.log_start_offset, 0, options.now_ms));
            unsynced.directory = true;
        }
        let epochs = read_epochs(disk.as_ref(), directory)?;
        let lost = epochs.is_none() && found.segments.iter().any(|(_, len_bytes, _)| *len_bytes > 0);
        let mut log = Log::assemble(options, &found, Epochs::new(epochs.unwrap_or_default()), unsynced);
        if lost {
            log.rebuild_epochs()?;
            report.epochs_rebuilt = options.clean_shutdown || options.recovery_point > 0;
        }
        log.rebuild_lost_indexes(&found.lacking_index, options)?;
        if !existed {
            log.shared.set_end(options.log_start_offset, &log.active.segment);
            log.producers = Producers::starting_at(options.log_start_offset);
        } else if options.clean_shutdown {
            log.load_closed(options)?;
        } else {
            log.recover(options, &mut report)?;
        }
        log.settle_start(options, &mut report)?;
        log.active.segment.drop_index();
        Ok(Opened { log, report })
    }

    fn assemble(options: &LogOptions, found: &Found, epochs: Epochs, unsynced: Unsynced) -> Log {
        let last = found.segments.len().saturating_sub(1);
        let segments: Vec<Arc<Segment>> = found
            .segments
            .iter()
            .enumerate()
            .map(|(at, &(base, len, modified_ms))| Segment::new(base, len, at < last, modified_ms))
            .collect();
        for segment in &segments {
            if found.txn_indexes.binary_search(&segment.base_offset()).is_ok() {
                segment.set_has_txn_index();
            }
        }
        // The list is never empty: `open` has seen to it.
        let newest = segments.last().cloned().unwrap_or_else(|| Segment::new(0, 0, false, options.now_ms));
        let shared = Shared::new(options.files.clone(), &options.directory, segments, epochs.clone());
        Log {
            partition: options.partition.clone(),
            topic_id: options.topic_id,
            config: options.config.clone(),
            active: Active::empty(newest, &options.config, options.now_ms),
            shared: Arc::new(shared),
            epochs,
            producers: Producers::starting_at(0),
            snapshots: found.snapshots.clone(),
            unsynced,
            flush_generation: 0,
            flush_in_flight: None,
            flush_order: super::flush::FlushOrder::default(),
            cleaning: None,
            expired_files: Vec::new(),
            failed: false,
        }
    }

    /// Brings start, end and what depends on them into agreement, and publishes them.
    fn settle_start(&mut self, options: &LogOptions, report: &mut RecoveryReport) -> Result<(), OpenError> {
        let first_base = self.first_base_offset();
        let synced = options.recovery_point.max(if options.clean_shutdown { options.high_watermark } else { 0 });
        report.missing_records = (synced - options.log_start_offset.max(self.log_end_offset())).max(0);
        if self.log_end_offset() < options.log_start_offset {
            // Segment files were lost: nothing of what is left may be read any more.
            report.removed_segments += self.segment_count();
            self.restart_at(options.log_start_offset, options.now_ms)?;
        }
        let log_start_offset = options.log_start_offset.max(first_base);
        self.shared.set_log_start_offset(log_start_offset);
        let log_end_offset = self.log_end_offset();
        let changed = self.epochs.truncate_from_end(log_end_offset);
        if self.epochs.truncate_from_start(log_start_offset) || changed {
            self.unsynced.epochs = true;
        }
        self.shared.epochs.store(Arc::new(self.epochs.clone()));
        let synced = if options.clean_shutdown && report.recovered_segments == 0 {
            log_end_offset
        } else {
            options.recovery_point.clamp(0, log_end_offset)
        };
        self.shared.set_recovery_point(synced);
        self.remove_snapshots(|offset| offset <= log_end_offset)?;
        self.remove_stray_snapshots()?;
        self.set_high_watermark(options.high_watermark);
        Ok(())
    }

    pub(super) fn first_base_offset(&self) -> Offset {
        self.shared.segments.load().0.first().map_or(0, |segment| segment.base_offset())
    }

    /// Removes all segments and begins again at `offset`.
    pub(super) fn restart_at(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        // The new segment comes first: a crash in between leaves a log that knows where it begins.
        let segment = Segment::new(offset, 0, false, now_ms);
        let old = shared.segments.load().0.clone();
        for kind in [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            let path = segment.path(&shared.directory, kind);
            remove_if_exists(disk, &path).context("remove", &path)?;
        }
        let path = segment.log_path(&shared.directory);
        disk.open(&path, OpenMode::Truncate).context("create", &path)?;
        disk.sync_dir(&shared.directory).context("sync", &shared.directory)?;
        for gone in old.iter().filter(|gone| gone.base_offset() != offset) {
            self.remove_segment_files(gone)?;
        }
        for gone in &old {
            shared.files.close(gone);
        }
        disk.sync_dir(&shared.directory).context("sync", &shared.directory)?;
        self.active = Active::empty(segment.clone(), &self.config, now_ms);
        self.publish_segments(vec![segment]);
        self.shared.set_end(offset, &self.active.segment);
        self.epochs.clear();
        self.producers = Producers::starting_at(offset);
        self.remove_snapshots(|_| false)?;
        self.unsynced.segments.clear();
        Ok(())
    }

    pub(super) fn remove_segment_files(&mut self, segment: &Segment) -> Result<(), StorageError> {
        for kind in [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            let path = segment.path(&self.shared.directory, kind);
            remove_if_exists(self.disk(), &path).context("remove", &path)?;
        }
        self.unsynced.directory = true;
        Ok(())
    }
}

/// Compares the topic id with that of the directory, or writes it; true when a sync has to follow.
fn settle_topic_id(disk: &dyn Disk, options: &LogOptions, report: &mut RecoveryReport) -> Result<bool, OpenError> {
    let Some(expected) = options.topic_id else { return Ok(false) };
    let path = options.directory.join(PARTITION_METADATA);
    let found = partition_metadata::read(disk, &path);
    report.topic_id_rewritten = matches!(found, Err(ReadFileError::Malformed { .. }));
    match found {
        Ok(Some(found)) if found != expected => Err(OpenError::OtherTopic { found, expected }),
        Ok(Some(_)) => Ok(false),
        // A crash may have come between the writing of the file and its sync; then no record was synced either.
        Ok(None) | Err(ReadFileError::Malformed { .. }) => {
            let file = disk.open(&path, OpenMode::Truncate).context("create", &path)?;
            let text = partition_metadata::encode(expected);
            file.write_at(0, &mut [std::io::IoSlice::new(text.as_bytes())]).context("write", &path)?;
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

/// The epochs of the checkpoint; `None` when it is missing, empty or damaged.
fn read_epochs(disk: &dyn Disk, directory: &Path) -> Result<Option<Vec<EpochEntry>>, OpenError> {
    let path = directory.join(LEADER_EPOCH_CHECKPOINT);
    let there = disk.metadata(&path).context("look at", &path)?.is_some_and(|found| found.len_bytes > 0);
    match epoch_checkpoint::read(disk, &path) {
        Ok(entries) => Ok(Some(entries).filter(|_| there)),
        Err(ReadFileError::Malformed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn create_log_file(disk: &dyn Disk, options: &LogOptions, base_offset: Offset) -> Result<(), StorageError> {
    let path = crate::names::offset_file(&options.directory, base_offset, FileKind::Log);
    disk.open(&path, OpenMode::Create).context("create", &path)?;
    Ok(())
}
