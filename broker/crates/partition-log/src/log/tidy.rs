//! Cleaning up a partition's directory at start: what a crash left of deletions and of compaction is finished or undone
//! (Kafka: LogLoader, its first three passes).

use std::path::{Path, PathBuf};

use base::{Offset, TimestampMs};

use super::recover::{Trail, misplaced};
use crate::disk::{Disk, OpenMode, remove_if_exists};
use crate::errors::{IoContext, OpenError, StorageError};
use crate::names::{FileKind, Leftover, OffsetFile, offset_file, set_aside};
use crate::scan::{Depth, ScanError, Scanner};

/// Snapshots of the metadata log on their way out; they are the business of their owner.
const METADATA_SNAPSHOT_DELETED: &str = ".checkpoint.deleted";
/// A checkpoint file that was being written.
const TEMPORARY: &str = ".tmp";

/// What a directory holds once it is tidy.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Base offset, size and time of the last change of each segment, by rising offset.
    pub segments: Vec<(Offset, u64, TimestampMs)>,
    /// Offsets of producer snapshots, rising.
    pub snapshots: Vec<Offset>,
    /// Base offsets of the segments with an index of aborted transactions, rising.
    pub txn_indexes: Vec<Offset>,
    /// Base offsets of the segments that lack a file of their two indexes, rising.
    pub lacking_index: Vec<Offset>,
    /// Names changed.
    pub changed: bool,
}

/// Finishes or undoes what was under way and lists the rest. A damaged segment that was about to take the place of
/// others is set aside when `aside_ms` gives a time, and else an error, before anything is changed.
pub(super) fn tidy(disk: &dyn Disk, directory: &Path, aside_ms: Option<TimestampMs>) -> Result<Found, OpenError> {
    check_swaps(disk, directory, aside_ms)?;
    let names = list(disk, directory)?;
    let mut found = Found { changed: remove_unfinished(disk, directory, &names)?, ..Found::default() };
    found.changed |= finish_swaps(disk, directory)?;
    let files: Vec<OffsetFile> = list(disk, directory)?.iter().filter_map(|name| OffsetFile::parse(name)).collect();
    let logs: Vec<Offset> = files.iter().filter(|file| file.kind == FileKind::Log).map(|file| file.offset).collect();
    let has = |offset, kind| files.iter().any(|file| file.offset == offset && file.kind == kind);
    let lacks = |offset: &Offset| !has(*offset, FileKind::Index) || !has(*offset, FileKind::TimeIndex);
    found.lacking_index = logs.iter().copied().filter(lacks).collect();
    for file in &files {
        let path = offset_file(directory, file.offset, file.kind);
        match file.kind {
            FileKind::Log => {
                let metadata = disk.metadata(&path).context("look at", &path)?;
                let (len_bytes, modified_ms) = metadata.map_or((0, 0), |found| (found.len_bytes, found.modified_ms));
                found.segments.push((file.offset, len_bytes, modified_ms));
            }
            FileKind::Snapshot => found.snapshots.push(file.offset),
            // Names are sorted, so that the list of logs is too.
            FileKind::Index | FileKind::TimeIndex | FileKind::TxnIndex => {
                if logs.binary_search(&file.offset).is_err() {
                    found.changed |= remove_if_exists(disk, &path).context("remove", &path)?;
                } else if file.kind == FileKind::TxnIndex {
                    found.txn_indexes.push(file.offset);
                }
            }
        }
    }
    Ok(found)
}

fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>, StorageError> {
    let entries = disk.list_dir(directory).context("list", directory)?;
    Ok(entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect())
}

fn cleaned_min(names: &[String]) -> Option<Offset> {
    let files = names.iter().filter_map(|name| OffsetFile::parse(name));
    files.filter(|file| file.leftover == Some(Leftover::Cleaned)).map(|file| file.offset).min()
}

fn newest_log(names: &[String]) -> Option<Offset> {
    let files = names.iter().filter_map(|name| OffsetFile::parse(name));
    files.filter(|file| file.leftover.is_none() && file.kind == FileKind::Log).map(|file| file.offset).max()
}

