//! Compaction that does not run alone or to its end: readers, truncations, stops, damage, and what recovery makes of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::ops::ControlFlow;

use common::cleaning::*;
use partition_log::{Access, Bound, CleanError, CleaningProgress, ReadRequest, Records};

#[test]
fn a_reader_goes_on_with_the_old_file() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1"))]);
    put(&mut log, 5, &[("a", Some("2"))]);
    log.roll(10).unwrap();
    let reader = log.reader();
    let request = ReadRequest { offset: 0, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::LogEnd };
    let Records::File(slice) = reader.fetch(&request, Access::Wait, 1).unwrap().records else { panic!("in memory") };
    let whole = reader.read(&request, Access::Wait).unwrap().records;
    clean_with(&mut log, 0, &options(10)).unwrap();
    log.remove_expired_files(i64::MAX).unwrap();
    let mut bytes = vec![0; slice.len_bytes as usize];
    slice.file.read_at(slice.position, &mut bytes).unwrap();
    assert_eq!(bytes, whole);
    assert!(reader.read(&request, Access::Wait).unwrap().records.len() < whole.len());
}

#[test]
fn a_cleaning_that_was_stopped_or_overtaken_leaves_no_trace() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1"))]);
    put(&mut log, 5, &[("a", Some("2"))]);
    log.roll(10).unwrap();
    put(&mut log, 5, &[("a", Some("3"))]);
    let before = stored(&log.reader());
    let begin = |log: &mut partition_log::Log| {
        let cleanable = log.cleanable(None, 10).unwrap();
        let job = log.begin_cleaning(&cleanable, &options(10)).unwrap().unwrap();
        assert!(log.begin_cleaning(&cleanable, &options(10)).unwrap().is_none(), "one at a time");
        job
    };
    let mut bytes = 0;
    let stopped = begin(&mut log).run(&mut |more| {
        bytes += more;
        if bytes > 200 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let progress = log.finish_cleaning(stopped, 10).unwrap();
    assert!(matches!(progress, CleaningProgress::Ended(CleanError::Stopped)));
    let done = begin(&mut log).run(&mut |_| ControlFlow::Continue(()));
    log.truncate_to(2, 10).unwrap();
    let progress = log.finish_cleaning(done, 10).unwrap();
    assert!(matches!(progress, CleaningProgress::Ended(CleanError::Overtaken)));
    assert_eq!(stored(&log.reader()), before[..before.len() * 2 / 3]);
    let names = place.disk.list_dir(&place.directory()).unwrap();
    assert!(names.iter().all(|entry| !entry.name.ends_with(".cleaned")), "{names:?}");
}

#[test]
fn a_damaged_batch_ends_the_cleaning_and_stays() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1"))]);
    put(&mut log, 5, &[("a", Some("2"))]);
    log.roll(10).unwrap();
    let file = place.disk.open(&place.file("00000000000000000000.log"), partition_log::OpenMode::Existing).unwrap();
    let end = file.len().unwrap();
    file.write_at(end - 2, &mut [std::io::IoSlice::new(b"!")]).unwrap();
    let error = clean_with(&mut log, 0, &options(10)).unwrap_err();
    assert!(error.contains("corrupt"), "{error}");
    assert_eq!(file.len().unwrap(), end);
    // It is found in the clean part too, of which the first pass reads nothing.
    put(&mut log, 5, &[("a", Some("3"))]);
    log.roll(10).unwrap();
    let error = clean_with(&mut log, 2, &options(10)).unwrap_err();
    assert!(error.contains("corrupt"), "{error}");
}

#[test]
fn cleaned_segments_leave_no_gap_that_could_be_taken_for_a_loss() {
    let (place, _) = compacted();
    let place = place.with(|config| config.segment_bytes = 200);
    let mut log = place.log();
    (0..9).for_each(|at| {
        put(&mut log, 5, &[("first", Some("v")), (&format!("k{}", at % 2), Some("v"))]);
        put(&mut log, 5, &[("same", Some("v"))]);
    });
    clean(&mut log, 0, 10);
    let expected = values(&log.reader());
    log.flush().unwrap();
    log.abandon();
    // Recovery of a log that is no longer compacted takes a gap for lost batches.
    let log = place.with(|config| config.cleanup_compact = false).log();
    assert_eq!((values(&log.reader()), log.log_end_offset()), (expected, 27));
}

#[test]
fn a_read_passes_over_segments_without_records_where_records_follow() {
    let (place, _) = compacted();
    let place = place.with(|config| config.segment_bytes = 100);
    let mut log = place.log();
    (0..30).for_each(|_| {
        put(&mut log, 5, &[("same", Some("v"))]);
        log.roll(10).unwrap();
    });
    put(&mut log, 5, &[("other", Some("v"))]);
    clean(&mut log, 0, 10);
    assert!(log.segment_count() > 25);
    let read = |log: &partition_log::Log, offset| {
        let request = ReadRequest { offset, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::LogEnd };
        let records = log.reader().read(&request, Access::Wait).unwrap().records;
        let first = record_batch::batches(&records).next().unwrap().unwrap();
        (first.header().base_offset, first.header().record_count)
    };
    assert_eq!(read(&log, 0), (29, 1));
    assert_eq!(read(&log, 3), (29, 1));
    put(&mut log, 5, &[("same", Some("v")), ("other", Some("v"))]);
    clean(&mut log, 31, 10);
    put(&mut log, 5, &[("same", Some("v")), ("other", Some("v"))]);
    clean(&mut log, 33, 10);
    // The active segment is empty: a reader has to be led to the log's end.
    assert_eq!(log.log_end_offset(), 35);
    assert_eq!(read(&log, 0), (33, 2));
    assert_eq!(read(&log, 31), (33, 2));
}
