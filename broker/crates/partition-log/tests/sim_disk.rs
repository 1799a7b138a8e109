//! The simulated disk keeps its promises: synced is kept, unsynced depends on the seed, nothing happens after a crash.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use partition_log::disk::{OpKind, SimFault, read_file, replace_file};
use partition_log::{Disk, DiskFile, OpenMode, SimDisk};

fn write(disk: &SimDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(Path::new(name), OpenMode::Create).unwrap();
    file.write_at(0, &mut [IoSlice::new(bytes)]).unwrap();
    file
}

fn content(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    read_file(disk, Path::new(name), 1 << 20).ok()
}

#[test]
fn what_was_synced_survives_and_the_rest_depends_on_the_seed() {
    let disk = SimDisk::new();
    write(&disk, "/kept", b"kept").sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    write(&disk, "/loose", b"loose");
    let survivors: Vec<bool> = (0..20).map(|seed| content(&disk.after_power_cut(seed), "/loose").is_some()).collect();
    assert!(survivors.contains(&true) && survivors.contains(&false));
    for seed in 0..20 {
        assert_eq!(content(&disk.after_power_cut(seed), "/kept").as_deref(), Some(&b"kept"[..]));
        let once = disk.after_power_cut(seed);
        let twice = disk.after_power_cut(seed);
        assert_eq!(content(&once, "/loose"), content(&twice, "/loose"));
    }
}

#[test]
fn a_failed_sync_loses_what_it_should_have_saved() {
    let disk = SimDisk::new();
    let file = write(&disk, "/a", b"first");
    disk.sync_dir(Path::new("/")).unwrap();
    disk.fail(OpKind::Sync, Path::new("/a"), SimFault::Eio);
    assert!(file.sync().is_err());
    disk.heal();
    file.sync().unwrap();
    assert_eq!(content(&disk.after_power_cut(1), "/a").as_deref(), Some(&b""[..]));
}

#[test]
fn nothing_happens_after_the_crash() {
    let disk = SimDisk::new();
    disk.crash_at(2);
    let file = disk.open(Path::new("/a"), OpenMode::Create).unwrap();
    assert!(file.write_at(0, &mut [IoSlice::new(b"x")]).is_err());
    assert!(file.sync().is_err() && disk.has_crashed());
    assert_eq!(disk.operations(), 2);
}

#[test]
fn a_replaced_file_is_old_or_new_at_every_crash_point() {
    for operation in 1..6 {
        for seed in 0..8 {
            let disk = SimDisk::new();
            replace_file(&disk, Path::new("/c"), b"old").unwrap();
            disk.crash_at(disk.operations() + operation);
            let outcome = replace_file(&disk, Path::new("/c"), b"newer");
            let found = content(&disk.after_power_cut(seed), "/c").unwrap();
            assert!(found == b"old" || found == b"newer");
            assert!(outcome.is_err() || found == b"newer");
        }
    }
}
