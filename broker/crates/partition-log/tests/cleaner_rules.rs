//! The rules of compaction, one by one (Kafka: LogCleanerTest, LogCleanerManagerTest; KIP-534, KIP-354, KIP-58).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use common::cleaning::*;
use partition_log::{AppendOrigin, CleaningOptions, HeldBack};
use record_batch::control::ControlRecordType::{Abort, Commit};
use record_batch::{BatchBuilder, Codec, RecordData, batches};

fn named(pairs: &[(i64, &str)]) -> Vec<(i64, String)> {
    pairs.iter().map(|(offset, text)| (*offset, (*text).to_owned())).collect()
}

#[test]
fn of_each_key_the_last_value_stays_where_it_was() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1")), ("b", Some("1")), ("a", Some("2"))]);
    put(&mut log, 6, &[("c", Some("1"))]);
    put(&mut log, 7, &[("b", Some("2")), ("d", Some("1"))]);
    log.roll(10).unwrap();
    put(&mut log, 8, &[("d", Some("active"))]);
    let report = clean_with(&mut log, 0, &options(10)).unwrap();
    let expected = named(&[(2, "a=2"), (3, "c=1"), (4, "b=2"), (5, "d=1"), (6, "d=active")]);
    assert_eq!(values(&log.reader()), expected, "the active segment takes no part");
    assert_eq!((report.end_offset, report.map_keys, report.records_read, report.records_kept), (6, 4, 6, 4));
    assert_eq!(found(&log.reader())[0].1, 5, "timestamps stay");
    // The same after a start, which finds the files alone.
    assert_eq!(values(&place.reopen_clean(log).reader()), expected);
    assert_eq!(values(&place.log().reader()), expected);
}

#[test]
fn bl_046_the_last_batch_stays_so_that_a_reader_gets_to_the_end() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1"))]);
    put_in_txn(&mut log, 7, 0, &[("a", Some("2")), ("b", Some("1"))]);
    end_txn(&mut log, 7, Abort);
    log.roll(10).unwrap();
    let end = log.log_end_offset();
    for (checkpoint, now_ms) in [(0, 10), (0, 1 << 40), (end, 1 << 50)] {
        clean_with(&mut log, checkpoint, &options(now_ms)).unwrap();
        let last = *headers(&log.reader()).last().unwrap();
        assert_eq!((last.next_offset(), log.log_end_offset()), (end, end));
        assert_eq!(values(&log.reader()), named(&[(0, "a=1")]));
    }
}

#[test]
fn bl_047_a_fetch_at_a_hole_gets_the_batch_that_spans_or_follows_it() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("1")), ("k", Some("1")), ("a", Some("2")), ("k", Some("2")), ("x", Some("1"))]);
    put(&mut log, 5, &[("a", Some("3")), ("a", Some("4")), ("a", Some("5")), ("a", Some("6")), ("a", Some("7"))]);
    put(&mut log, 5, &[("a", Some("8")), ("k", Some("3"))]);
    let before = headers(&log.reader());
    clean(&mut log, 0, 10);
    let after = headers(&log.reader());
    assert_eq!(after.len(), 2);
    for (was, is) in [(before[0], after[0]), (before[2], after[1])] {
        assert_eq!((was.base_offset, was.last_offset_delta), (is.base_offset, is.last_offset_delta));
    }
    for (offset, base) in [(0, 0), (3, 0), (5, 10), (7, 10), (9, 10), (10, 10)] {
        assert_eq!(common::read(&log.reader(), offset, 1, true)[0].0, base, "{offset}");
    }
}

#[test]
fn bl_049_markers_are_not_taken_for_records_of_one_key() {
    let (place, _) = compacted();
    let place = place.with(|config| config.delete_retention_ms = 1 << 40);
    let mut log = place.log();
    for producer in 1..=5 {
        put_in_txn(&mut log, producer, 0, &[("shared", Some("v")), (&format!("k{producer}"), Some("v"))]);
        end_txn(&mut log, producer, if producer <= 3 { Commit } else { Abort });
    }
    for _ in 0..2 {
        clean(&mut log, 0, 10);
        assert_eq!(headers(&log.reader()).iter().filter(|header| header.is_control()).count(), 5);
        assert_eq!(values(&log.reader()), named(&[(1, "k1=v"), (4, "k2=v"), (6, "shared=v"), (7, "k3=v")]));
    }
}

