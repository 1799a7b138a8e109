//! Power cuts at every operation on the disk while a log is cleaned. After each the log reads as before the cleaning or
//! as after one of its steps, and a second recovery changes nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use base::Offset;
use common::Place;
use common::cleaning::*;
use partition_log::{AbortedTxn, CleaningProgress, Log, SimDisk};
use record_batch::control::ControlRecordType::{Abort, Commit};

/// What a log looks like from outside: its bytes, its aborted transactions, and where each producer stands.
#[derive(Debug, Clone, PartialEq)]
struct State {
    stored: Vec<u8>,
    aborted: Vec<AbortedTxn>,
    sequences: BTreeMap<i64, i32>,
}

fn state(log: &Log) -> State {
    let reader = log.reader();
    State {
        stored: stored(&reader),
        aborted: reader.aborted_transactions(0, Offset::MAX - 1).unwrap(),
        sequences: log.producers().map(|entry| (entry.producer_id, entry.last_sequence())).collect(),
    }
}

/// A log of several segments with values, tombstones and transactions of both ends, synced.
fn prepared(disk: &SimDisk) -> (Place, Log) {
    let (place, _) = compacted();
    let mut place = place.on(disk.clone()).with(|config| {
        config.segment_bytes = 900;
        config.delete_retention_ms = 100;
    });
    partition_log::Disk::create_dir(disk, &place.home).unwrap();
    partition_log::Disk::sync_dir(disk, std::path::Path::new("/")).unwrap();
    let mut log = place.log();
    for round in 0..5 {
        let text = format!("value {round}");
        put(&mut log, round, &[("a", Some(&text)), (&format!("k{round}"), Some(&text)), ("b", Some(&text))]);
        put_in_txn(&mut log, 1, 2 * round as i32, &[("a", Some(&text)), ("t", Some(&text))]);
        put_in_txn(&mut log, 2, 2 * round as i32, &[("a", Some("aborted")), (&format!("k{round}"), Some("aborted"))]);
        end_txn(&mut log, 2, Abort);
        end_txn(&mut log, 1, Commit);
        put(&mut log, round, &[("b", None), (&format!("l{round}"), Some(&text))]);
    }
    log.roll(1000).unwrap();
    put(&mut log, 9, &[("active", Some("1"))]);
    place.recovery_point = log.flush().unwrap();
    place.high_watermark = place.recovery_point;
    (place, log)
}

/// Cleans twice, once before and once behind the delete horizon; gives the state after each step.
fn cleanings(log: &mut Log, mut step: impl FnMut(&Log)) -> Result<(), String> {
    for now_ms in [1000, 1200] {
        let cleanable = log.cleanable(None, now_ms).map_err(|error| error.to_string())?;
        let mut next = log.begin_cleaning(&cleanable, &options(now_ms)).map_err(|error| error.to_string())?;
        while let Some(job) = next.take() {
            let outcome = job.run(&mut |_| ControlFlow::Continue(()));
            match log.finish_cleaning(outcome, now_ms).map_err(|error| error.to_string())? {
                CleaningProgress::More(job) => next = Some(job),
                CleaningProgress::Done(_) => {}
                CleaningProgress::Ended(error) => return Err(error.to_string()),
            }
            step(log);
        }
        log.remove_expired_files(i64::MAX).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn run_until(operation: Option<u64>) -> (SimDisk, Place, Vec<State>) {
    let disk = SimDisk::new();
    let (place, mut log) = prepared(&disk);
    let mut states = vec![state(&log)];
    if let Some(operation) = operation {
        disk.crash_at(disk.operations() + operation);
    }
    let watched = operation.is_none();
    let outcome = cleanings(&mut log, |log| {
        if watched {
            states.push(state(log));
        }
    });
    assert_eq!(outcome.is_err(), disk.has_crashed(), "{outcome:?}");
    (disk, place, states)
}

fn recovered(place: &Place, disk: &SimDisk, what: &str) -> State {
    let log = place.on(disk.clone()).open().unwrap_or_else(|error| panic!("{what}: {error}")).log;
    let state = state(&log);
    let names = partition_log::Disk::list_dir(disk, &place.directory()).unwrap();
    let unfinished = [".cleaned", ".swap", ".deleted"];
    assert!(!names.iter().any(|entry| unfinished.iter().any(|end| entry.name.ends_with(end))), "{what}: {names:?}");
    state
}

#[test]
fn every_crash_point_leaves_the_log_before_or_after_a_step() {
    let before = SimDisk::new();
    prepared(&before);
    let (whole, _, states) = run_until(None);
    let operations = whole.operations() - before.operations();
    assert!(states.len() > 4 && operations > 80, "{} states, {operations} operations", states.len());
    assert_ne!(states.first(), states.last());
    let mut points = 0;
    for operation in 1..=operations {
        let (disk, place, _) = run_until(Some(operation));
        let killed = std::iter::once((disk.after_kill(), "killed".to_owned()));
        let cut = (0..12).map(|seed| (disk.after_power_cut(seed), format!("seed {seed}")));
        for (survivor, how) in killed.chain(cut) {
            let what = format!("operation {operation}, {how}");
            let everything = Place { recovery_point: 0, ..place.clone() };
            let deep = recovered(&everything, &survivor.after_kill(), &what);
            let found = recovered(&place, &survivor, &what);
            assert!(states.contains(&found), "{what}: neither before nor after");
            assert_eq!(recovered(&place, &survivor.after_kill(), &what), found, "{what}: again");
            // A recovery that reads every segment comes to the same.
            assert_eq!((deep.stored, deep.sequences), (found.stored, found.sequences), "{what}: from the beginning");
            points += 1;
        }
    }
    std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("crash points of compaction: {points} at {operations} operations\n"),
    )
    .unwrap();
}

#[test]
fn a_crash_while_a_swap_is_finished_or_undone_is_recovered_from() {
    let before = SimDisk::new();
    prepared(&before);
    let (whole, _, states) = run_until(None);
    for operation in (1..=whole.operations() - before.operations()).step_by(3) {
        let (disk, place, _) = run_until(Some(operation));
        for seed in 0..2 {
            let survivor = disk.after_power_cut(seed);
            let probe = survivor.after_kill();
            recovered(&place, &probe, "probe");
            for again in 1..=probe.operations() {
                let crashing = survivor.after_kill();
                crashing.crash_at(again);
                let opened = place.on(crashing.clone()).open();
                assert!(opened.is_err() || !crashing.has_crashed());
                let what = format!("operation {operation}, seed {seed}, operation {again} of the start");
                let found = recovered(&place, &crashing.after_power_cut(seed + 7), &what);
                assert!(states.contains(&found), "{what}: neither before nor after");
            }
        }
    }
}
