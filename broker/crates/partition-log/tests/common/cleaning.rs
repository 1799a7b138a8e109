//! What the tests of compaction share.

use std::ops::ControlFlow;

use base::Offset;
use partition_log::{
    Access, AppendItem, AppendOrigin, AppendScratch, Bound, Cleanable, CleaningOptions, CleaningProgress,
    CleaningReport, Log, LogReader, ReadRequest, SimDisk,
};
use record_batch::control::{ControlRecordType, end_txn_marker_value};
use record_batch::{BatchBuilder, BatchHeader, RecordData, RecordReader, batches};

use super::Place;

/// Key and value of a record; a value of `None` is a tombstone.
pub type Pair<'a> = (&'a str, Option<&'a str>);
/// Offset, timestamp, key and value of a record.
pub type Found = (Offset, i64, String, Option<String>);

/// A compacted topic's partition whose segments close only when the test says so.
pub fn compacted() -> (Place, SimDisk) {
    let (place, disk) = Place::simulated();
    let place = place.with(|config| {
        config.cleanup_compact = true;
        config.cleanup_delete = false;
        config.min_cleanable_dirty_ratio = 0.0;
        config.index_interval_bytes = 100;
        config.file_delete_delay_ms = 0;
        config.producer_id_expiration_ms = i64::MAX;
    });
    (place, disk)
}

pub fn keyed(mut builder: BatchBuilder, timestamp: i64, pairs: &[Pair<'_>]) -> Vec<u8> {
    for (key, value) in pairs {
        let record = RecordData::new(timestamp).key(key.as_bytes());
        match value {
            Some(value) => builder.append(&record.value(value.as_bytes())),
            None => builder.append(&record),
        }
    }
    builder.build().unwrap()
}

/// Appends a batch and returns its base offset; everything is replicated at once.
pub fn append_as(log: &mut Log, mut records: Vec<u8>, origin: AppendOrigin) -> Result<Offset, String> {
    let mut items = [AppendItem { records: &mut records, origin, transaction_verified: true }];
    let mut results = Vec::new();
    log.append_as_leader(&mut AppendScratch::default(), &mut items, 0, 1_000_000, &mut results);
    let appended = results.remove(0).map_err(|error| error.to_string())?;
    log.set_high_watermark(log.log_end_offset());
    Ok(appended.first_offset)
}

pub fn put(log: &mut Log, timestamp: i64, pairs: &[Pair<'_>]) -> Offset {
    append_as(log, keyed(BatchBuilder::new(0), timestamp, pairs), AppendOrigin::Client).unwrap()
}

pub fn put_in_txn(log: &mut Log, producer_id: i64, sequence: i32, pairs: &[Pair<'_>]) -> Offset {
    let builder = BatchBuilder::new(0).producer(producer_id, 0, sequence).transactional();
    append_as(log, keyed(builder, 10, pairs), AppendOrigin::Client).unwrap()
}

pub fn end_txn(log: &mut Log, producer_id: i64, kind: ControlRecordType) -> Offset {
    let mut builder = BatchBuilder::new(0).producer(producer_id, 0, -1).transactional().control();
    builder.append(&RecordData::new(10).key(&kind.key()).value(&end_txn_marker_value(0)));
    append_as(log, builder.build().unwrap(), AppendOrigin::Coordinator).unwrap()
}

pub fn options(now_ms: i64) -> CleaningOptions {
    CleaningOptions { now_ms, map_bytes_max: 1 << 20, map_load_factor: 0.9, seed: 42 }
}

/// Cleans what can be cleaned; the map takes so many bytes.
pub fn clean_with(log: &mut Log, checkpoint: Offset, options: &CleaningOptions) -> Result<CleaningReport, String> {
    let text = |error: partition_log::LogError| error.to_string();
    let cleanable: Cleanable = log.cleanable(Some(checkpoint), options.now_ms).map_err(text)?;
    let Some(mut job) = log.begin_cleaning(&cleanable, options).map_err(text)? else {
        return Ok(CleaningReport { end_offset: checkpoint, ..CleaningReport::default() });
    };
    loop {
        let outcome = job.run(&mut |_| ControlFlow::Continue(()));
        match log.finish_cleaning(outcome, options.now_ms).map_err(text)? {
            CleaningProgress::More(next) => job = next,
            CleaningProgress::Done(report) => return Ok(report),
            CleaningProgress::Ended(error) => return Err(error.to_string()),
        }
    }
}

/// Closes the active segment and cleans all before it.
pub fn clean(log: &mut Log, checkpoint: Offset, now_ms: i64) -> CleaningReport {
    log.roll(now_ms).unwrap();
    clean_with(log, checkpoint, &options(now_ms)).unwrap()
}

/// All bytes of the log, by way of its readers.
pub fn stored(reader: &LogReader) -> Vec<u8> {
    let mut offset = reader.log_start_offset();
    let mut all = Vec::new();
    while offset < reader.log_end_offset() {
        let request = ReadRequest { offset, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::LogEnd };
        let result = reader.read(&request, Access::Wait).unwrap();
        let Some(last) = batches(&result.records).last() else { break };
        offset = last.unwrap().header().next_offset();
        all.extend_from_slice(&result.records);
    }
    all
}

pub fn headers(reader: &LogReader) -> Vec<BatchHeader> {
    batches(&stored(reader)).map(|batch| *batch.unwrap().header()).collect()
}

/// All records but those of control batches.
pub fn found(reader: &LogReader) -> Vec<Found> {
    let mut all = Vec::new();
    for batch in batches(&stored(reader)) {
        let batch = batch.unwrap();
        batch.verify_crc().unwrap();
        let mut records = RecordReader::open(&batch, 1 << 20).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            if !batch.header().is_control() {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                all.push((record.offset, record.timestamp, text(record.key.unwrap()), record.value.map(text)));
            }
        }
    }
    all
}

pub fn values(reader: &LogReader) -> Vec<(Offset, String)> {
    found(reader)
        .into_iter()
        .map(|(offset, _, key, value)| (offset, format!("{key}={}", value.unwrap_or_default())))
        .collect()
}
