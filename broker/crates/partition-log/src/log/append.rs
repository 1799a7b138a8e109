//! Appending. Batches of many requests go to the file in one write; producer state, epochs and indexes follow only when
//! the write has succeeded (Kafka: UnifiedLog.append).

use std::io::IoSlice;
use std::ops::Range;

use base::{LeaderEpoch, Offset, TimestampMs};
use record_batch::{BatchMut, BatchRef, NO_TIMESTAMP, TimestampType, batches};

use super::Log;
use crate::active::WrittenBatch;
use crate::errors::{AppendError, LogError, StorageError};
use crate::producers::{AppendOrigin, BatchFacts, Staged, StagedOutcome};

/// The batches of one request for this partition.
#[derive(Debug)]
pub struct AppendItem<'a> {
    /// Whole batches, validated. Offsets and leader epoch are written into them.
    pub records: &'a mut [u8],
    /// Who appends.
    pub origin: AppendOrigin,
    /// The transaction coordinator has confirmed that this producer's transaction holds this partition (KIP-890).
    pub transaction_verified: bool,
}

/// What became of the batches of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first_offset: Offset,
    /// Offset of the last record.
    pub last_offset: Offset,
    /// Time of append where that is the timestamp of the records, else -1. For a duplicate the timestamp that the
    /// batch had, as Kafka answers.
    pub log_append_time_ms: TimestampMs,
    /// First readable offset.
    pub log_start_offset: Offset,
    /// The batches were appended before; nothing was appended now.
    pub duplicate: bool,
}

/// Memory that appends need for a moment. One per thread serves all its logs, so that an idle log holds none.
#[derive(Debug, Default)]
pub struct AppendScratch {
    staged: Staged,
    written: Vec<WrittenBatch>,
    /// Leader epochs of the batches, where they begin another one.
    epochs: Vec<(LeaderEpoch, Offset)>,
    /// Items whose batches wait to be written.
    accepted: Vec<usize>,
}

impl AppendScratch {
    fn clear(&mut self) {
        self.staged.clear();
        self.written.clear();
        self.epochs.clear();
        self.accepted.clear();
    }

    fn end_offset(&self) -> Option<Offset> {
        self.written.last().map(|batch| batch.last_offset + 1)
    }
}

/// What an item holds, before anything is changed.
struct Measured {
    len_bytes: u64,
    max_timestamp: TimestampMs,
    records_span: i64,
    batch_count: usize,
}

fn measure(records: &[u8]) -> Result<Measured, AppendError> {
    let mut found = Measured { len_bytes: 0, max_timestamp: NO_TIMESTAMP, records_span: 0, batch_count: 0 };
    for batch in batches(records) {
        let batch = batch?;
        found.len_bytes += batch.bytes().len() as u64;
        found.max_timestamp = found.max_timestamp.max(batch.header().max_timestamp);
        found.records_span += i64::from(batch.header().last_offset_delta) + 1;
        found.batch_count += 1;
    }
    if found.batch_count == 0 { Err(AppendError::Empty) } else { Ok(found) }
}