/// Compaction syncs a segment before it gives it the name of a swap file, so that damage in one is no torn write, and
/// the segments that it replaces may still be there.
fn check_swaps(disk: &dyn Disk, directory: &Path, aside_ms: Option<TimestampMs>) -> Result<(), OpenError> {
    let names = list(disk, directory)?;
    let undone_from = cleaned_min(&names).unwrap_or(Offset::MAX);
    for name in &names {
        let Some(file) = OffsetFile::parse(name) else { continue };
        let finished = file.leftover == Some(Leftover::Swap) && file.offset < undone_from;
        if !finished || file.kind != FileKind::Log {
            continue;
        }
        // The newest segment is never compacted.
        let newest = newest_log(&names).filter(|newest| *newest > file.offset).unwrap_or(Offset::MAX);
        let path = directory.join(name);
        let open = disk.open(&path, OpenMode::Existing).context("open", &path)?;
        let end = open.len().context("look at", &path)?;
        let mut scanner = Scanner::new(open, 0, end);
        let mut trail = Trail { next_offset: file.offset, epoch: -1 };
        let reason = loop {
            match scanner.next(Depth::Checked) {
                // No check sum covers the offset and the epoch of a batch.
                Ok(Some(batch)) => match misplaced(&batch.header, file.offset, trail) {
                    Some(reason) => break Some(reason),
                    None if batch.header.last_offset() >= newest => {
                        break Some(format!("offset {} lies in the newest segment", batch.header.last_offset()));
                    }
                    None => trail = trail.behind(&batch.header),
                },
                Ok(None) => break None,
                Err(ScanError::Io(error)) => return Err(StorageError::new("read", &path, error).into()),
                Err(error) => break Some(error.to_string()),
            }
        };
        match (reason, aside_ms) {
            (None, _) => {}
            (Some(reason), None) => {
                return Err(OpenError::Corrupt {
                    path,
                    position: scanner.position(),
                    offset: trail.next_offset,
                    reason,
                });
            }
            (Some(_), Some(now_ms)) => disk.rename(&path, &set_aside(&path, now_ms)).context("rename", &path)?,
        }
    }
    Ok(())
}

/// Removes files that were to be deleted, those that compaction had not finished, and swap files of a segment split
/// that had not finished (KAFKA-6264: those at or after the first unfinished file).
fn remove_unfinished(disk: &dyn Disk, directory: &Path, names: &[String]) -> Result<bool, StorageError> {
    let cleaned_min = cleaned_min(names);
    let mut changed = false;
    // While one file is `.cleaned` its swap files are to be undone, so that it goes after them.
    for undone in [Some(Leftover::Swap), None] {
        if undone.is_none() && changed {
            disk.sync_dir(directory).context("sync", directory)?;
        }
        let removed = names.iter().filter(|name| {
            let leftover = OffsetFile::parse(name).and_then(|file| file.leftover);
            (leftover == Some(Leftover::Swap)) == undone.is_some()
        });
        changed |= remove_names(disk, directory, removed, cleaned_min)?;
    }
    Ok(changed)
}

/// Removes those of the names that stand for something unfinished.
fn remove_names<'a>(
    disk: &dyn Disk,
    directory: &Path,
    names: impl Iterator<Item = &'a String>,
    cleaned_min: Option<Offset>,
) -> Result<bool, StorageError> {
    let mut changed = false;
    for name in names {
        let leftover = OffsetFile::parse(name).and_then(|file| Some((file.offset, file.leftover?)));
        let goes = match leftover {
            Some((_, Leftover::Deleted | Leftover::Cleaned)) => true,
            Some((offset, Leftover::Swap)) => cleaned_min.is_some_and(|min| offset >= min),
            None => {
                (name.ends_with(Leftover::Deleted.suffix()) && !name.ends_with(METADATA_SNAPSHOT_DELETED))
                    || name.ends_with(TEMPORARY)
            }
        };
        if goes {
            let path = directory.join(name);
            changed |= remove_if_exists(disk, &path).context("remove", &path)?;
        }
    }
    Ok(changed)
}

