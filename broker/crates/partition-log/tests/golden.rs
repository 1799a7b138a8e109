//! Files that Apache Kafka 4.4 wrote (see golden/README.md): ours read them, and write the same bytes from the same
//! batches.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use base::TopicPartition;
use common::*;
use partition_log::disk::{RealDisk, read_file};
use partition_log::formats::{
    clean_shutdown, epoch_checkpoint, meta_properties, offset_checkpoint, partition_metadata,
};
use partition_log::{Access, AppendScratch, Bound, Disk, Log, OpenMode, ReadRequest, SimDisk};
use record_batch::{RecordReader, batches};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn text(name: &str) -> String {
    String::from_utf8(read_file(&RealDisk, &golden().join(name), 1 << 20).unwrap()).unwrap()
}

/// The files of the partition by name.
fn kafkas_files() -> BTreeMap<String, Vec<u8>> {
    let directory = golden().join("golden-0");
    let names = RealDisk.list_dir(&directory).unwrap();
    names
        .into_iter()
        .map(|e| (e.name.clone(), read_file(&RealDisk, &directory.join(e.name), 1 << 20).unwrap()))
        .collect()
}

fn files_of(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let names = place.disk.list_dir(&place.directory()).unwrap();
    let content = |name: &str| read_file(place.disk.as_ref(), &place.file(name), 1 << 20).unwrap();
    names.into_iter().map(|entry| (entry.name.clone(), content(&entry.name))).collect()
}

fn empty_place() -> (Place, SimDisk) {
    let (mut place, disk) = Place::simulated();
    let topic_id = partition_metadata::decode(&text("golden-0/partition.metadata")).unwrap();
    place.topic_id = topic_id;
    // The records are years old: nothing may count as expired.
    place.now_ms = 0;
    let place = place.with(|config| {
        config.index_interval_bytes = 512;
        config.segment_ms = 100_000;
        config.retention_ms = -1;
    });
    (place, disk)
}

/// A simulated disk that holds some of Kafka's files.
fn place_with(keeps: impl Fn(&str) -> bool) -> (Place, SimDisk) {
    let (place, disk) = empty_place();
    disk.create_dir(&place.directory()).unwrap();
    for (name, bytes) in kafkas_files().iter().filter(|(name, _)| keeps(name)) {
        let file = disk.open(&place.file(name), OpenMode::Create).unwrap();
        file.write_at(0, &mut [IoSlice::new(bytes)]).unwrap();
    }
    (place, disk)
}

/// Everything a reader can learn.
fn seen(log: &Log) -> Vec<(i64, i64, Vec<u8>)> {
    let reader = log.reader();
    let mut offset = reader.log_start_offset();
    let mut found = Vec::new();
    while offset < reader.log_end_offset() {
        let request = ReadRequest { offset, max_bytes: 1, min_one_batch: true, bound: Bound::LogEnd };
        let result = reader.read(&request, Access::Wait).unwrap();
        for batch in batches(&result.records) {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            let mut records = RecordReader::open(&batch, 1 << 20).unwrap();
            while let Some(record) = records.next_record().unwrap() {
                found.push((record.offset, record.timestamp, record.value.unwrap_or_default().to_vec()));
            }
            offset = batch.header().next_offset();
        }
    }
    found
}

fn check_content(log: &Log) {
    let found = seen(log);
    let offsets: Vec<i64> = found.iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(offsets, (0..94).collect::<Vec<i64>>());
    let plain = |at: usize| String::from_utf8(found[at].2.clone()).unwrap();
    assert_eq!(plain(77), "record 77 of the golden topic, made to be read again");
    let reader = log.reader();
    assert_eq!((log.log_end_offset(), log.high_watermark(), log.last_stable_offset()), (94, 94, 92));
    let aborted = reader.aborted_transactions(0, 94).unwrap();
    assert_eq!(aborted.iter().map(|txn| (txn.first_offset, txn.last_offset)).collect::<Vec<_>>(), [(84, 87)]);
    assert_eq!(log.oldest_transaction().unwrap().0, 92);
    assert_eq!(log.producer_count(), 7);
    assert_eq!(log.segment_count(), 4);
    let start_ms = 1_600_000_000_000;
    let at = |timestamp| reader.offset_for_timestamp(timestamp).unwrap().map(|found| found.offset);
    // The timestamps of a batch are 0, 2, 4, 1, 3 past the full second.
    let asked = [-5, 0, 1, 3, 4, 5, 11_004, 11_005, 200_001, 200_004, 200_005];
    let expected = [0, 0, 1, 2, 2, 5, 57, 60, 61, 62, 80].map(Some);
    assert_eq!(asked.map(|delta| at(start_ms + delta)), expected);
    assert_eq!(at(i64::MAX), None);
}

