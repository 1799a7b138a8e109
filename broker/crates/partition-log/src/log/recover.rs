//! Recovery. After a crash every batch past the recovery point is checked, the log is cut at the first bad one, and
//! indexes, epochs and producer state are made again from there; what lies before was synced and is not read, except
//! for the little that leads to the recovery point (Kafka: LogLoader.recoverLog, LogSegment.recover).

use std::path::Path;
use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs};
use record_batch::{BatchHeader, HEADER_LEN};

use super::Log;
use super::open::{LogOptions, RecoveryReport};
use crate::active::{Active, WrittenBatch};
use crate::disk::{OpenMode, read_file};
use crate::errors::{IoContext, OpenError, StorageError};
use crate::formats::SMALL_FILE_BYTES_MAX;
use crate::formats::epoch_checkpoint::EpochEntry;
use crate::names::{FileKind, offset_file, set_aside};
use crate::producers::{AppendOrigin, BatchFacts, Producers, Staged};
use crate::scan::{Depth, ScanError, Scanned};
use crate::segment::Segment;
use crate::txn_index;

/// Where the check of a segment begins.
#[derive(Debug, Clone, Copy)]
struct CheckFrom {
    position: u64,
    /// Base offset of the batch there.
    offset: Offset,
    /// The offset after it, when an index entry stands for it, which stays.
    after_entry: Option<Offset>,
}

/// What the walk knows of the batches before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trail {
    pub next_offset: Offset,
    pub epoch: LeaderEpoch,
}

impl Trail {
    pub fn behind(self, header: &BatchHeader) -> Trail {
        Trail { next_offset: header.next_offset(), epoch: self.epoch.max(header.partition_leader_epoch) }
    }
}

