//! Damage of what was synced: it is told and nothing is cut, until an operator accepts the loss.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::io::IoSlice;

use common::*;
use partition_log::disk::read_file;
use partition_log::names::{ACCEPT_DATA_LOSS, LEADER_EPOCH_CHECKPOINT};
use partition_log::{Log, OpenError, OpenMode, SimDisk};

const FIRST: &str = "00000000000000000000.log";

fn small() -> (Place, SimDisk) {
    let (place, disk) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 3000;
        config.index_interval_bytes = 200;
    });
    (place, disk)
}

fn filled(place: &Place, count: i64) -> Log {
    let mut log = place.log();
    for i in 0..count {
        append(&mut log, batch_of(4, 0, (i * 2) as i32, &[1000 + i, 2000 + i])).unwrap();
    }
    log
}

fn content(place: &Place, name: &str) -> Vec<u8> {
    read_file(place.disk.as_ref(), &place.file(name), 1 << 30).unwrap()
}

fn overwrite(place: &Place, name: &str, position: u64, bytes: &[u8]) {
    let file = place.disk.open(&place.file(name), OpenMode::Create).unwrap();
    file.write_at(position, &mut [IoSlice::new(bytes)]).unwrap();
}

fn set_len(place: &Place, name: &str, len: u64) {
    place.disk.open(&place.file(name), OpenMode::Existing).unwrap().set_len(len).unwrap();
}

fn names(place: &Place) -> Vec<String> {
    place.disk.list_dir(&place.directory()).unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Names and bytes of all files.
fn everything(place: &Place) -> Vec<(String, Vec<u8>)> {
    names(place).into_iter().map(|name| (name.clone(), content(place, &name))).collect()
}

/// The place as an orderly stop leaves it.
fn closed(place: &Place, count: i64) -> Place {
    let closed = filled(place, count).close().unwrap();
    let (recovery_point, high_watermark) = (closed.recovery_point, closed.high_watermark);
    Place { recovery_point, high_watermark, clean: true, ..place.clone() }
}

#[test]
fn damage_of_the_newest_segment_after_an_orderly_stop_is_told_and_nothing_is_cut() {
    let (place, _) = small();
    let place = closed(&place, 10);
    let size = content(&place, FIRST).len() as u64;
    set_len(&place, FIRST, size - 5);
    let before = content(&place, FIRST);
    // Even when the checkpoint of recovery points is lost too.
    for recovery_point in [20, 0] {
        let refused = Place { recovery_point, ..place.clone() }.open().unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt { offset: 18, .. }), "{refused}");
        assert!(refused.to_string().contains(FIRST), "{refused}");
    }
    assert_eq!(content(&place, FIRST), before);
}

#[test]
fn a_file_that_ends_inside_a_synced_batch_is_damaged() {
    let (place, _) = small();
    let mut log = filled(&place, 10);
    let recovery_point = log.flush().unwrap();
    drop(log);
    set_len(&place, FIRST, content(&place, FIRST).len() as u64 - 5);
    let refused = Place { recovery_point, ..place.clone() }.open().unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { offset: 18, .. }), "{refused}");
}

#[test]
fn a_segment_that_was_lost_between_others_is_told() {
    let (place, _) = small();
    drop(filled(&place, 120));
    let logs: Vec<String> = names(&place).into_iter().filter(|name| name.ends_with(".log")).collect();
    assert!(logs.len() > 3);
    place.disk.remove_file(&place.file(&logs[logs.len() - 2])).unwrap();
    let base: i64 = logs[logs.len() - 1].trim_end_matches(".log").parse().unwrap();
    let refused = Place { recovery_point: base - 1, ..place.clone() }.open().unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert!(names(&place).contains(&logs[logs.len() - 1]));
}

#[test]
fn damage_that_a_look_for_producers_or_a_new_index_meets_is_told() {
    for (gone, clean) in [(".index", true), (".snapshot", false)] {
        let (place, _) = small();
        let mut log = filled(&place, 60);
        let recovery_point = log.flush().unwrap();
        let closed = log.close().unwrap();
        for name in names(&place).into_iter().filter(|name| name.ends_with(gone)) {
            place.disk.remove_file(&place.file(&name)).unwrap();
        }
        // The second batch claims to have no end.
        let one = record_batch::BatchRef::parse(&content(&place, FIRST)).unwrap().header().total_len() as u64;
        overwrite(&place, FIRST, one + 8, &[0x7f; 4]);
        let place = Place { recovery_point, high_watermark: closed.high_watermark, clean, ..place };
        let refused = place.open().unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt { offset: 2, .. }), "{gone}: {refused}");
    }
}

