//! A disk that refuses: full volumes, failed writes and failed syncs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::path::Path;

use common::*;
use partition_log::disk::{OpKind, SimFault};
use partition_log::{AppendError, LogError, ReadError};

#[test]
fn a_full_volume_refuses_appends_and_the_log_goes_on_when_there_is_room() {
    let (place, disk) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch_of(1, 0, 0, &[1, 2])).unwrap();
    disk.fail(OpKind::Write, &place.directory(), SimFault::Enospc);
    for _ in 0..3 {
        let refused = append_all(&mut log, 0, 7, &mut [batch_of(1, 0, 2, &[3]), batch_of(1, 0, 3, &[4]), batch(&[5])]);
        assert!(refused.iter().all(|one| matches!(one, Err(AppendError::Storage(error)) if error.is_full())));
    }
    assert_eq!(records(&log.reader()).len(), 2);
    disk.heal();
    assert_eq!(append(&mut log, batch_of(1, 0, 2, &[3])).unwrap().first_offset, 2);
    drop(log);
    assert_eq!(records(&place.log().reader()).len(), 3);
}

#[test]
fn a_volume_that_is_full_at_any_step_leaves_a_log_that_goes_on() {
    let steps = [OpKind::Write, OpKind::Create];
    for (step, appends) in steps.into_iter().flat_map(|step| (0..12).map(move |appends| (step, appends))) {
        let (place, disk) = Place::simulated();
        let place = place.with(|config| {
            config.segment_bytes = 500;
            config.index_interval_bytes = 100;
        });
        let mut log = place.log();
        for i in 0..appends {
            append(&mut log, batch_of(1, 0, i, &[i64::from(i)])).unwrap();
        }
        disk.fail(step, &place.directory(), SimFault::Enospc);
        let mut next = appends;
        for _ in 0..6 {
            // Appends that need no new file may succeed while none can be made.
            match append(&mut log, batch_of(1, 0, next, &[i64::from(next)])) {
                Ok(_) => next += 1,
                Err(error) => assert!(matches!(&error, AppendError::Storage(full) if full.is_full()), "{error}"),
            }
            let _ = log.flush();
            let _ = log.roll(7);
        }
        disk.heal();
        for _ in 0..8 {
            append(&mut log, batch_of(1, 0, next, &[i64::from(next)])).unwrap();
            next += 1;
        }
        assert_eq!(log.flush().unwrap(), i64::from(next));
        let expected = records(&log.reader());
        assert_eq!(expected.len() as i32, next);
        let killed = place.on(disk.after_kill()).log();
        assert_eq!(records(&killed.reader()), expected);
        let closed = place.reopen_clean(log);
        assert_eq!(records(&closed.reader()), expected, "{step:?} after {appends}");
    }
}

#[test]
fn a_failed_write_takes_the_log_offline_and_reads_go_on() {
    let (place, disk) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch(&[1, 2])).unwrap();
    disk.fail(OpKind::Write, &place.directory(), SimFault::Eio);
    assert!(matches!(append(&mut log, batch(&[3])), Err(AppendError::Storage(_))));
    disk.heal();
    assert!(matches!(append(&mut log, batch(&[3])), Err(AppendError::Offline)));
    assert!(matches!(log.flush(), Err(LogError::Offline)));
    assert_eq!(records(&log.reader()).len(), 2);
    assert_eq!(append(&mut place.log(), batch(&[3])).unwrap().first_offset, 2);
}

#[test]
fn a_failed_sync_is_final_although_a_second_one_would_succeed() {
    let (place, disk) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch(&[1])).unwrap();
    log.flush().unwrap();
    place.disk.sync_dir(Path::new("/")).unwrap();
    append(&mut log, batch(&[2])).unwrap();
    disk.fail(OpKind::Sync, &place.directory(), SimFault::Eio);
    assert!(matches!(log.flush(), Err(LogError::SyncFailed(_))));
    disk.heal();
    assert!(matches!(log.flush(), Err(LogError::Offline)));
    assert!(append(&mut log, batch(&[3])).is_err());
    assert!(log.close().is_err());
    let place = Place { recovery_point: 1, ..place.on(disk.after_power_cut(0)) };
    assert_eq!(place.log().log_end_offset(), 1);
}

#[test]
fn a_sync_that_runs_elsewhere_does_not_claim_what_was_truncated() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    (0..10).for_each(|i| {
        append(&mut log, batch(&[i])).unwrap();
    });
    let job = log.begin_flush().unwrap().unwrap();
    assert!(log.begin_flush().unwrap().is_none());
    let done = job.run();
    log.truncate_to(4, 7).unwrap();
    (0..10).for_each(|i| {
        append(&mut log, batch(&[i])).unwrap();
    });
    assert!(log.finish_flush(done).unwrap() <= 4);
    assert_eq!(log.flush().unwrap(), 14);
    assert!(log.begin_flush().unwrap().is_none());
}

#[test]
fn a_sync_does_not_rely_on_one_that_has_not_run() {
    let (place, disk) = Place::simulated();
    place.disk.sync_dir(Path::new("/")).unwrap();
    let place = place.with(|config| config.segment_bytes = 200);
    let mut log = place.log();
    for epoch in 0..10 {
        append_all(&mut log, epoch, 7, &mut [batch(&[1])]).remove(0).unwrap();
    }
    let late = log.begin_flush().unwrap().unwrap();
    append_all(&mut log, 10, 7, &mut [batch(&[1])]).remove(0).unwrap();
    let recovery_point = log.flush().unwrap();
    assert_eq!(recovery_point, 11);
    let expected = log.reader().epochs();
    let check = |disk: partition_log::SimDisk| {
        let log = Place { recovery_point, ..place.on(disk) }.log();
        assert_eq!((log.log_end_offset(), log.reader().epochs()), (11, expected.clone()));
    };
    (0..5).for_each(|seed| check(disk.after_power_cut(seed)));
    // The earlier sync may run after all, and must not bring its older epochs back.
    let done = late.run();
    assert_eq!(log.finish_flush(done).unwrap(), 11);
    (0..5).for_each(|seed| check(disk.after_power_cut(seed)));
}

#[test]
fn segments_removed_since_a_sync_was_begun_are_not_missed() {
    let (place, _) = Place::simulated();
    let place = Place { open_max: 1, ..place }.with(|config| config.segment_bytes = 200);
    let mut log = place.log();
    (0..10).for_each(|i| {
        append(&mut log, batch(&[i])).unwrap();
    });
    let job = log.begin_flush().unwrap().unwrap();
    log.advance_log_start(8).unwrap();
    log.apply_retention(7).unwrap();
    log.truncate_to(9, 7).unwrap();
    assert_eq!(log.flush().unwrap(), 9);
    let done = job.run();
    assert_eq!(log.finish_flush(done).unwrap(), 9);
}

#[test]
fn a_closed_log_says_so_to_its_readers() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch(&[1])).unwrap();
    let reader = log.reader();
    let deleted = log.delete(&uuid::Uuid::from_u128(7)).unwrap();
    assert!(matches!(reader.offset_for_timestamp(0), Err(ReadError::Closed)));
    assert!(place.disk.metadata(&place.directory()).unwrap().is_none());
    assert_eq!(deleted.directory, Path::new(HOME).join(format!("t-0.{:032x}-delete", 7)));
    deleted.remove(place.disk.as_ref()).unwrap();
    assert_eq!(place.disk.list_dir(Path::new(HOME)).unwrap(), []);
}