/// Puts swap files in the place of the segments that they replace.
fn finish_swaps(disk: &dyn Disk, directory: &Path) -> Result<bool, StorageError> {
    let files = |names: Vec<String>| -> Vec<(PathBuf, OffsetFile)> {
        let parsed = |name: &String| OffsetFile::parse(name).map(|file| (directory.join(name), file));
        names.iter().filter_map(parsed).collect()
    };
    let all = files(list(disk, directory)?);
    let mut replaced: Option<(Offset, Offset)> = None;
    for (path, file) in &all {
        if file.leftover == Some(Leftover::Swap) && file.kind == FileKind::Log {
            let end = next_offset(disk, path, file.offset)?;
            let (min, max) = replaced.unwrap_or((file.offset, end));
            replaced = Some((min.min(file.offset), max.max(end)));
        }
    }
    if let Some((min, max)) = replaced {
        for (path, file) in &all {
            // Producer snapshots stay true: of the producers nothing changes.
            let replaced = file.leftover.is_none() && file.kind != FileKind::Snapshot;
            if replaced && file.offset >= min && file.offset < max {
                remove_if_exists(disk, path).context("remove", path)?;
            }
        }
        disk.sync_dir(directory).context("sync", directory)?;
    }
    let mut changed = replaced.is_some();
    // The log files take their names first and for good: as long as one is a swap file, files with its offset count as
    // those of the old segment.
    for logs in [true, false] {
        for (path, file) in &all {
            if file.leftover == Some(Leftover::Swap) && (file.kind == FileKind::Log) == logs {
                disk.rename(path, &offset_file(directory, file.offset, file.kind)).context("rename", path)?;
                changed = true;
            }
        }
        if logs && replaced.is_some() {
            disk.sync_dir(directory).context("sync", directory)?;
        }
    }
    Ok(changed)
}

/// The offset after the last whole batch of a segment file.
fn next_offset(disk: &dyn Disk, path: &Path, base_offset: Offset) -> Result<Offset, StorageError> {
    let file = disk.open(path, OpenMode::Existing).context("open", path)?;
    let end = file.len().context("look at", path)?;
    let mut scanner = Scanner::new(file, 0, end);
    let mut next = base_offset;
    loop {
        match scanner.next(Depth::Headers) {
            Ok(Some(batch)) => next = batch.header.next_offset(),
            Ok(None) | Err(ScanError::Torn { .. } | ScanError::Bad { .. }) => return Ok(next),
            Err(ScanError::Io(error)) => return Err(StorageError::new("read", path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    fn names_after_tidy(names: &[&str]) -> Vec<String> {
        let disk = SimDisk::new();
        let directory = Path::new("/t-0");
        disk.create_dir(directory).unwrap();
        for name in names {
            disk.open(&directory.join(name), OpenMode::Create).unwrap();
        }
        tidy(&disk, directory, None).unwrap();
        list(&disk, directory).unwrap()
    }

    fn name(offset: i64, suffix: &str) -> String {
        format!("{offset:020}{suffix}")
    }

    #[test]
    fn deleted_and_unfinished_files_go() {
        let kept = name(0, ".log");
        let gone = [name(5, ".log.deleted"), name(5, ".index.cleaned"), name(9, ".index"), "x.tmp".to_owned()];
        let all: Vec<&str> = gone.iter().chain([&kept]).map(String::as_str).collect();
        assert_eq!(names_after_tidy(&all), std::slice::from_ref(&kept));
        let metadata = "00000000000000000007-0000000001.checkpoint.deleted";
        assert_eq!(names_after_tidy(&[&kept, metadata]).len(), 2);
    }

    #[test]
    fn swap_files_take_their_place_unless_a_split_was_under_way() {
        let (swap_log, swap_index) = (name(5, ".log.swap"), name(5, ".index.swap"));
        let expected = [name(5, ".index"), name(5, ".log")];
        assert_eq!(names_after_tidy(&[&swap_log, &swap_index]), expected);
        assert_eq!(names_after_tidy(&[&swap_log, &swap_index, &name(5, ".log.cleaned")]), [] as [String; 0]);
    }
}