#[test]
fn a_marker_goes_when_its_data_are_gone_and_the_horizon_has_passed() {
    let (place, _) = compacted();
    let mut log = place.with(|config| config.delete_retention_ms = 1000).log();
    put_in_txn(&mut log, 1, 0, &[("a", Some("1"))]);
    let marker = end_txn(&mut log, 1, Commit);
    // The producer goes on, so that its last batch is another one.
    put_in_txn(&mut log, 1, 1, &[("a", Some("2"))]);
    end_txn(&mut log, 1, Commit);
    put(&mut log, 5, &[("z", Some("1"))]);
    let horizon = |log: &partition_log::Log| {
        let found = headers(&log.reader()).into_iter().find(|header| header.base_offset == marker);
        found.map(|header| header.delete_horizon_ms())
    };
    clean(&mut log, 0, 100);
    assert_eq!(horizon(&log), Some(None), "its data were there when this cleaning began");
    clean(&mut log, 0, 200);
    assert_eq!(horizon(&log), Some(Some(1200)));
    clean(&mut log, 0, 1199);
    assert_eq!(horizon(&log), Some(Some(1200)));
    clean(&mut log, 0, 1200);
    assert_eq!(horizon(&log), None);
    assert_eq!(values(&log.reader()), named(&[(2, "a=2"), (4, "z=1")]));
}

#[test]
fn bl_050_a_tombstone_gets_a_horizon_and_goes_after_it() {
    let (place, _) = compacted();
    let mut log = place.with(|config| config.delete_retention_ms = 1000).log();
    put(&mut log, 5, &[("a", Some("1")), ("b", Some("1"))]);
    put(&mut log, 7, &[("a", None), ("c", Some("1"))]);
    put(&mut log, 8, &[("z", Some("1"))]);
    clean(&mut log, 0, 100);
    let header = headers(&log.reader())[1];
    assert_eq!((header.delete_horizon_ms(), header.base_timestamp, header.max_timestamp), (Some(1100), 1100, 7));
    assert_eq!(found(&log.reader())[1], (2, 7, "a".into(), None));
    let end = log.log_end_offset();
    let before = stored(&log.reader());
    clean(&mut log, end, 1099);
    assert_eq!(stored(&log.reader()), before, "before the horizon nothing changes");
    put(&mut log, 9, &[("y", Some("1"))]);
    clean(&mut log, end, 1100);
    assert_eq!(values(&log.reader()), named(&[(1, "b=1"), (3, "c=1"), (4, "z=1"), (5, "y=1")]));
    assert_eq!(found(&log.reader())[1].1, 7);
}

#[test]
fn bl_052_a_large_batch_and_a_run_of_aborted_data_do_not_stop_a_cleaning() {
    let (place, _) = compacted();
    let mut log = place.log();
    let large = "x".repeat(900_000);
    put(&mut log, 5, &[("large", Some(&large))]);
    (0..200).for_each(|sequence| {
        put_in_txn(&mut log, 1, sequence, &[("aborted", Some("v"))]);
    });
    end_txn(&mut log, 1, Abort);
    put(&mut log, 5, &[("z", Some("1"))]);
    let report = clean(&mut log, 0, 10);
    assert_eq!(report.records_kept, 3);
    let found = found(&log.reader());
    assert_eq!(found.iter().map(|(offset, ..)| *offset).collect::<Vec<_>>(), [0, 202]);
    assert_eq!(found[0].3.as_deref(), Some(large.as_str()));
}

#[test]
fn bl_053_records_older_than_the_largest_lag_are_due_whatever_the_ratio() {
    let (place, _) = compacted();
    let place = place.with(|config| {
        config.min_cleanable_dirty_ratio = 0.99;
        config.max_compaction_lag_ms = 1000;
    });
    let mut log = place.log();
    put(&mut log, 999_000, &[("a", Some("1"))]);
    clean(&mut log, 0, 999_001);
    put(&mut log, 999_100, &[("a", Some("2"))]);
    assert!(!log.roll_for_compaction(1_000_100).unwrap());
    assert!(log.roll_for_compaction(1_000_101).unwrap(), "the active segment is closed");
    let cleanable = log.cleanable(Some(1), 1_000_100).unwrap();
    assert!(!cleanable.is_due && cleanable.dirty_ratio() < 0.99);
    let cleanable = log.cleanable(Some(1), 1_000_101).unwrap();
    assert_eq!((cleanable.is_due, cleanable.max_compaction_delay_ms), (true, 1));
    clean_with(&mut log, 1, &options(1_000_101)).unwrap();
    assert_eq!(values(&log.reader()), named(&[(1, "a=2")]));
}

