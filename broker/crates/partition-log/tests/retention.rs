//! Retention by time and size, and truncation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use common::*;
use partition_log::{Log, LogConfig};

fn segments_of(change: impl FnOnce(&mut LogConfig), count: i64) -> (Place, Log) {
    let (place, _) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 200;
        config.retention_ms = -1;
        change(config);
    });
    let mut log = place.log();
    for i in 0..count {
        append(&mut log, batch(&[1000 * i])).unwrap();
    }
    (place, log)
}

#[test]
fn segments_go_when_their_largest_timestamp_is_too_old() {
    let (_, mut log) = segments_of(|config| config.retention_ms = 5000, 20);
    let per_segment = 20 / log.segment_count() as i64;
    log.apply_retention(15_500).unwrap();
    assert_eq!(log.log_start_offset(), 10);
    assert_eq!(per_segment, 2);
    assert_eq!(records(&log.reader()).len(), 10);
}

#[test]
fn an_active_segment_that_is_too_old_is_closed_and_goes_with_the_rest() {
    let (place, mut log) = segments_of(|config| config.retention_ms = 5000, 20);
    let report = log.apply_retention(1_000_000).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.segment_count()), (20, 20, 1));
    assert_eq!(report.segments, 10);
    assert_eq!(log.apply_retention(2_000_000).unwrap().segments, 0);
    let log = place.reopen_clean(log);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (20, 20));
}

#[test]
fn the_oldest_segments_go_while_the_rest_is_large_enough() {
    let (_, mut log) = segments_of(|config| config.retention_bytes = 450, 20);
    let one = log.size_bytes() / 10;
    log.apply_retention(0).unwrap();
    assert!(log.size_bytes() >= 450 && log.size_bytes() < 450 + one, "{}", log.size_bytes());
}

#[test]
fn nothing_above_the_high_watermark_goes() {
    let (_, mut log) = segments_of(|config| config.retention_ms = 0, 20);
    log.set_high_watermark(7);
    log.apply_retention(1_000_000).unwrap();
    assert_eq!(log.log_start_offset(), 6);
}

#[test]
fn compacted_logs_lose_nothing_by_age() {
    let (_, mut log) = segments_of(
        |config| {
            config.retention_ms = 0;
            config.cleanup_delete = false;
        },
        20,
    );
    assert_eq!(log.apply_retention(1_000_000).unwrap().segments, 0);
}

#[test]
fn files_of_removed_segments_go_after_the_delay() {
    let (place, mut log) = segments_of(|config| config.file_delete_delay_ms = 60_000, 20);
    log.advance_log_start(10).unwrap();
    log.apply_retention(1000).unwrap();
    let deleted = || {
        let names = place.disk.list_dir(&place.directory()).unwrap();
        names.into_iter().filter(|entry| entry.name.ends_with(".deleted")).count()
    };
    assert_eq!(deleted(), 15);
    assert_eq!(log.remove_expired_files(60_999).unwrap(), 0);
    assert_eq!(log.remove_expired_files(61_000).unwrap(), 15);
    assert_eq!(deleted(), 0);
}

#[test]
fn truncation_removes_the_end_and_the_state_that_came_with_it() {
    let (place, _) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 500;
        config.index_interval_bytes = 100;
    });
    let mut log = place.log();
    for i in 0..30 {
        append_all(&mut log, (i / 10) as i32, 7, &mut [batch_of(1, 0, i as i32 * 2, &[i, i])]).remove(0).unwrap();
    }
    assert!(!log.truncate_to(60, 7).unwrap());
    assert!(log.truncate_to(37, 7).unwrap());
    assert_eq!((log.log_end_offset(), log.latest_epoch()), (37, Some(1)));
    let reader = log.reader();
    assert_eq!(records(&reader).len(), 36);
    assert_eq!(reader.max_timestamp().unwrap().unwrap().offset, 34);
    let again = append_all(&mut log, 5, 7, &mut [batch_of(1, 0, 36, &[100])]).remove(0).unwrap();
    assert_eq!((again.first_offset, again.duplicate), (37, false));
    assert!(log.truncate_to(0, 7).unwrap());
    assert_eq!((log.log_end_offset(), log.segment_count(), log.producer_count()), (0, 1, 0));
    assert_eq!(append(&mut log, batch_of(1, 0, 500, &[1])).unwrap().first_offset, 0);
    log.truncate_fully_and_start_at(77, 7).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.high_watermark()), (77, 77, 77));
    assert_eq!(append(&mut log, batch(&[1])).unwrap().first_offset, 77);
    assert_eq!(records(&place.log().reader()).len(), 1);
}

#[test]
fn readers_that_run_into_a_truncation_see_one_life_of_the_log() {
    let (place, _) = Place::simulated();
    let mut log = place.with(|config| config.segment_bytes = 2000).log();
    let reader = log.reader();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = 0;
            while !(reader.log_end_offset() == 400 && reader.log_start_offset() == 0 && seen > 0) {
                // Whatever is there is whole and in order; `records` checks it.
                seen = reader.log_end_offset().min(1) as usize + records_or_none(&reader);
            }
        });
        for round in 0..30 {
            for i in 0..10 {
                append_all(&mut log, round, 7, &mut [batch(&[i, i])]).remove(0).unwrap();
            }
            log.truncate_to(7, 7).unwrap();
        }
        while log.log_end_offset() < 399 {
            append(&mut log, batch(&[1])).unwrap();
        }
        append(&mut log, batch(&[1])).unwrap();
        watching.join().unwrap();
    });
}

fn records_or_none(reader: &partition_log::LogReader) -> usize {
    use partition_log::{Access, Bound, ReadError, ReadRequest};
    let request = ReadRequest { offset: 0, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::LogEnd };
    match reader.read(&request, Access::Wait) {
        Ok(result) => record_batch::batches(&result.records).map(|batch| batch.unwrap().verify_crc().unwrap()).count(),
        Err(ReadError::OutOfRange { .. }) => 0,
        Err(error) => panic!("{error}"),
    }
}
