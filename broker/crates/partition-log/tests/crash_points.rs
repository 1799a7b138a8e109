//! Power cuts at every operation on the disk, in a run over all that a log does. After each the log must be a prefix of
//! what was appended, reach at least to what was synced, and look the same after a second recovery.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::collections::BTreeMap;

use base::{Offset, TopicPartition};
use common::*;
use partition_log::disk::{Disk, read_file};
use partition_log::formats::offset_checkpoint::{self, Offsets};
use partition_log::names::{LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT};
use partition_log::{Log, SimDisk};

/// What the run knows to be true of the log at any moment.
#[derive(Default, Clone)]
struct Promise {
    /// Everything appended and not cut since: timestamp and value by offset.
    written: BTreeMap<Offset, (i64, Vec<u8>)>,
    /// Where the log ended at every moment since the last change that made older ends impossible.
    synced: Offset,
    /// The lowest end that any moment allows.
    start_max: Offset,
}

struct Run {
    place: Place,
    log: Option<Log>,
    promise: Promise,
    next_timestamp: i64,
    next_sequence: i32,
}

type Outcome = Result<(), String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Run {
    fn start(disk: &SimDisk) -> Result<Self, String> {
        let mut place = Place::new(std::sync::Arc::new(disk.clone()), std::path::Path::new(HOME)).with(|config| {
            config.segment_bytes = 900;
            config.index_interval_bytes = 150;
            config.file_delete_delay_ms = 0;
        });
        place.open_max = 2;
        let mut run = Run { place, log: None, promise: Promise::default(), next_timestamp: 1, next_sequence: 0 };
        run.log = Some(run.place.open().map_err(text)?.log);
        Ok(run)
    }

    fn log(&mut self) -> Result<&mut Log, String> {
        self.log.as_mut().ok_or_else(|| "no log".to_owned())
    }

    fn append(&mut self, epoch: i32, idempotent: bool) -> Outcome {
        let timestamps = [self.next_timestamp, self.next_timestamp + 1];
        self.next_timestamp += 2;
        let mut records = if idempotent { batch_of(7, 0, self.next_sequence, &timestamps) } else { batch(&timestamps) };
        let base = self.log()?.log_end_offset();
        for (at, timestamp) in timestamps.iter().enumerate() {
            let value = record_batch::BatchRef::parse(&records).unwrap().plain_records().unwrap().nth(at).unwrap();
            let value = value.unwrap().value.unwrap().to_vec();
            self.promise.written.insert(base + at as i64, (*timestamp, value));
        }
        let mut results = append_all(self.log.as_mut().unwrap(), epoch, 1000, std::slice::from_mut(&mut records));
        results.remove(0).map_err(text)?;
        if idempotent {
            self.next_sequence += 2;
        }
        let log = self.log()?;
        log.set_high_watermark(log.log_end_offset());
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        let synced = self.log()?.flush().map_err(text)?;
        self.promise.synced = synced;
        self.checkpoint()
    }

    fn checkpoint(&mut self) -> Outcome {
        let (recovery_point, log_start) = (self.log()?.recovery_point(), self.log()?.log_start_offset());
        for (name, offset) in [(RECOVERY_POINT_CHECKPOINT, recovery_point), (LOG_START_OFFSET_CHECKPOINT, log_start)] {
            let offsets = Offsets::from([(TopicPartition::new("t", 0), offset)]);
            offset_checkpoint::write(self.place.disk.as_ref(), &self.place.home.join(name), &offsets).map_err(text)?;
        }
        Ok(())
    }

    fn truncate(&mut self, offset: Offset) -> Outcome {
        self.promise.synced = self.promise.synced.min(offset);
        let cut = self.log()?.truncate_to(offset, 1000).map_err(text);
        if cut.is_ok() {
            self.promise.written.retain(|at, _| *at < offset);
        }
        cut?;
        self.checkpoint()
    }

    fn delete_records(&mut self, offset: Offset) -> Outcome {
        self.promise.start_max = self.promise.start_max.max(offset);
        self.log()?.advance_log_start(offset).map_err(text)?;
        self.log()?.apply_retention(1000).map_err(text)?;
        self.log()?.remove_expired_files(1000).map_err(text)?;
        self.checkpoint()
    }

    fn reopen(&mut self, clean: bool) -> Outcome {
        let Some(log) = self.log.take() else { return Err("no log".into()) };
        let mut place = self.place.clone();
        if clean {
            let closed = log.close().map_err(text)?;
            self.promise.synced = closed.recovery_point;
            place.clean = true;
            (place.recovery_point, place.log_start_offset) = (closed.recovery_point, closed.log_start_offset);
        } else {
            (place.recovery_point, place.log_start_offset) = (log.recovery_point(), log.log_start_offset());
            log.abandon();
        }
        let log = place.open().map_err(text)?.log;
        self.log = Some(log);
        let log = self.log()?;
        log.set_high_watermark(log.log_end_offset());
        Ok(())
    }

    /// All that a log does, with a few sizes of data in between.
    fn everything(&mut self) -> Outcome {
        self.append(0, false)?;
        self.append(0, true)?;
        self.flush()?;
        (0..9).try_for_each(|_| self.append(0, true))?;
        self.log()?.take_snapshot().map_err(text)?;
        self.append(1, false)?;
        self.flush()?;
        (0..12).try_for_each(|i| self.append(1, i % 2 == 0))?;
        self.reopen(false)?;
        self.append(2, true)?;
        self.flush()?;
        let end = self.log()?.log_end_offset();
        (0..8).try_for_each(|_| self.append(2, false))?;
        self.truncate(end + 4)?;
        (0..3).try_for_each(|_| self.append(3, true))?;
        self.log()?.release_idle().map_err(text)?;
        self.delete_records(13)?;
        (0..4).try_for_each(|_| self.append(3, false))?;
        self.reopen(true)?;
        (0..6).try_for_each(|_| self.append(4, true))?;
        self.flush()?;
        self.append(4, false)
    }
}