#[test]
fn an_operator_who_accepts_the_loss_gets_the_log_up_to_the_damage() {
    let (place, disk) = small();
    let place = closed(&place, 60);
    let one = record_batch::BatchRef::parse(&content(&place, FIRST)).unwrap().header().total_len() as u64;
    overwrite(&place, FIRST, 2 * one - 3, b"XYZ");
    let place = Place { recovery_point: 3, clean: false, ..place };
    assert!(matches!(place.open(), Err(OpenError::Corrupt { offset: 2, .. })));
    overwrite(&place, ACCEPT_DATA_LOSS, 0, b"");
    let opened = place.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.log.recovery_point()), (2, 0));
    assert!(opened.report.aside_segments > 0, "{:?}", opened.report);
    assert!(!names(&place).contains(&ACCEPT_DATA_LOSS.to_owned()));
    // The records behind the damage are still in files that an operator can look at.
    let aside: Vec<String> = names(&place).into_iter().filter(|name| name.ends_with(".aside")).collect();
    assert_eq!(aside.len(), opened.report.aside_segments);
    assert!(content(&place, &aside[0]).len() > 1000);
    drop(opened);
    let before = everything(&place);
    let again = place.on(disk.after_kill());
    assert_eq!(Place { recovery_point: 0, ..again.clone() }.log().log_end_offset(), 2);
    assert_eq!(everything(&again), before);
}

#[test]
fn what_was_synced_and_is_gone_without_a_trace_is_counted() {
    let (place, _) = small();
    let one = closed(&place, 10);
    let batch = content(&one, FIRST).len() as u64 / 10;
    set_len(&one, FIRST, batch * 7);
    let opened = one.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.report.missing_records), (14, 6));
}

#[test]
fn epochs_are_made_again_when_their_checkpoint_is_lost_or_damaged() {
    for damaged in [None, Some(&b""[..]), Some(b"0\n7\n0"), Some(b"\xff\xfe")] {
        for clean in [true, false] {
            let (place, _) = small();
            let mut log = place.log();
            for epoch in [1, 1, 4, 4, 9] {
                append_all(&mut log, epoch, 7, &mut [batch(&[1, 2])]).remove(0).unwrap();
            }
            let expected = log.reader().epochs();
            let closed = log.close().unwrap();
            place.disk.remove_file(&place.file(LEADER_EPOCH_CHECKPOINT)).unwrap();
            if let Some(bytes) = damaged {
                overwrite(&place, LEADER_EPOCH_CHECKPOINT, 0, bytes);
            }
            let opened = Place { recovery_point: closed.recovery_point, clean, ..place.clone() }.open().unwrap();
            assert_eq!(opened.log.reader().epochs(), expected);
            assert!(opened.report.epochs_rebuilt);
            let closed = opened.log.close().unwrap();
            let again = Place { recovery_point: closed.recovery_point, clean: true, ..place }.open().unwrap();
            assert!(!again.report.epochs_rebuilt);
        }
    }
}

#[test]
fn a_damaged_segment_that_was_about_to_replace_others_changes_nothing() {
    let (place, _) = small();
    let place = closed(&place, 30);
    let mut swap = content(&place, FIRST);
    let at = swap.len() - 20;
    swap[at] ^= 1;
    overwrite(&place, &format!("{FIRST}.swap"), 0, &swap);
    let before = everything(&place);
    let refused = place.open().unwrap_err();
    assert!(
        matches!(&refused, OpenError::Corrupt { path, .. } if path.ends_with(format!("{FIRST}.swap"))),
        "{refused}"
    );
    assert_eq!(everything(&place), before);
    overwrite(&place, ACCEPT_DATA_LOSS, 0, b"");
    let opened = place.open().unwrap();
    assert_eq!(opened.log.log_end_offset(), 60);
}

#[test]
fn a_crc_of_the_old_message_formats_is_known_and_such_a_segment_is_left_alone() {
    // Written by Kafka's own format 1: offset, size, CRC, magic, attributes, timestamp, key and value.
    let old = |offset: i64, magic: u8| {
        let mut body = vec![magic, 0];
        if magic == 1 {
            body.extend(7i64.to_be_bytes());
        }
        body.extend((-1i32).to_be_bytes());
        body.extend(3i32.to_be_bytes());
        body.extend(b"old");
        let mut bytes = offset.to_be_bytes().to_vec();
        bytes.extend((body.len() as i32 + 4).to_be_bytes());
        let crc = zip_crc(&body);
        bytes.extend(crc.to_be_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().max(80), 0);
        bytes
    };
    for magic in [0, 1] {
        let (place, _) = small();
        drop(filled(&place, 3));
        overwrite(&place, FIRST, 0, &old(0, magic));
        let before = content(&place, FIRST);
        for (clean, recovery_point) in [(true, 6), (false, 0)] {
            let refused = Place { clean, recovery_point, ..place.clone() }.open().unwrap_err();
            assert!(matches!(refused, OpenError::OldFormat { position: 0, .. }), "{refused}");
        }
        assert_eq!(content(&place, FIRST), before);
    }
}

fn zip_crc(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|at| (0..8).fold(at, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }))
        .collect();
    !bytes.iter().fold(!0u32, |crc, byte| table[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8))
}