#[test]
fn the_files_of_the_log_directory_read_as_kafka_means_them() {
    assert_eq!(clean_shutdown::decode(&text("clean-shutdown")), Some(15));
    let properties = meta_properties::decode(&text("meta.properties")).unwrap();
    assert_eq!((properties.node_id.0, properties.cluster_id.as_str()), (1, "AAAAAAAAAAAAAAAAAAAAAA"));
    assert!(properties.directory_id.is_some());
    for name in ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"] {
        let offsets = offset_checkpoint::decode(&text(name)).unwrap();
        assert_eq!(offsets[&TopicPartition::new("golden", 0)], 94, "{name}");
        assert_eq!(offsets.len(), 53);
        let written: Vec<String> = offset_checkpoint::encode(&offsets).lines().map(str::to_owned).collect();
        let mut kafkas: Vec<String> = text(name).lines().map(str::to_owned).collect();
        let mut ours = written;
        kafkas.sort();
        ours.sort();
        assert_eq!(ours, kafkas);
    }
    for name in ["log-start-offset-checkpoint", "cleaner-offset-checkpoint"] {
        assert!(offset_checkpoint::decode(&text(name)).unwrap().is_empty());
    }
    let epochs = text("golden-0/leader-epoch-checkpoint");
    assert_eq!(epoch_checkpoint::encode(&epoch_checkpoint::decode(&epochs).unwrap()), epochs);
    let metadata = text("golden-0/partition.metadata");
    assert_eq!(partition_metadata::encode(partition_metadata::decode(&metadata).unwrap()), metadata);
}

#[test]
fn a_log_that_kafka_closed_opens_without_recovery() {
    let (place, _) = place_with(|_| true);
    let opened = Place { clean: true, recovery_point: 94, high_watermark: 94, ..place.clone() }.open().unwrap();
    assert_eq!(opened.report, partition_log::RecoveryReport::default());
    check_content(&opened.log);
    opened.log.close().unwrap();
    assert_eq!(files_of(&place), kafkas_files());
}

#[test]
fn recovery_makes_the_files_that_kafka_had() {
    let (place, _) = place_with(|name| name.ends_with(".log") || name == "partition.metadata");
    let opened = Place { high_watermark: 94, ..place.clone() }.open().unwrap();
    assert_eq!((opened.report.recovered_segments, opened.report.truncated_bytes), (4, 0));
    check_content(&opened.log);
    opened.log.close().unwrap();
    assert_eq!(files_of(&place), kafkas_files());
}

#[test]
fn appended_batches_make_the_files_that_kafka_had() {
    let (place, _) = empty_place();
    let mut log = place.log();
    for (name, bytes) in kafkas_files().iter().filter(|(name, _)| name.ends_with(".log")) {
        for batch in batches(bytes) {
            let batch = batch.unwrap_or_else(|error| panic!("{name}: {error}"));
            log.append_as_follower(&mut AppendScratch::default(), batch.bytes(), 0).unwrap();
        }
    }
    log.set_high_watermark(94);
    check_content(&log);
    log.close().unwrap();
    assert_eq!(files_of(&place), kafkas_files());
}

#[test]
fn what_kafka_left_open_after_a_crash_is_recovered() {
    // Kafka keeps the indexes of the active segment at full size while it runs.
    let (place, disk) = place_with(|name| !name.starts_with("00000000000000000094"));
    for (name, full) in [("index", 10_485_760), ("timeindex", 10_485_756)] {
        let path = place.file(&format!("00000000000000000083.{name}"));
        disk.open(&path, OpenMode::Existing).unwrap().set_len(full).unwrap();
    }
    let opened = Place { high_watermark: 94, ..place.clone() }.open().unwrap();
    check_content(&opened.log);
    opened.log.close().unwrap();
    assert_eq!(files_of(&place), kafkas_files());
}