fn checkpointed(disk: &SimDisk, place: &Place, name: &str) -> Offset {
    let offsets = offset_checkpoint::read(disk, &place.home.join(name)).unwrap();
    offsets.values().next().copied().unwrap_or(0)
}

/// Start, end and records of a log.
type Content = (Offset, Offset, Vec<(Offset, i64, Vec<u8>)>);

/// Opens what a power cut left and compares it with what was promised; returns what the log then holds.
fn check(disk: &SimDisk, run: &Run, what: &str) -> Content {
    let mut place = run.place.on(disk.clone());
    place.recovery_point = checkpointed(disk, &place, RECOVERY_POINT_CHECKPOINT);
    place.log_start_offset = checkpointed(disk, &place, LOG_START_OFFSET_CHECKPOINT);
    let opened = place.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    let log = opened.log;
    let promise = &run.promise;
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    assert!(end >= promise.synced, "{what}: ends at {end}, synced up to {}", promise.synced);
    assert!(start <= promise.start_max, "{what}: starts at {start}, at most {}", promise.start_max);
    let found = records(&log.reader());
    let offsets: Vec<Offset> = found.iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(offsets, (start..end).collect::<Vec<Offset>>(), "{what}: a hole");
    for (offset, timestamp, value) in &found {
        let expected = promise.written.get(offset);
        assert_eq!(Some(&(*timestamp, value.clone())), expected, "{what}: another record at {offset}");
    }
    (start, end, found)
}

/// Names and bytes of the segments, and of those that were set aside.
fn log_bytes(disk: &SimDisk, place: &Place) -> Vec<(String, Vec<u8>)> {
    let names = disk.list_dir(&place.directory()).unwrap().into_iter().map(|entry| entry.name);
    let logs = names.filter(|name| name.contains(".log"));
    logs.map(|name| (name.clone(), read_file(disk, &place.file(&name), 1 << 20).unwrap())).collect()
}

fn prepared() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(std::path::Path::new(HOME)).unwrap();
    disk.sync_dir(std::path::Path::new("/")).unwrap();
    disk
}

/// Runs everything on a disk that loses its power at one operation.
fn run_until(operation: u64) -> (SimDisk, Option<Run>) {
    let disk = prepared();
    disk.crash_at(operation);
    let run = match Run::start(&disk) {
        Ok(mut run) => {
            let outcome = run.everything();
            assert!(outcome.is_err() == disk.has_crashed(), "{outcome:?}");
            Some(run)
        }
        Err(_) => None,
    };
    (disk, run)
}

/// Not by the macro, whose output a passing test keeps to itself.
fn tell(text: &str) {
    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{text}\n")).unwrap();
}

#[test]
fn every_crash_point_leaves_a_prefix_that_holds_all_that_was_synced() {
    let (whole, _) = run_until(u64::MAX);
    let operations = whole.operations();
    assert!(operations > 200, "{operations}");
    let mut points = 0;
    for operation in 1..=operations {
        let (disk, run) = run_until(operation);
        let Some(run) = run else { continue };
        for seed in 0..16 {
            let what = format!("operation {operation}, seed {seed}");
            let survivor = disk.after_power_cut(seed);
            let first = check(&survivor, &run, &what);
            // A second start changes nothing of the records, in memory or on the disk.
            let logs = log_bytes(&survivor, &run.place);
            let second = check(&survivor.after_kill(), &run, &format!("{what}, again"));
            assert_eq!(first, second, "{what}");
            let again = survivor.after_kill();
            check(&again, &run, &what);
            assert_eq!(log_bytes(&again, &run.place), logs, "{what}: other bytes");
            points += 1;
        }
        check(&disk.after_kill(), &run, &format!("operation {operation}, killed"));
    }
    assert!(points > 3000, "{points}");
    tell(&format!("crash points of a log: {points} at {operations} operations"));
}

#[test]
fn a_crash_in_recovery_is_recovered_from() {
    let (whole, _) = run_until(u64::MAX);
    let mut points = 0;
    for operation in (1..=whole.operations()).step_by(2) {
        let (disk, run) = run_until(operation);
        let Some(run) = run else { continue };
        for seed in 0..4 {
            let survivor = disk.after_power_cut(seed);
            let probe = survivor.after_kill();
            check(&probe, &run, "probe");
            for again in 1..=probe.operations() {
                let crashing = survivor.after_kill();
                crashing.crash_at(again);
                let mut place = run.place.on(crashing.clone());
                place.recovery_point = checkpointed(&survivor, &place, RECOVERY_POINT_CHECKPOINT);
                place.log_start_offset = checkpointed(&survivor, &place, LOG_START_OFFSET_CHECKPOINT);
                assert!(place.open().is_err() || !crashing.has_crashed());
                let what = format!("operation {operation}, seed {seed}, recovery operation {again}");
                check(&crashing.after_power_cut(seed + 10), &run, &what);
                points += 1;
            }
        }
    }
    assert!(points > 2000, "{points}");
    tell(&format!("crash points in recovery: {points}"));
}

#[test]
fn the_same_run_leaves_the_same_trace() {
    let (first, _) = run_until(150);
    let (second, _) = run_until(150);
    assert_eq!((first.trace(), first.operations()), (second.trace(), second.operations()));
}