impl Log {
    /// Appends the batches of several requests as leader: gives them offsets and the leader's epoch, checks them
    /// against producer state and writes them with as few writes as segments allow. `results` gets one outcome for
    /// each item, in order. Readers see the records at once; the high watermark is the caller's to move.
    pub fn append_as_leader(
        &mut self,
        scratch: &mut AppendScratch,
        items: &mut [AppendItem<'_>],
        leader_epoch: LeaderEpoch,
        now_ms: TimestampMs,
        results: &mut Vec<Result<Appended, AppendError>>,
    ) {
        scratch.clear();
        results.clear();
        for at in 0..items.len() {
            let outcome = self.add_item(scratch, items, at, leader_epoch, now_ms, results);
            if outcome.as_ref().is_ok_and(|appended| !appended.duplicate) {
                scratch.accepted.push(at);
            }
            results.push(outcome);
        }
        self.write_items(scratch, items, now_ms, results);
    }

    /// Checks and stages one item; what was staged before is written first when this one needs another segment.
    fn add_item(
        &mut self,
        scratch: &mut AppendScratch,
        items: &mut [AppendItem<'_>],
        at: usize,
        leader_epoch: LeaderEpoch,
        now_ms: TimestampMs,
        results: &mut [Result<Appended, AppendError>],
    ) -> Result<Appended, AppendError> {
        if self.failed {
            return Err(AppendError::Offline);
        }
        let measured = measure(items[at].records)?;
        if measured.len_bytes > self.config.segment_bytes {
            return Err(AppendError::LargerThanSegment { bytes: measured.len_bytes, limit: self.config.segment_bytes });
        }
        let first_offset = scratch.end_offset().unwrap_or(self.log_end_offset());
        let waiting: u64 = scratch.written.iter().map(|batch| batch.len_bytes).sum();
        let last_offset = first_offset + measured.records_span - 1;
        if self.needs_roll(waiting + measured.len_bytes, measured.max_timestamp, last_offset, now_ms)? {
            self.write_items(scratch, items, now_ms, results);
            if self.failed {
                return Err(AppendError::Offline);
            }
            // Batches that could not be written leave their offsets to the next.
            self.roll_to(self.log_end_offset(), now_ms)?;
            return self.stage_item(scratch, &mut items[at], self.log_end_offset(), leader_epoch, &measured);
        }
        self.stage_item(scratch, &mut items[at], first_offset, leader_epoch, &measured)
    }

    fn stage_item(
        &self,
        scratch: &mut AppendScratch,
        item: &mut AppendItem<'_>,
        first_offset: Offset,
        leader_epoch: LeaderEpoch,
        measured: &Measured,
    ) -> Result<Appended, AppendError> {
        // A request whose second batch is refused must leave no trace of its first.
        let undo = (measured.batch_count > 1).then(|| scratch.staged.clone());
        let written_before = scratch.written.len();
        let mut next_offset = first_offset;
        let mut append_time = NO_TIMESTAMP;
        let mut position = 0;
        while position < item.records.len() {
            let mut batch = BatchMut::parse(&mut item.records[position..])?;
            batch.set_base_offset(next_offset);
            batch.set_partition_leader_epoch(leader_epoch);
            let header = *batch.header();
            if header.timestamp_type() == TimestampType::LogAppendTime {
                append_time = header.max_timestamp;
            }
            if header.has_producer_id() {
                let facts = BatchFacts::of(&BatchRef::parse(&item.records[position..])?);
                let checked = scratch.staged.check(&self.producers, &facts, item.origin, item.transaction_verified);
                match checked {
                    Ok(StagedOutcome::Accepted) => {}
                    Ok(StagedOutcome::Duplicate(_)) | Err(_) => {
                        scratch.written.truncate(written_before);
                        if let Some(undo) = undo {
                            scratch.staged = undo;
                        }
                        return self.refused_or_duplicate(checked?);
                    }
                }
            }
            scratch.written.push(WrittenBatch::of(&header));
            next_offset = header.next_offset();
            position += header.total_len();
        }
        if self.epochs.latest() != Some(leader_epoch) && scratch.epochs.is_empty() {
            scratch.epochs.push((leader_epoch, first_offset));
        }
        Ok(Appended {
            first_offset,
            last_offset: next_offset - 1,
            log_append_time_ms: append_time,
            log_start_offset: self.log_start_offset(),
            duplicate: false,
        })
    }

    fn refused_or_duplicate(&self, outcome: StagedOutcome) -> Result<Appended, AppendError> {
        match outcome {
            StagedOutcome::Duplicate(batch) => Ok(Appended {
                first_offset: batch.first_offset(),
                last_offset: batch.last_offset,
                log_append_time_ms: batch.timestamp,
                log_start_offset: self.log_start_offset(),
                duplicate: true,
            }),
            // Never asked: an accepted batch goes on.
            StagedOutcome::Accepted => Err(AppendError::Empty),
        }
    }

    /// Writes the items that wait; when that fails, their outcomes and those of duplicates of them become the error.
    fn write_items(
        &mut self,
        scratch: &mut AppendScratch,
        items: &[AppendItem<'_>],
        now_ms: TimestampMs,
        results: &mut [Result<Appended, AppendError>],
    ) {
        if scratch.accepted.is_empty() {
            scratch.clear();
            return;
        }
        let outcome = match scratch.accepted.as_slice() {
            [only] => self.write_batches(&mut [IoSlice::new(items[*only].records)], scratch, now_ms),
            many => {
                let mut slices: Vec<IoSlice<'_>> = many.iter().map(|at| IoSlice::new(items[*at].records)).collect();
                self.write_batches(&mut slices, scratch, now_ms)
            }
        };
        if let Err(error) = outcome {
            let first_lost = self.log_end_offset();
            for result in results.iter_mut() {
                if result.as_ref().is_ok_and(|appended| appended.first_offset >= first_lost) {
                    *result = Err(error.clone());
                }
            }
        }
        scratch.clear();
    }

    /// Appends batches that carry their offsets and epochs: what a leader sent to this follower, or raft entries. They
    /// may leave gaps, as compaction does, but never go back. Each is checked against its CRC.
    pub fn append_as_follower(
        &mut self,
        scratch: &mut AppendScratch,
        records: &[u8],
        now_ms: TimestampMs,
    ) -> Result<Appended, AppendError> {
        scratch.clear();
        if self.failed {
            return Err(AppendError::Offline);
        }
        let mut whole = Appended {
            first_offset: -1,
            last_offset: -1,
            log_append_time_ms: NO_TIMESTAMP,
            log_start_offset: self.log_start_offset(),
            duplicate: false,
        };
        check_replicated(records, self.log_end_offset())?;
        let mut waiting: Range<usize> = 0..0;
        for batch in batches(records) {
            let batch = batch?;
            let header = *batch.header();
            let len = batch.bytes().len();
            if self.needs_roll((waiting.len() + len) as u64, header.max_timestamp, header.last_offset(), now_ms)? {
                self.write_replicated(scratch, &records[waiting.clone()], now_ms)?;
                waiting.start = waiting.end;
                // A gap in the leader's log goes into the new segment, unless it is too wide for its indexes.
                let wide = header.last_offset() - self.log_end_offset() > i64::from(i32::MAX);
                self.roll_to(if wide { header.base_offset } else { self.log_end_offset() }, now_ms)?;
            }
            if header.has_producer_id() {
                let facts = BatchFacts::of(&batch);
                scratch.staged.check(&self.producers, &facts, AppendOrigin::Replication, true)?;
            }
            scratch.written.push(WrittenBatch::of(&header));
            let latest = scratch.epochs.last().map(|(epoch, _)| *epoch).or(self.epochs.latest());
            if latest.is_none_or(|latest| header.partition_leader_epoch > latest) {
                scratch.epochs.push((header.partition_leader_epoch, header.base_offset));
            }
            waiting.end += len;
            if whole.first_offset < 0 {
                whole.first_offset = header.base_offset;
            }
            whole.last_offset = header.last_offset();
        }
        self.write_replicated(scratch, &records[waiting], now_ms)?;
        Ok(whole)
    }

    fn write_replicated(
        &mut self,
        scratch: &mut AppendScratch,
        records: &[u8],
        now_ms: TimestampMs,
    ) -> Result<(), AppendError> {
        if !records.is_empty() {
            self.write_batches(&mut [IoSlice::new(records)], scratch, now_ms)?;
        }
        scratch.clear();
        Ok(())
    }

    fn needs_roll(
        &mut self,
        len_bytes: u64,
        max_timestamp: TimestampMs,
        last_offset: Offset,
        now_ms: TimestampMs,
    ) -> Result<bool, AppendError> {
        let shared = &self.shared;
        let segment = self.active.segment.clone();
        let storage = |error| StorageError::new("read", &segment.log_path(&shared.directory), error);
        let file = segment.file(&shared.files, &shared.directory).map_err(storage)?;
        let rolls =
            self.active.must_roll(file.file.as_ref(), &self.config, len_bytes, max_timestamp, last_offset, now_ms);
        Ok(rolls.map_err(storage)?)
    }

    /// Writes batches at the end of the active segment and makes their effects the log's state. When the write fails,
    /// the file is cut back to what it was, and nothing has happened.
    fn write_batches(
        &mut self,
        slices: &mut [IoSlice<'_>],
        scratch: &mut AppendScratch,
        now_ms: TimestampMs,
    ) -> Result<(), AppendError> {
        let AppendScratch { staged, written, epochs, .. } = scratch;
        let shared = self.shared.clone();
        let segment = self.active.segment.clone();
        let position = segment.size_bytes();
        let storage = |error| StorageError::new("write", &segment.log_path(&shared.directory), error);
        let file = segment.file(&shared.files, &shared.directory).map_err(storage)?;
        if let Err(error) = file.file.write_at(position, slices) {
            let error = storage(error);
            // A full volume is no fault of the device: with the torn end gone the log is as it was.
            let undone = error.is_full() && file.file.set_len(position).is_ok();
            self.failed = !undone;
            return Err(error.into());
        }
        let Some(end_offset) = written.last().map(|batch| batch.last_offset + 1) else { return Ok(()) };
        segment.set_modified_ms(now_ms);
        let disk = shared.files.disk().as_ref();
        for (epoch, start_offset) in epochs.drain(..) {
            self.assign_epoch(epoch, start_offset);
        }
        let noted = self.active.note(written, position, disk, &shared.directory, &self.config);
        shared.set_end(end_offset, &segment);
        self.producers.commit(staged, end_offset);
        let completed = self.complete_transactions(staged);
        if !staged.completed.is_empty() || self.producers.first_unstable_offset().is_some() {
            self.publish_first_unstable();
        }
        // The records are in the log. An index that could not be written takes the log offline, for recovery to repair.
        if let Err(error) = noted.and(completed) {
            self.failed = true;
            return Err(error.into());
        }
        Ok(())
    }
}

fn check_replicated(records: &[u8], log_end_offset: Offset) -> Result<(), AppendError> {
    let mut next = log_end_offset;
    let mut any = false;
    for batch in batches(records) {
        let batch = batch?;
        let header = batch.header();
        if header.base_offset < next || header.last_offset() < header.base_offset || header.last_offset() == Offset::MAX
        {
            return Err(AppendError::UnexpectedOffset { offset: header.base_offset, log_end_offset: next });
        }
        batch.verify_crc().map_err(|_| AppendError::Corrupt { offset: header.base_offset })?;
        next = header.next_offset();
        any = true;
    }
    if any { Ok(()) } else { Err(AppendError::Empty) }
}

impl From<LogError> for AppendError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Storage(error) | LogError::SyncFailed(error) => AppendError::Storage(error),
            LogError::Offline | LogError::AboveLimit { .. } | LogError::Read(_) => AppendError::Offline,
        }
    }
}
