//! What the tests of the log share: a partition on some disk, batches, and a shorter way to append and read.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part, and fails by a panic")]

pub mod cleaning;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Offset, TopicId, TopicPartition};
use partition_log::{
    Access, AppendError, AppendItem, AppendOrigin, AppendScratch, Appended, Bound, Disk, FileCache, Log, LogConfig,
    LogOptions, LogReader, OpenError, Opened, ReadRequest, SimDisk,
};
use record_batch::{BatchBuilder, RecordData, batches};

/// The log directory of all tests.
pub const HOME: &str = "/data";

/// A partition and how to open it.
#[derive(Clone)]
pub struct Place {
    pub disk: Arc<dyn Disk>,
    pub home: PathBuf,
    pub config: LogConfig,
    pub recovery_point: Offset,
    pub log_start_offset: Offset,
    pub high_watermark: Offset,
    pub clean: bool,
    pub now_ms: i64,
    pub open_max: usize,
    pub topic_id: TopicId,
}

impl Place {
    pub fn new(disk: Arc<dyn Disk>, home: &Path) -> Self {
        Place {
            disk,
            home: home.to_path_buf(),
            config: LogConfig::default(),
            recovery_point: 0,
            log_start_offset: 0,
            high_watermark: 0,
            clean: false,
            now_ms: 1_000_000,
            open_max: 16,
            topic_id: "4L6g3nShT-eMCtK--X86sw".parse().unwrap(),
        }
    }

    pub fn simulated() -> (Self, SimDisk) {
        let disk = SimDisk::new();
        disk.create_dir(Path::new(HOME)).unwrap();
        (Place::new(Arc::new(disk.clone()), Path::new(HOME)), disk)
    }

    pub fn on(&self, disk: SimDisk) -> Self {
        Place { disk: Arc::new(disk), ..self.clone() }
    }

    pub fn with(mut self, change: impl FnOnce(&mut LogConfig)) -> Self {
        change(&mut self.config);
        self
    }

    pub fn directory(&self) -> PathBuf {
        self.home.join("t-0")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    pub fn open(&self) -> Result<Opened, OpenError> {
        Log::open(LogOptions {
            partition: TopicPartition::new("t", 0),
            directory: self.directory(),
            topic_id: Some(self.topic_id),
            config: Arc::new(self.config.clone()),
            files: FileCache::new(self.disk.clone(), self.open_max),
            recovery_point: self.recovery_point,
            log_start_offset: self.log_start_offset,
            high_watermark: self.high_watermark,
            clean_shutdown: self.clean,
            now_ms: self.now_ms,
        })
    }

    pub fn log(&self) -> Log {
        self.open().unwrap().log
    }

    /// Closes in order and opens again with what the checkpoints would hold.
    pub fn reopen_clean(&self, log: Log) -> Log {
        let closed = log.close().unwrap();
        let place = Place {
            recovery_point: closed.recovery_point,
            log_start_offset: closed.log_start_offset,
            high_watermark: closed.high_watermark,
            clean: true,
            ..self.clone()
        };
        place.log()
    }
}

/// A batch of records with these timestamps; each value names its place.
pub fn batch(timestamps: &[i64]) -> Vec<u8> {
    fill(BatchBuilder::new(0), timestamps, 20)
}

/// The same of an idempotent producer.
pub fn batch_of(producer_id: i64, epoch: i16, sequence: i32, timestamps: &[i64]) -> Vec<u8> {
    fill(BatchBuilder::new(0).producer(producer_id, epoch, sequence), timestamps, 20)
}

/// The same with values of a chosen size.
pub fn sized_batch(timestamp: i64, value_bytes: usize) -> Vec<u8> {
    fill(BatchBuilder::new(0), &[timestamp], value_bytes)
}

pub fn fill(mut builder: BatchBuilder, timestamps: &[i64], value_bytes: usize) -> Vec<u8> {
    for (at, timestamp) in timestamps.iter().enumerate() {
        let mut value = format!("value {at} at {timestamp}").into_bytes();
        value.resize(value_bytes, b'.');
        builder.append(&RecordData::new(*timestamp).key(b"k").value(&value));
    }
    builder.build().unwrap()
}

/// Appends batches of clients in one call.
pub fn append_all(
    log: &mut Log,
    epoch: i32,
    now_ms: i64,
    batches: &mut [Vec<u8>],
) -> Vec<Result<Appended, AppendError>> {
    let mut items: Vec<AppendItem<'_>> = batches
        .iter_mut()
        .map(|records| AppendItem { records, origin: AppendOrigin::Client, transaction_verified: true })
        .collect();
    let mut results = Vec::new();
    log.append_as_leader(&mut AppendScratch::default(), &mut items, epoch, now_ms, &mut results);
    results
}

pub fn append(log: &mut Log, batch: Vec<u8>) -> Result<Appended, AppendError> {
    let appended = append_all(log, 0, 1_000_000, &mut [batch]).remove(0);
    log.set_high_watermark(log.log_end_offset());
    appended
}

pub fn read(reader: &LogReader, offset: Offset, max_bytes: usize, min_one_batch: bool) -> Vec<(Offset, Offset)> {
    let request = ReadRequest { offset, max_bytes, min_one_batch, bound: Bound::LogEnd };
    let result = reader.read(&request, Access::Wait).unwrap();
    batches(&result.records)
        .map(|batch| batch.unwrap())
        .map(|b| (b.header().base_offset, b.header().last_offset()))
        .collect()
}

/// All records from the log start to the end: offset, timestamp and value.
pub fn records(reader: &LogReader) -> Vec<(Offset, i64, Vec<u8>)> {
    let mut offset = reader.log_start_offset();
    let mut all = Vec::new();
    while offset < reader.log_end_offset() {
        let request = ReadRequest { offset, max_bytes: 700, min_one_batch: true, bound: Bound::LogEnd };
        let result = reader.read(&request, Access::Wait).unwrap();
        if result.records.is_empty() {
            break;
        }
        for batch in batches(&result.records) {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            for record in batch.plain_records().unwrap() {
                let record = record.unwrap();
                if record.offset >= reader.log_start_offset() {
                    all.push((record.offset, record.timestamp, record.value.unwrap_or_default().to_vec()));
                }
            }
            offset = batch.header().next_offset();
        }
    }
    all
}
