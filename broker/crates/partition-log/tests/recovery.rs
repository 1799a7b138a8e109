//! Starts after an orderly stop and after crashes: what is kept, what is cut, what is read.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::io::IoSlice;

use common::*;
use partition_log::disk::{read_file, remove_if_exists};
use partition_log::{Disk, OpenError, OpenMode, SimDisk};

fn filled(place: &Place, count: i64) -> partition_log::Log {
    let mut log = place.log();
    for i in 0..count {
        append(&mut log, batch_of(4, 0, (i * 2) as i32, &[1000 + i, 2000 + i])).unwrap();
    }
    log
}

fn small() -> (Place, SimDisk) {
    let (place, disk) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 3000;
        config.index_interval_bytes = 200;
    });
    (place, disk)
}

fn content(place: &Place, name: &str) -> Vec<u8> {
    read_file(place.disk.as_ref(), &place.file(name), 1 << 30).unwrap()
}

fn overwrite(place: &Place, name: &str, position: u64, bytes: &[u8]) {
    let file = place.disk.open(&place.file(name), OpenMode::Existing).unwrap();
    file.write_at(position, &mut [IoSlice::new(bytes)]).unwrap();
}

const FIRST: &str = "00000000000000000000.log";

#[test]
fn a_clean_start_reads_next_to_nothing() {
    let (place, disk) = small();
    let log = filled(&place, 200);
    let size = log.size_bytes();
    log.close().unwrap();
    let before = disk.bytes_read();
    let place = Place { clean: true, recovery_point: 400, ..place };
    let opened = place.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.log.recovery_point()), (400, 400));
    assert_eq!(opened.report.scanned_bytes, 0);
    assert!(disk.bytes_read() - before < size / 5, "{} of {size}", disk.bytes_read() - before);
}

#[test]
fn recovery_reads_what_lies_past_the_recovery_point_only() {
    let (place, disk) = small();
    let mut log = filled(&place, 200);
    let recovery_point = log.flush().unwrap();
    append(&mut log, batch_of(4, 0, 400, &[1, 2])).unwrap();
    let size = log.size_bytes();
    let place = Place { recovery_point, ..place.on(disk.after_kill()) };
    let opened = place.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.log.recovery_point()), (402, 400));
    assert_eq!(opened.report.recovered_segments, 1);
    assert!(opened.report.scanned_bytes < 1000, "{:?} of {size}", opened.report);
    assert_eq!(opened.log.producer_count(), 1);
}

#[test]
fn bl_140_a_torn_tail_is_cut_at_the_last_whole_batch() {
    let (place, _) = small();
    let log = filled(&place, 10);
    let whole = log.size_bytes();
    drop(log);
    let one = whole / 10;
    for cut in [1, one / 2, one, one + 1] {
        let (place, _) = small();
        drop(filled(&place, 10));
        place.disk.open(&place.file(FIRST), OpenMode::Existing).unwrap().set_len(whole - cut).unwrap();
        let opened = place.open().unwrap();
        let left = (whole - cut) / one;
        assert_eq!(opened.log.log_end_offset(), left as i64 * 2);
        assert_eq!(opened.report.truncated_bytes, (whole - cut) % one);
        assert_eq!(records(&opened.log.reader()).len() as u64, left * 2);
    }
}

#[test]
fn bl_140_a_recovery_point_above_the_log_end_is_brought_down() {
    let (place, _) = small();
    drop(filled(&place, 10));
    let opened = Place { recovery_point: 5000, ..place }.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.log.recovery_point()), (20, 20));
}

#[test]
fn bl_140_a_log_that_ends_before_its_start_is_emptied_at_the_start() {
    let (place, _) = small();
    drop(filled(&place, 10));
    let place = Place { log_start_offset: 50, ..place };
    let mut log = place.log();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (50, 50));
    assert_eq!((log.producer_count(), log.latest_epoch()), (0, None));
    assert_eq!(append(&mut log, batch(&[1])).unwrap().first_offset, 50);
    assert!(place.disk.metadata(&place.file(FIRST)).unwrap().is_none());
}

#[test]
fn damage_past_the_recovery_point_is_cut_with_all_that_follows() {
    let (place, disk) = small();
    filled(&place, 200).flush().unwrap();
    disk.sync_dir(std::path::Path::new("/")).unwrap();
    let position = content(&place, FIRST).len() as u64 - 30;
    overwrite(&place, FIRST, position, b"X");
    let opened = place.open().unwrap();
    let end = opened.log.log_end_offset();
    assert!(end < 50 && opened.report.removed_segments > 2, "{:?}", opened.report);
    assert_eq!(records(&opened.log.reader()).len() as i64, end);
    drop(opened);
    let again = place.on(disk.after_power_cut(5)).open().unwrap();
    assert_eq!((again.log.log_end_offset(), again.report.truncated_bytes), (end, 0));
}

