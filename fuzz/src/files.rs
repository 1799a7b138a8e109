//! Files of a data directory with any content: they are refused or repaired, and a second start changes nothing more.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::TopicPartition;
use monedula::runtime::controller::store;
use partition_log::formats::{
    clean_shutdown, epoch_checkpoint, meta_properties, offset_checkpoint, partition_metadata,
};
use partition_log::{
    Access, Bound, Disk, FileCache, Log, LogConfig, LogOptions, LogReader, OpenMode, ReadRequest, ScrubPlace, SimDisk,
};

use crate::seeds;

/// The directory of the partition.
const HOME: &str = "/t-0";
/// Largest content of a file, so that a run is short.
const FILE_BYTES_MAX: usize = 64 * 1024;
/// The files beside a segment.
pub(crate) const BESIDE: [&str; 8] = [
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000006.snapshot",
    "leader-epoch-checkpoint",
    "partition.metadata",
    "00000000000000000000.log.swap",
    "00000000000000000006.log",
];

fn write(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let written = disk
        .open(&Path::new(HOME).join(name), OpenMode::Truncate)
        .and_then(|file| file.write_at(0, &mut [IoSlice::new(bytes)]));
    assert!(written.is_ok(), "{written:?}");
}

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    assert!(disk.create_dir(Path::new(HOME)).is_ok());
    disk
}

fn options(disk: &SimDisk, recovery_point: i64, clean_shutdown: bool) -> LogOptions {
    LogOptions {
        partition: TopicPartition::new("t", 0),
        directory: PathBuf::from(HOME),
        topic_id: None,
        config: Arc::new(LogConfig { index_interval_bytes: 64, ..LogConfig::default() }),
        files: FileCache::new(Arc::new(disk.clone()), 4),
        recovery_point,
        log_start_offset: 0,
        high_watermark: 0,
        clean_shutdown,
        now_ms: 1_000,
    }
}

/// Names and bytes of all files of the partition.
fn content(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list_dir(Path::new(HOME)).unwrap_or_default();
    let read = |name: &str| partition_log::disk::read_file(disk, &Path::new(HOME).join(name), 1 << 24);
    names.into_iter().map(|entry| (entry.name.clone(), read(&entry.name).unwrap_or_default())).collect()
}

fn look_at(reader: &LogReader) {
    let _ = reader.offset_for_timestamp(20);
    let _ = reader.max_timestamp();
    let _ = reader.aborted_transactions(0, 60);
    let mut offset = reader.log_start_offset();
    while offset < reader.log_end_offset() {
        let request = ReadRequest { offset, max_bytes: 500, min_one_batch: true, bound: Bound::LogEnd };
        let Ok(found) = reader.read(&request, Access::Wait) else { break };
        let last = record_batch::batches(&found.records).filter_map(Result::ok).last();
        let Some(next) = last.map(|batch| batch.header().next_offset()).filter(|next| *next > offset) else { break };
        offset = next;
    }
    let mut place = ScrubPlace::default();
    while let Some(part) = reader.scrub_part(&place) {
        let Ok(found) = part.run(1_000) else { break };
        place = found.next;
    }
}

fn open_and_use(disk: &SimDisk) {
    for (recovery_point, clean) in [(0, false), (5, false), (0, true)] {
        let disk = disk.after_kill();
        let before = content(&disk);
        let Ok(opened) = Log::open(options(&disk, recovery_point, clean)) else {
            let logs = |files: Vec<(String, Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
                files.into_iter().filter(|(name, _)| name.ends_with(".log")).collect()
            };
            assert_eq!(logs(content(&disk)), logs(before), "a log that is refused was changed");
            continue;
        };
        let log = opened.log;
        look_at(&log.reader());
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        // A start after an orderly stop looks at little, so that a later one may find more.
        if log.close().is_err() || clean {
            continue;
        }
        let settled = content(&disk);
        let again = match Log::open(options(&disk, end, false)) {
            Ok(again) => again.log,
            // Only a start that checked everything has nothing more to find.
            Err(_) if recovery_point > 0 => continue,
            Err(error) => refused(&error).log,
        };
        assert_eq!((again.log_start_offset(), again.log_end_offset()), (start, end));
        assert!(again.close().is_ok());
        assert!(settled == content(&disk), "a second recovery changed something");
        let Ok(opened) = Log::open(options(&disk, end, true)) else { continue };
        let mut log = opened.log;
        let _ = log.truncate_to(2, 7);
        let _ = log.close();
    }
}

#[expect(clippy::panic, reason = "that is how a target says what is wrong")]
fn refused(error: &partition_log::OpenError) -> partition_log::Opened {
    panic!("what was recovered and synced is refused: {error}")
}

/// A segment.
pub fn segment(input: &[u8]) {
    let disk = disk();
    write(&disk, "00000000000000000000.log", &input[..input.len().min(FILE_BYTES_MAX)]);
    open_and_use(&disk);
}

/// A file beside a segment that is whole; the first byte chooses which.
pub fn beside_a_segment(input: &[u8]) {
    let Some((which, bytes)) = input.split_first() else { return };
    let disk = disk();
    write(&disk, "00000000000000000000.log", &seeds::segment());
    write(&disk, BESIDE[usize::from(*which) % BESIDE.len()], &bytes[..bytes.len().min(FILE_BYTES_MAX)]);
    open_and_use(&disk);
}

/// The text of a small file: what is read and written is read again as the same.
pub fn checkpoint(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = clean_shutdown::decode(&text);
    let _ = partition_metadata::decode(&text);
    if let Ok(entries) = epoch_checkpoint::decode(&text) {
        assert_eq!(epoch_checkpoint::decode(&epoch_checkpoint::encode(&entries)), Ok(entries));
    }
    if let Ok(properties) = meta_properties::decode(&text) {
        let _ = meta_properties::decode(&meta_properties::encode(&properties));
    }
    if let Ok(offsets) = offset_checkpoint::decode(&text) {
        assert_eq!(offset_checkpoint::decode(&offset_checkpoint::encode(&offsets)), Ok(offsets));
    }
}

/// What the controller keeps: snapshots of the metadata and batches of its log.
pub fn metadata(input: &[u8]) {
    let _ = store::snapshot::decode(input);
    let _ = store::batches::parse(&bytes::Bytes::copy_from_slice(input));
    if let Ok(batch) = record_batch::BatchRef::parse(input) {
        let _ = store::batches::metadata_records(&batch);
        let _ = store::batches::control_records(&batch);
    }
}