impl Log {
    /// Takes the log as an orderly stop left it: the end is found behind the last index entry, and producer state in
    /// the last snapshot.
    pub(super) fn load_closed(&mut self, options: &LogOptions) -> Result<(), OpenError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let segment = self.active.segment.clone();
        self.active = Active::load(segment.clone(), disk, &shared.directory, &self.config, options.now_ms)?;
        let mut end_offset = segment.base_offset();
        if segment.size_bytes() > 0 {
            let from = self.check_from(&segment, Offset::MAX)?;
            let mut scanner = self.segment_scanner(&segment, from.position)?;
            let mut trail = Trail { next_offset: from.offset, epoch: -1 };
            loop {
                match scanner.next(Depth::Headers) {
                    Ok(Some(Scanned { position, header, .. })) => {
                        if let Some(reason) = misplaced(&header, segment.base_offset(), trail) {
                            let error = ScanError::Bad { position, reason };
                            return Err(self.damage(&segment, &scanner, end_offset, error));
                        }
                        end_offset = header.next_offset();
                        trail = trail.behind(&header);
                    }
                    Ok(None) => break,
                    // After an orderly stop all was synced, so that this is no torn write.
                    Err(error) => return Err(self.damage(&segment, &scanner, end_offset, error)),
                }
            }
        }
        shared.set_end(end_offset, &segment);
        // An orderly stop leaves a snapshot. Where it was lost, the headers tell what it said.
        self.load_snapshot(end_offset, options.now_ms)?;
        self.replay_producers(end_offset, None)
    }

    /// Goes through everything past the recovery point.
    pub(super) fn recover(&mut self, options: &LogOptions, report: &mut RecoveryReport) -> Result<(), OpenError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let segments = shared.segments.load().0.clone();
        let recovery_point = options.recovery_point.max(0);
        let first = shared.segments.load().floor(recovery_point).unwrap_or(0);
        let mut staged = Staged::default();
        for (at, segment) in segments.iter().enumerate().skip(first) {
            // A segment begins where the one before ends. One that begins earlier is left from before a truncation; one
            // that begins later follows batches that were lost as a whole, except where compaction leaves gaps.
            let end = self.log_end_offset();
            let begin = segment.base_offset();
            if at > first && (begin < end || (begin > end && !self.config.cleanup_compact)) {
                if end < recovery_point {
                    return Err(self.hole(&segments[at - 1], end, begin));
                }
                report.removed_segments += segments.len() - at;
                report.aside_segments += with_bytes(&segments[at..]);
                self.cut_behind(&segments[at - 1], &segments[..at], &segments[at..], options.now_ms)?;
                break;
            }
            self.active = Active::load(segment.clone(), disk, &shared.directory, &self.config, options.now_ms)?;
            let from = if at == first {
                // The batch of the entry was synced as a whole, so that the entry stays true.
                self.check_from(segment, recovery_point - 1)?
            } else {
                CheckFrom { position: 0, offset: segment.base_offset(), after_entry: None }
            };
            if at == first {
                // Epochs from here on are found in the batches again.
                self.unsynced.epochs |= self.epochs.truncate_from_end(from.offset);
                self.load_snapshot(from.offset, options.now_ms)?;
                self.replay_producers(from.offset, Some((segment, from.position)))?;
                self.remove_snapshots(|offset| offset <= from.offset)?;
            } else {
                self.producers.advance_to(segment.base_offset());
                self.take_snapshot_unsynced()?;
            }
            let end = segment.size_bytes();
            let trail = Trail { next_offset: from.offset, epoch: self.epochs.latest().unwrap_or(-1) };
            let next_offset = self.check_segment(from, trail, recovery_point, &mut staged)?;
            report.recovered_segments += 1;
            report.scanned_bytes += end - from.position;
            shared.set_end(next_offset, segment);
            self.producers.advance_to(next_offset);
            let truncated = end - segment.size_bytes();
            report.truncated_bytes += truncated;
            if truncated > 0 {
                report.removed_segments += segments.len() - at - 1;
                report.aside_segments += with_bytes(&segments[at + 1..]);
                self.cut_behind(segment, &segments[..=at], &segments[at + 1..], options.now_ms)?;
                break;
            }
            if at + 1 < segments.len() {
                self.active.complete_indexes(disk, &shared.directory)?;
                self.unsynced.segments.push(segment.clone());
            }
        }
        Ok(())
    }

    /// Makes a cut durable before anything is appended in its place: what was cut off must not come back behind it.
    /// Whole segments behind it may hold records that were acknowledged and not synced, and are kept under another name.
    fn cut_behind(
        &mut self,
        segment: &Arc<Segment>,
        kept: &[Arc<Segment>],
        gone: &[Arc<Segment>],
        now_ms: TimestampMs,
    ) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let path = segment.log_path(&shared.directory);
        for later in gone {
            if later.size_bytes() > 0 {
                let path = later.log_path(&shared.directory);
                shared.files.close(later);
                self.disk().rename(&path, &set_aside(&path, now_ms)).context("rename", &path)?;
            }
            self.remove_segment_files(later)?;
        }
        self.disk().sync_dir(&shared.directory).context("sync", &shared.directory)?;
        let file = segment.file(&shared.files, &shared.directory).context("open", &path)?;
        file.file.set_len(segment.size_bytes()).context("truncate", &path)?;
        file.file.sync().context("sync", &path)?;
        segment.set_sealed(false);
        self.unsynced.segments.retain(|kept| !Arc::ptr_eq(kept, segment));
        self.publish_segments(kept.to_vec());
        Ok(())
    }

    /// The last index entry before `offset` that stands for a batch indeed. Entries may never have reached the disk,
    /// although the batches did; then the check begins at the segment's first byte.
    fn check_from(&self, segment: &Arc<Segment>, offset: Offset) -> Result<CheckFrom, StorageError> {
        let shared = &self.shared;
        let start = CheckFrom { position: 0, offset: segment.base_offset(), after_entry: None };
        let index = segment
            .index(shared.files.disk().as_ref(), &shared.directory)
            .context("read", &segment.path(&shared.directory, FileKind::Index))?;
        let Some(entry) = index.entry_at_or_before(segment.relative(offset)) else { return Ok(start) };
        let path = segment.log_path(&shared.directory);
        let file = segment.file(&shared.files, &shared.directory).context("open", &path)?;
        let mut head = [0; HEADER_LEN];
        file.file.read_at(u64::from(entry.position), &mut head).context("read", &path)?;
        let named = segment.base_offset() + i64::from(entry.relative_offset);
        match BatchHeader::parse(&head) {
            Ok(header) if header.last_offset() == named && header.base_offset >= segment.base_offset() => {
                let after_entry = Some(header.next_offset());
                Ok(CheckFrom { position: u64::from(entry.position), offset: header.base_offset, after_entry })
            }
            Ok(_) | Err(_) => Ok(start),
        }
    }

    /// Checks the batches of the active segment and makes its indexes, the epochs and the producer state again; the
    /// segment ends behind the last good batch. Returns the offset after it.
    fn check_segment(
        &mut self,
        from: CheckFrom,
        trail: Trail,
        recovery_point: Offset,
        staged: &mut Staged,
    ) -> Result<Offset, OpenError> {
        let shared = self.shared.clone();
        let disk = shared.files.disk().as_ref();
        let segment = self.active.segment.clone();
        let mut scanner = self.segment_scanner(&segment, from.position)?;
        let (position, offset) = match from.after_entry {
            Some(after) => (from.position + 1, after),
            None => (from.position, from.offset),
        };
        self.active.rewind_indexes(disk, &shared.directory, position, offset)?;
        self.cut_txn_index(&segment, from.offset)?;
        let mut trail = trail;
        let bad = loop {
            let scanned = match scanner.next(Depth::Checked) {
                Ok(Some(scanned)) => scanned,
                Ok(None) => break None,
                Err(ScanError::Io(error)) => return Err(read_error(&segment, &shared.directory, error).into()),
                Err(error) => break Some(error),
            };
            if let Some(reason) = misplaced(&scanned.header, segment.base_offset(), trail) {
                break Some(ScanError::Bad { position: scanned.position, reason });
            }
            trail = self.take_checked(&scanned, trail, staged)?;
        };
        if trail.next_offset == from.offset {
            // Not one batch was good, so that the end was not moved.
            segment.set_size_bytes(from.position);
        }
        match bad.map(|error| self.damage(&segment, &scanner, trail.next_offset, error)) {
            Some(error @ OpenError::Corrupt { .. }) if trail.next_offset < recovery_point => Err(error),
            Some(OpenError::Corrupt { .. }) | None => Ok(trail.next_offset),
            Some(error) => Err(error),
        }
    }

    fn take_checked(
        &mut self,
        scanned: &Scanned<'_>,
        trail: Trail,
        staged: &mut Staged,
    ) -> Result<Trail, StorageError> {
        let shared = self.shared.clone();
        let header = &scanned.header;
        let written = WrittenBatch::of(header);
        let disk = shared.files.disk().as_ref();
        self.active.note(&[written], scanned.position, disk, &shared.directory, &self.config)?;
        if header.partition_leader_epoch > trail.epoch {
            let entry = EpochEntry { epoch: header.partition_leader_epoch, start_offset: header.base_offset };
            self.unsynced.epochs |= self.epochs.assign(entry);
        }
        self.replay(scanned, staged, true)?;
        Ok(trail.behind(header))
    }

    /// Lets producer state see a batch that is in the log.
    fn replay(&mut self, scanned: &Scanned<'_>, staged: &mut Staged, index_txns: bool) -> Result<(), StorageError> {
        let header = &scanned.header;
        if header.has_producer_id() {
            staged.clear();
            let facts = match &scanned.batch {
                Some(batch) => BatchFacts::of(batch),
                None => BatchFacts::of_header(header),
            };
            // Of what is in the log nothing is refused; a plain batch inside a transaction cannot be there.
            if staged.check(&self.producers, &facts, AppendOrigin::Replication, true).is_ok() {
                self.producers.commit(staged, header.next_offset());
                if index_txns {
                    self.complete_transactions(staged)?;
                } else {
                    staged.completed.iter().for_each(|txn| {
                        self.producers.complete(txn);
                    });
                }
            }
        }
        self.producers.advance_to(header.next_offset());
        Ok(())
    }

    /// Makes the producer state as of `offset`, the log's end, from the latest snapshot and what follows it.
    pub(super) fn load_producers(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<(), StorageError> {
        self.load_snapshot(offset, now_ms)?;
        self.replay_producers(offset, None).map_err(|error| match error {
            OpenError::Storage(error) => error,
            other => StorageError::new("read", &self.shared.directory, std::io::Error::other(other.to_string())),
        })
    }

    /// Takes the latest snapshot that does not reach past `offset`; damaged ones are removed.
    fn load_snapshot(&mut self, offset: Offset, now_ms: TimestampMs) -> Result<(), StorageError> {
        let expiration_ms = self.config.producer_id_expiration_ms;
        for at in (0..self.snapshots.len()).rev() {
            let snapshot = self.snapshots[at];
            if snapshot > offset {
                continue;
            }
            let path = offset_file(&self.shared.directory, snapshot, FileKind::Snapshot);
            let bytes = read_file(self.disk(), &path, SMALL_FILE_BYTES_MAX).context("read", &path)?;
            match Producers::from_snapshot(&bytes, snapshot, now_ms, expiration_ms) {
                Ok(producers) => {
                    self.producers = producers;
                    return Ok(());
                }
                Err(_) => self.remove_snapshots(|kept| kept != snapshot)?,
            }
        }
        self.producers = Producers::starting_at(self.first_base_offset());
        Ok(())
    }

    /// Reads the headers between what the producer state covers and `end_offset`; `until` names the segment and byte
    /// where that is, when it is not the log's end.
    fn replay_producers(&mut self, end_offset: Offset, until: Option<(&Arc<Segment>, u64)>) -> Result<(), OpenError> {
        let shared = self.shared.clone();
        let list = shared.segments.load();
        let covered = self.producers.end_offset();
        let first = list.floor(covered).unwrap_or(0);
        let mut staged = Staged::default();
        for segment in list.0.iter().skip(first) {
            if covered >= end_offset || segment.base_offset() >= end_offset {
                break;
            }
            let index = segment
                .index(shared.files.disk().as_ref(), &shared.directory)
                .context("read", &segment.path(&shared.directory, FileKind::Index))?;
            let begin = u64::from(index.position_before(segment.relative(covered)));
            let mut scanner = self.segment_scanner(segment, begin)?;
            loop {
                if until.is_some_and(|(last, end)| Arc::ptr_eq(last, segment) && scanner.position() >= end) {
                    break;
                }
                match scanner.next(Depth::Headers) {
                    Ok(Some(scanned)) if scanned.header.last_offset() < covered => {}
                    Ok(Some(scanned)) => self.replay(&scanned, &mut staged, false)?,
                    Ok(None) => break,
                    Err(error) => return Err(self.damage(segment, &scanner, self.producers.end_offset(), error)),
                }
            }
        }
        self.producers.advance_to(end_offset);
        Ok(())
    }

    /// Drops the aborted transactions whose markers are about to be read again.
    pub(super) fn cut_txn_index(&mut self, segment: &Segment, offset: Offset) -> Result<(), StorageError> {
        let path = segment.path(&self.shared.directory, FileKind::TxnIndex);
        if self.disk().metadata(&path).context("look at", &path)?.is_none() {
            return Ok(());
        }
        // A damaged file may only lack entries of markers that are read again.
        let entries = segment.aborted_txns(self.disk(), &self.shared.directory).unwrap_or_default();
        let kept = entries.partition_point(|txn| txn.last_offset < offset);
        let file = self.disk().open(&path, OpenMode::Existing).context("open", &path)?;
        file.set_len((kept * txn_index::ENTRY_BYTES) as u64).context("truncate", &path)
    }
}

/// Why a batch cannot be where it is: a stale one may lie behind a lost write, whole and with a good CRC.
pub(super) fn misplaced(header: &BatchHeader, segment_base: Offset, trail: Trail) -> Option<String> {
    if header.base_offset < trail.next_offset {
        return Some(format!("offset {} follows {}", header.base_offset, trail.next_offset - 1));
    }
    if header.last_offset() - segment_base > i64::from(i32::MAX) {
        return Some(format!("offset {} does not belong to the segment", header.last_offset()));
    }
    if header.partition_leader_epoch < trail.epoch {
        return Some(format!("leader epoch {} follows {}", header.partition_leader_epoch, trail.epoch));
    }
    None
}

fn with_bytes(segments: &[Arc<Segment>]) -> usize {
    segments.iter().filter(|segment| segment.size_bytes() > 0).count()
}

pub(super) fn read_error(segment: &Segment, directory: &Path, error: std::io::Error) -> StorageError {
    StorageError::new("read", &segment.log_path(directory), error)
}