#[test]
fn damage_below_the_recovery_point_is_told_and_nothing_is_cut() {
    let (place, _) = small();
    let mut log = filled(&place, 10);
    let recovery_point = log.flush().unwrap();
    drop(log);
    let before = content(&place, FIRST);
    overwrite(&place, FIRST, before.len() as u64 - 30, b"X");
    let damaged = content(&place, FIRST);
    let refused = Place { recovery_point, ..place.clone() }.open().unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { offset: 18, .. }), "{refused}");
    assert_eq!(content(&place, FIRST), damaged);
}

#[test]
fn lost_or_broken_indexes_are_made_again() {
    let (place, disk) = small();
    let log = filled(&place, 200);
    let expected = records(&log.reader());
    log.close().unwrap();
    let names: Vec<String> = disk.list_dir(&place.directory()).unwrap().into_iter().map(|e| e.name).collect();
    let indexes: Vec<(&String, Vec<u8>)> =
        names.iter().filter(|name| name.ends_with("index")).map(|name| (name, content(&place, name))).collect();
    for (at, (name, bytes)) in indexes.iter().enumerate() {
        remove_if_exists(&disk, &place.file(name)).unwrap();
        if at % 3 > 0 {
            disk.open(&place.file(name), OpenMode::Create).unwrap().set_len(bytes.len() as u64).unwrap();
        }
    }
    let mut log = place.log();
    assert_eq!(records(&log.reader()), expected);
    append(&mut log, batch_of(4, 0, 400, &[1, 2])).unwrap();
    log.close().unwrap();
    for (name, bytes) in &indexes[..indexes.len() - 2] {
        assert_eq!(&content(&place, name), bytes, "{name}");
    }
}

#[test]
fn bl_016_duplicates_are_known_after_a_crash_and_after_an_orderly_stop() {
    let (place, _) = small();
    let mut log = filled(&place, 100);
    for _ in 0..2 {
        let again = append(&mut log, batch_of(4, 0, 198, &[1099, 2099])).unwrap();
        assert_eq!((again.first_offset, again.duplicate), (198, true));
        assert!(append(&mut log, batch_of(4, 0, 300, &[1])).is_err());
        log = place.log();
    }
    let mut log = place.reopen_clean(log);
    let again = append(&mut log, batch_of(4, 0, 198, &[1099, 2099])).unwrap();
    assert_eq!((again.first_offset, again.duplicate), (198, true));
    assert_eq!(append(&mut log, batch_of(4, 0, 200, &[1])).unwrap().first_offset, 200);
}

#[test]
fn bl_142_producers_stay_known_when_the_log_start_moves() {
    let (place, disk) = small();
    let mut log = filled(&place, 50);
    log.advance_log_start(99).unwrap();
    log.apply_retention(1_000_000).unwrap();
    let recovery_point = log.flush().unwrap();
    let place = Place { recovery_point, log_start_offset: 99, ..place.on(disk.after_power_cut(1)) };
    let mut log = place.log();
    let again = append(&mut log, batch_of(4, 0, 98, &[1049, 2049])).unwrap();
    assert_eq!((again.first_offset, again.duplicate), (98, true));
    assert_eq!(append(&mut log, batch_of(4, 0, 100, &[1])).unwrap().first_offset, 100);
}

#[test]
fn epochs_are_found_in_the_batches_when_their_checkpoint_is_behind() {
    let (place, disk) = small();
    let mut log = place.log();
    for epoch in [1, 1, 4, 7, 7] {
        append_all(&mut log, epoch, 7, &mut [batch(&[1, 2])]).remove(0).unwrap();
    }
    let expected = log.reader().epochs();
    let log = place.on(disk.after_kill()).log();
    assert_eq!(log.reader().epochs(), expected);
    assert_eq!(log.reader().epoch_end_offset(4).unwrap().end_offset, 6);
}

#[test]
fn a_directory_of_another_topic_is_refused() {
    let (place, _) = small();
    filled(&place, 1).close().unwrap();
    overwrite(&place, "partition.metadata", 0, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
    assert!(matches!(place.open(), Err(OpenError::OtherTopic { .. })));
}
