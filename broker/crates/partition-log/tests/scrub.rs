//! The scrub finds every damaged batch of what lies on the disk, and nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::io::IoSlice;

use common::*;
use partition_log::{Log, LogReader, OpenMode, ScrubDamage, ScrubPlace, SimDisk};

fn filled(count: i64) -> (Place, SimDisk, Log) {
    let (place, disk) = Place::simulated();
    let place = place.with(|config| config.segment_bytes = 2000);
    let mut log = place.log();
    for i in 0..count {
        append(&mut log, batch(&[i, i + 1])).unwrap();
    }
    (place, disk, log)
}

/// All that a scrub from the beginning finds, and the bytes that it reads, in pieces of this size.
fn scrub(reader: &LogReader, bytes_max: u64) -> (u64, Vec<ScrubDamage>) {
    let (mut bytes, mut damage, mut place) = (0, Vec::new(), ScrubPlace::default());
    while let Some(part) = reader.scrub_part(&place) {
        let found = part.run(bytes_max).unwrap();
        bytes += found.bytes;
        damage.extend(found.damage);
        place = found.next;
    }
    (bytes, damage)
}

fn flip(place: &Place, name: &str, position: u64) {
    let file = place.disk.open(&place.file(name), OpenMode::Existing).unwrap();
    let mut byte = [0];
    file.read_at(position, &mut byte).unwrap();
    file.write_at(position, &mut [IoSlice::new(&[byte[0] ^ 0x40])]).unwrap();
}

#[test]
fn closed_segments_below_the_recovery_point_are_read_once_and_nothing_else() {
    let (_, _, mut log) = filled(100);
    assert_eq!(scrub(&log.reader(), 300), (0, vec![]));
    log.flush().unwrap();
    let closed = log.size_bytes();
    for bytes_max in [1, 300, 1 << 20] {
        let (bytes, damage) = scrub(&log.reader(), bytes_max);
        assert!(damage.is_empty() && bytes > closed * 8 / 10 && bytes < closed, "{bytes} of {closed}");
    }
}

#[test]
fn every_damaged_batch_is_found_wherever_its_damage_is() {
    let first = "00000000000000000000.log";
    let (_, _, log) = filled(1);
    let one = log.size_bytes();
    // In the offset, the length, the CRC, the attributes and the records of the third batch.
    for (at, rest_readable) in [(0, false), (8, false), (18, true), (22, true), (70, true)] {
        let (place, _, mut log) = filled(100);
        log.flush().unwrap();
        flip(&place, first, 2 * one + at);
        for bytes_max in [1, 1 << 20] {
            let (_, damage) = scrub(&log.reader(), bytes_max);
            let [found] = &damage[..] else { panic!("byte {at}: {damage:?}") };
            assert_eq!((found.position, found.offset), (2 * one, 4), "byte {at}");
            assert!(found.path.ends_with(first));
        }
        flip(&place, first, 5 * one + 70);
        assert_eq!(scrub(&log.reader(), 1 << 20).1.len(), if rest_readable { 2 } else { 1 }, "byte {at}");
    }
}

#[test]
fn what_leaves_the_log_meanwhile_is_no_finding() {
    let (place, _, mut log) = filled(100);
    log.flush().unwrap();
    let part = log.reader().scrub_part(&ScrubPlace::default()).unwrap();
    flip(&place, "00000000000000000000.log", 70);
    log.truncate_to(4, 7).unwrap();
    assert_eq!(part.run(1 << 20).unwrap().damage, []);
    let (place, _, mut log) = filled(100);
    log.flush().unwrap();
    let part = log.reader().scrub_part(&ScrubPlace::default()).unwrap();
    flip(&place, "00000000000000000000.log", 70);
    log.advance_log_start(150).unwrap();
    log.apply_retention(7).unwrap();
    assert_eq!(part.run(1 << 20).unwrap().damage, []);
    assert_eq!(scrub(&log.reader(), 1 << 20).1, []);
}
