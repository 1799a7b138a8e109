//! Finding records by timestamp (Kafka: UnifiedLog.fetchOffsetByTimestamp, FileRecords.searchForTimestamp). These reads
//! may wait for the disk.

use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs};
use record_batch::{BatchRef, RecordReader, TimestampType};

use super::LogReader;
use crate::errors::{IoContext, ReadError, StorageError};
use crate::names::FileKind;
use crate::scan::{Depth, ScanError, Scanned, Scanner};
use crate::segment::Segment;
use crate::time_index::last_at_or_before;

/// Most bytes that a search takes out of one compressed batch. They are not kept: memory is one record.
const DECOMPRESSED_BYTES_MAX: usize = 1 << 30;

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Its timestamp.
    pub timestamp: TimestampMs,
    /// Its offset.
    pub offset: Offset,
    /// Epoch of the leader that appended it; `None` when its batch carries none.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl LogReader {
    /// The first record, in the order of offsets, whose timestamp is not before the one asked for. The caller compares
    /// its offset with the bound of the reader.
    pub fn offset_for_timestamp(&self, timestamp: TimestampMs) -> Result<Option<TimestampOffset>, ReadError> {
        self.with_retries(|reader| reader.search_timestamp(timestamp))
    }

    fn search_timestamp(&self, timestamp: TimestampMs) -> Result<Option<TimestampOffset>, ReadError> {
        let start_offset = self.log_start_offset();
        let list = self.shared.segments.load();
        for segment in &list.0 {
            let largest = self.largest_timestamp(segment)?;
            if largest < timestamp {
                continue;
            }
            let found = self.search_segment(segment, timestamp, start_offset)?;
            // A segment whose records have no timestamps counts by the age of its file and may hold nothing.
            if found.is_some() || largest == segment.modified_ms() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn largest_timestamp(&self, segment: &Segment) -> Result<TimestampMs, ReadError> {
        let newest = segment
            .max_timestamp(self.shared.files.disk().as_ref(), &self.shared.directory)
            .context("read", &segment.path(&self.shared.directory, FileKind::TimeIndex))?;
        Ok(if newest.timestamp >= 0 { newest.timestamp } else { segment.modified_ms() })
    }

    fn search_segment(
        &self,
        segment: &Arc<Segment>,
        timestamp: TimestampMs,
        start_offset: Offset,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        let disk = self.shared.files.disk().as_ref();
        let entries = segment
            .time_entries(disk, &self.shared.directory)
            .context("read", &segment.path(&self.shared.directory, FileKind::TimeIndex))?;
        let covered = last_at_or_before(&entries, timestamp).map_or(segment.base_offset(), |entry| entry.offset);
        let mut scanner = self.scanner(segment, covered.max(start_offset))?;
        loop {
            let scanned = self.next(&mut scanner, segment)?;
            let Some(scanned) = scanned else { return Ok(None) };
            if scanned.header.max_timestamp < timestamp || scanned.header.last_offset() < start_offset {
                continue;
            }
            let wanted = |offset: Offset, found: TimestampMs| found >= timestamp && offset >= start_offset;
            if let Some(found) = first_record(&scanned, wanted)? {
                return Ok(Some(found));
            }
        }
    }

    /// The first record that has the largest timestamp of the log; `None` when no record has one (KIP-734).
    pub fn max_timestamp(&self) -> Result<Option<TimestampOffset>, ReadError> {
        self.with_retries(LogReader::search_max_timestamp)
    }

    fn search_max_timestamp(&self) -> Result<Option<TimestampOffset>, ReadError> {
        let list = self.shared.segments.load();
        let mut best = None;
        for segment in &list.0 {
            let newest = segment
                .max_timestamp(self.shared.files.disk().as_ref(), &self.shared.directory)
                .context("read", &segment.path(&self.shared.directory, FileKind::TimeIndex))?;
            if best.is_none_or(|(_, known): (&Arc<Segment>, crate::time_index::TimeEntry)| {
                newest.timestamp > known.timestamp
            }) {
                best = Some((segment, newest));
            }
        }
        let Some((segment, newest)) = best.filter(|(_, newest)| newest.timestamp >= 0) else { return Ok(None) };
        let mut scanner = self.scanner(segment, newest.offset)?;
        loop {
            let Some(scanned) = self.next(&mut scanner, segment)? else { return Ok(None) };
            if scanned.header.max_timestamp == newest.timestamp {
                // A batch of that time may have lost its records to compaction.
                let found = first_record(&scanned, |_, found| found == newest.timestamp)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
    }

    fn scanner(&self, segment: &Arc<Segment>, offset: Offset) -> Result<Scanner, ReadError> {
        let directory = &self.shared.directory;
        let end = segment.size_bytes();
        let index = segment
            .index(self.shared.files.disk().as_ref(), directory)
            .context("read", &segment.path(directory, FileKind::Index))?;
        let begin = u64::from(index.position_before(segment.relative(offset)));
        let path = segment.log_path(directory);
        let file = segment.file(&self.shared.files, directory).context("open", &path)?;
        Ok(Scanner::new(file.file.clone(), begin, end))
    }

    fn next<'a>(&self, scanner: &'a mut Scanner, segment: &Segment) -> Result<Option<Scanned<'a>>, ReadError> {
        scanner.next(Depth::Whole).map_err(|error| match error {
            ScanError::Io(error) => StorageError::new("read", &segment.log_path(&self.shared.directory), error).into(),
            other @ (ScanError::Torn { .. } | ScanError::Bad { .. }) => {
                ReadError::Corrupt { offset: segment.base_offset(), reason: other.to_string() }
            }
        })
    }
}

/// The first record of a batch that is wanted, by offset and timestamp.
fn first_record(
    scanned: &Scanned<'_>,
    wanted: impl Fn(Offset, TimestampMs) -> bool,
) -> Result<Option<TimestampOffset>, ReadError> {
    let header = &scanned.header;
    let leader_epoch = Some(header.partition_leader_epoch).filter(|epoch| *epoch >= 0);
    let Some(batch) = &scanned.batch else { return Ok(None) };
    // Compaction takes records out of a batch and leaves its offsets.
    let is_whole = header.record_count > header.last_offset_delta;
    if is_whole
        && header.timestamp_type() == TimestampType::LogAppendTime
        && wanted(header.base_offset, header.max_timestamp)
    {
        // All records have the time of append, so that the first one is the answer without a look at it.
        let (timestamp, offset) = (header.max_timestamp, header.base_offset);
        return Ok(Some(TimestampOffset { timestamp, offset, leader_epoch }));
    }
    let found =
        find_record(batch, &wanted).map_err(|reason| ReadError::Corrupt { offset: header.base_offset, reason })?;
    Ok(found.map(|(timestamp, offset)| TimestampOffset { timestamp, offset, leader_epoch }))
}

fn find_record(
    batch: &BatchRef<'_>,
    wanted: &impl Fn(Offset, TimestampMs) -> bool,
) -> Result<Option<(TimestampMs, Offset)>, String> {
    let mut records = RecordReader::open(batch, DECOMPRESSED_BYTES_MAX).map_err(|error| error.to_string())?;
    while let Some(record) = records.next_record().map_err(|error| error.to_string())? {
        if wanted(record.offset, record.timestamp) {
            return Ok(Some((record.timestamp, record.offset)));
        }
    }
    Ok(None)
}
