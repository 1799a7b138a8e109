//! Look-ups by timestamp and at the log start (BL-056, 058, 059, 065).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use common::*;
use partition_log::{Log, LogReader};
use record_batch::{BatchBuilder, Codec, Compression, RecordData};

fn at(reader: &LogReader, timestamp: i64) -> Option<(i64, i64)> {
    reader.offset_for_timestamp(timestamp).unwrap().map(|found| (found.offset, found.timestamp))
}

fn max(reader: &LogReader) -> Option<(i64, i64)> {
    reader.max_timestamp().unwrap().map(|found| (found.offset, found.timestamp))
}

fn log() -> Log {
    Place::simulated().0.with(|config| config.index_interval_bytes = 100).log()
}

fn append_time_batch(now: i64, count: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).log_append_time(now);
    (0..count).for_each(|i| builder.append(&RecordData::new(i as i64).value(b"v")));
    builder.build().unwrap()
}

#[test]
fn bl_056_the_largest_timestamp_names_its_record() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let mut log = log();
        append(&mut log, batch(&[1])).unwrap();
        let mut builder = BatchBuilder::new(0).compression(Codec::with_default_level(compression));
        [5, 9, 7, 9].iter().for_each(|timestamp| builder.append(&RecordData::new(*timestamp).value(b"v")));
        append(&mut log, builder.build().unwrap()).unwrap();
        append(&mut log, batch(&[8])).unwrap();
        assert_eq!(max(&log.reader()), Some((2, 9)), "{compression:?}");
    }
    let mut log = log();
    append(&mut log, append_time_batch(50, 3)).unwrap();
    append(&mut log, append_time_batch(50, 3)).unwrap();
    append(&mut log, append_time_batch(49, 1)).unwrap();
    assert_eq!(max(&log.reader()), Some((0, 50)));
    assert_eq!(at(&log.reader(), 50), Some((0, 50)));
    assert_eq!(max(&Place::simulated().0.log().reader()), None);
}

#[test]
fn bl_058_a_look_up_rounds_up() {
    let mut log = log();
    append(&mut log, batch(&[2, 4, 6, 8])).unwrap();
    let reader = log.reader();
    assert_eq!([3, 5, 7, 8].map(|timestamp| at(&reader, timestamp).unwrap().0), [1, 2, 3, 3]);
    assert_eq!(at(&reader, 9), None);
}

#[test]
fn bl_059_the_first_record_in_the_order_of_offsets_is_found_exactly() {
    let mut log = log();
    append(&mut log, batch(&(1000..2000).collect::<Vec<i64>>())).unwrap();
    append(&mut log, batch(&(1500..2500).collect::<Vec<i64>>())).unwrap();
    append(&mut log, batch(&[100, 3000, 200])).unwrap();
    append(&mut log, batch(&[2600])).unwrap();
    let reader = log.reader();
    assert_eq!(at(&reader, 1700), Some((700, 1700)));
    assert_eq!(at(&reader, 2100), Some((1600, 2100)));
    assert_eq!(at(&reader, 2550), Some((2001, 3000)));
    assert_eq!(at(&reader, 0), Some((0, 1000)));
}

#[test]
fn bl_065_the_log_start_can_be_read_although_it_lies_inside_a_batch() {
    let (place, _) = Place::simulated();
    let mut log = place.with(|config| config.segment_bytes = 400).log();
    for i in 0..20 {
        append(&mut log, batch(&[i * 10, i * 10 + 1, i * 10 + 2])).unwrap();
    }
    log.advance_log_start(31).unwrap();
    log.apply_retention(1000).unwrap();
    let reader = log.reader();
    assert_eq!(reader.log_start_offset(), 31);
    assert_eq!(read(&reader, 31, 10, true), [(30, 32)]);
    assert_eq!(at(&reader, 0), Some((31, 101)));
    assert!(log.advance_log_start(61).is_err());
    assert_eq!(log.advance_log_start(10).unwrap(), 31);
}

#[test]
fn look_ups_agree_after_a_restart() {
    let (place, _) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 700;
        config.index_interval_bytes = 100;
    });
    let mut log = place.log();
    let timestamps: Vec<i64> = (0..300).map(|i| (i * 7919) % 1000).collect();
    for chunk in timestamps.chunks(3) {
        append(&mut log, batch(chunk)).unwrap();
    }
    let expected = |asked: i64| {
        timestamps.iter().position(|found| *found >= asked).map(|offset| (offset as i64, timestamps[offset]))
    };
    for _ in 0..3 {
        let reader = log.reader();
        for asked in 0..1001 {
            assert_eq!(at(&reader, asked), expected(asked), "{asked}");
        }
        let largest = *timestamps.iter().max().unwrap();
        assert_eq!(max(&reader), expected(largest));
        log = place.reopen_clean(log);
    }
}