#[test]
fn what_cannot_be_cleaned_is_told_with_its_reason() {
    let (place, _) = compacted();
    let mut log = place.with(|config| config.min_compaction_lag_ms = 100).log();
    put(&mut log, 5, &[("a", Some("1"))]);
    assert_eq!(log.cleanable(None, 1000).unwrap().held_back_by, HeldBack::ActiveSegment);
    log.roll(10).unwrap();
    put(&mut log, 950, &[("a", Some("2"))]);
    log.roll(10).unwrap();
    let cleanable = log.cleanable(None, 1000).unwrap();
    assert_eq!((cleanable.held_back_by, cleanable.first_uncleanable_offset), (HeldBack::CompactionLag, 1));
    put_in_txn(&mut log, 1, 0, &[("a", Some("3"))]);
    put(&mut log, 5, &[("b", Some("1"))]);
    log.roll(10).unwrap();
    let cleanable = log.cleanable(None, 2000).unwrap();
    assert_eq!((cleanable.held_back_by, cleanable.first_uncleanable_offset), (HeldBack::OpenTransaction, 2));
    log.set_high_watermark(1);
    let cleanable = log.cleanable(None, 2000).unwrap();
    assert_eq!((cleanable.held_back_by, cleanable.first_uncleanable_offset), (HeldBack::HighWatermark, 1));
    for (checkpoint, invalid, dirty) in [(Some(1), false, 1), (Some(99), true, 0), (None, false, 0)] {
        let cleanable = log.cleanable(checkpoint, 2000).unwrap();
        assert_eq!((cleanable.checkpoint_is_invalid, cleanable.first_dirty_offset), (invalid, dirty));
    }
}

#[test]
fn an_open_transaction_takes_nothing_from_the_values_before_it() {
    let (place, _) = compacted();
    let mut log = place.log();
    put(&mut log, 5, &[("a", Some("committed"))]);
    log.roll(10).unwrap();
    put_in_txn(&mut log, 1, 0, &[("a", Some("open"))]);
    clean(&mut log, 0, 10);
    assert_eq!(values(&log.reader()), named(&[(0, "a=committed"), (1, "a=open")]));
    end_txn(&mut log, 1, Abort);
    clean(&mut log, 0, 10);
    assert_eq!(values(&log.reader()), named(&[(0, "a=committed")]));
}

