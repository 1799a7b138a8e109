//! The first pass of a cleaning: every key of the dirty section with its last offset goes into the map, until the map is
//! full (Kafka: Cleaner.buildOffsetMap).

use std::sync::Arc;

use base::Offset;
use record_batch::RecordReader;

use super::offset_map::OffsetMap;
use super::transactions::Transactions;
use super::{CleanError, DECOMPRESSED_BYTES_MAX, Throttle, Work, paced};
use crate::scan::{Depth, Scanned};
use crate::segment::Segment;
use crate::txn_index::AbortedTxn;

/// Reads the dirty section of `segments`, all of which lie below `work.end_offset`.
pub(super) fn offset_map(
    work: &Work,
    segments: &[Arc<Segment>],
    throttle: &mut Throttle<'_>,
) -> Result<OffsetMap, CleanError> {
    let start = work.first_dirty_offset;
    let keys = u64::try_from(work.end_offset - start).unwrap_or(0);
    let mut map = OffsetMap::new(keys, work.map_bytes_max, work.map_load_factor, work.seed, start - 1);
    let touching: Vec<AbortedTxn> = work.aborted.iter().copied().filter(|txn| txn.last_offset >= start).collect();
    let mut transactions = Transactions::new(&touching);
    let first = segments.partition_point(|segment| segment.base_offset() <= start).saturating_sub(1);
    for (at, segment) in segments.iter().enumerate().skip(first) {
        let index = segment.index(work.disk(), &work.directory);
        let index = index.map_err(|error| work.read_error(segment, error))?;
        let begin = u64::from(index.position_before(segment.relative(start)));
        let mut scanner = work.scanner(segment, begin)?;
        while let Some(scanned) = scanner.next(Depth::Checked).map_err(|error| work.scan_error(segment, error))? {
            paced(throttle, scanned.header.total_len())?;
            if !take_batch(&mut map, &mut transactions, &scanned, start)? {
                return if map.latest_offset() < start {
                    Err(CleanError::MapTooSmall { keys: map.len() })
                } else {
                    Ok(map)
                };
            }
        }
        let next = segments.get(at + 1).map_or(work.end_offset, |next| next.base_offset());
        map.advance_to(next - 1);
    }
    Ok(map)
}

/// False when the map was full before the batch was taken in.
fn take_batch(
    map: &mut OffsetMap,
    transactions: &mut Transactions,
    scanned: &Scanned<'_>,
    start: Offset,
) -> Result<bool, CleanError> {
    let header = &scanned.header;
    let Some(batch) = &scanned.batch else { return Ok(true) };
    if header.is_control() {
        transactions.on_control(batch)?;
    } else if !transactions.on_data(header) && header.last_offset() >= start {
        let corrupt = |reason: String| CleanError::Corrupt { offset: header.base_offset, reason };
        let mut records =
            RecordReader::open(batch, DECOMPRESSED_BYTES_MAX).map_err(|error| corrupt(error.to_string()))?;
        while let Some(record) = records.next_record().map_err(|error| corrupt(error.to_string()))? {
            if let Some(key) = record.key.filter(|_| record.offset >= start)
                && !map.put(key, record.offset)
            {
                return Ok(false);
            }
        }
    }
    if header.last_offset() >= start {
        map.advance_to(header.last_offset());
    }
    Ok(true)
}