#[test]
fn a_batch_that_loses_records_keeps_its_codec_and_one_that_loses_none_its_bytes() {
    for codec in [Codec::Gzip { level: 1 }, Codec::Snappy, Codec::Lz4 { level: 1 }, Codec::Zstd { level: 1 }] {
        let (place, _) = compacted();
        let mut log = place.log();
        let batch = |pairs: &[Pair<'_>]| keyed(BatchBuilder::new(0).producer(9, 3, 0).compression(codec), 7, pairs);
        append_as(&mut log, batch(&[("a", Some("1")), ("b", Some("1"))]), AppendOrigin::Client).unwrap();
        put(&mut log, 5, &[("a", Some("2"))]);
        let other = keyed(BatchBuilder::new(0).compression(codec), 7, &[("x", Some("1")), ("y", Some("1"))]);
        append_as(&mut log, other, AppendOrigin::Client).unwrap();
        let before = stored(&log.reader());
        clean(&mut log, 0, 10);
        let after = stored(&log.reader());
        let (before, after): (Vec<_>, Vec<_>) =
            (batches(&before).map(Result::unwrap).collect(), batches(&after).map(Result::unwrap).collect());
        assert_eq!(after[1..].iter().map(|b| b.bytes()).collect::<Vec<_>>(), [before[1].bytes(), before[2].bytes()]);
        let (was, is) = (before[0].header(), after[0].header());
        assert_eq!(is.compression(), Ok(codec.compression()));
        assert_eq!((is.record_count, is.last_offset(), is.base_sequence), (1, was.last_offset(), was.base_sequence));
        assert_eq!((is.producer_id, is.producer_epoch, is.partition_leader_epoch), (9, 3, 0));
        assert_eq!(values(&log.reader())[0], (1, "b=1".to_owned()));
    }
}

#[test]
fn the_last_batch_of_a_producer_stays_so_that_its_sequence_is_known() {
    let (place, _) = compacted();
    let mut log = place.log();
    let batch = |sequence: i32| keyed(BatchBuilder::new(0).producer(9, 0, sequence), 7, &[("a", Some("1"))]);
    (0..3).for_each(|sequence| {
        append_as(&mut log, batch(sequence), AppendOrigin::Client).unwrap();
    });
    put(&mut log, 5, &[("a", Some("2"))]);
    clean(&mut log, 0, 10);
    let kept: Vec<_> = headers(&log.reader()).iter().map(|h| (h.base_offset, h.record_count)).collect();
    assert_eq!(kept, [(2, 0), (3, 1)]);
    // A start without snapshots finds the sequence in the empty batch.
    let disk = place.disk.clone();
    log.flush().unwrap();
    log.abandon();
    for entry in disk.list_dir(&place.directory()).unwrap() {
        if entry.name.ends_with(".snapshot") {
            disk.remove_file(&place.file(&entry.name)).unwrap();
        }
    }
    let mut log = place.log();
    assert!(append_as(&mut log, batch(9), AppendOrigin::Client).is_err());
    append_as(&mut log, batch(3), AppendOrigin::Client).unwrap();
}

#[test]
fn a_full_map_ends_the_cleaning_where_it_was_filled() {
    let (place, _) = compacted();
    let mut log = place.log();
    (0..40).for_each(|at| {
        put(&mut log, 5, &[(&format!("k{}", at % 20), Some("v")), ("same", Some("v"))]);
    });
    log.roll(10).unwrap();
    // Sixteen slots, of which fourteen may be taken: thirteen keys and the shared one.
    let small = CleaningOptions { map_bytes_max: 0, ..options(10) };
    let report = clean_with(&mut log, 0, &small).unwrap();
    assert_eq!((report.end_offset, report.map_keys), (26, 14));
    let mut checkpoint = report.end_offset;
    while checkpoint < log.log_end_offset() {
        let next = clean_with(&mut log, checkpoint, &small).unwrap().end_offset;
        assert!(next > checkpoint);
        checkpoint = next;
    }
    assert_eq!(values(&log.reader()).len(), 21);
    let many: Vec<String> = (0..30).map(|at| format!("m{at}")).collect();
    put(&mut log, 5, &many.iter().map(|key| (key.as_str(), Some("v"))).collect::<Vec<_>>());
    log.roll(10).unwrap();
    assert!(clean_with(&mut log, checkpoint, &small).unwrap_err().contains("full with 14 keys"));
}

#[test]
fn small_segments_become_one_and_a_second_cleaning_changes_nothing() {
    let (place, _) = compacted();
    let mut log = place.log();
    for at in 0..6 {
        put(&mut log, 5, &[("a", Some("v")), (&format!("k{at}"), Some("v"))]);
        log.roll(10).unwrap();
    }
    let report = clean_with(&mut log, 0, &options(10)).unwrap();
    assert_eq!((report.segments_read, report.segments_written, log.segment_count()), (6, 1, 2));
    let before = stored(&log.reader());
    let again = clean_with(&mut log, 0, &options(10)).unwrap();
    assert_eq!((again.segments_read, again.segments_written), (1, 0), "what is clean is not written again");
    assert_eq!(stored(&log.reader()), before);
    log.remove_expired_files(10).unwrap();
    let names = place.disk.list_dir(&place.directory()).unwrap();
    assert!(names.iter().all(|entry| !entry.name.ends_with("ed") && !entry.name.ends_with(".swap")), "{names:?}");
}

#[test]
fn a_record_without_a_key_goes_and_times_are_found_among_what_stays() {
    let (place, _) = compacted();
    let mut log = place.log();
    let mut builder = BatchBuilder::new(0);
    builder.append(&RecordData::new(900).value(b"no key"));
    builder.append(&RecordData::new(3).key(b"a").value(b"1"));
    append_as(&mut log, builder.build().unwrap(), AppendOrigin::Client).unwrap();
    put(&mut log, 7, &[("b", Some("1"))]);
    put(&mut log, 5, &[("c", Some("1"))]);
    clean(&mut log, 0, 10);
    assert_eq!(values(&log.reader()), named(&[(1, "a=1"), (2, "b=1"), (3, "c=1")]));
    assert_eq!(log.reader().max_timestamp().unwrap().map(|found| found.offset), Some(2));
    assert_eq!(log.reader().offset_for_timestamp(4).unwrap().map(|found| found.offset), Some(2));
}
