//! The machine's files, by the standard library and rustix. The only place of the project that opens files.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reaches the machine's files")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use rustix::fs::FlockOperation;
use rustix::io::{Errno, ReadWriteFlags};

use super::{DirEntry, Disk, DiskFile, DiskLock, Metadata, OpenMode, VolumeSpace};

/// Slices that one vectored write takes at most (Linux: IOV_MAX).
const WRITE_SLICES_MAX: usize = 1024;

/// The machine's disk.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

/// `f_type` of tmpfs (Linux: TMPFS_MAGIC).
const TMPFS_MAGIC: i64 = 0x0102_1994;

#[derive(Debug)]
struct RealFile {
    file: File,
    /// Whether it lies on tmpfs, once somebody had to know.
    in_memory: OnceLock<bool>,
}

impl RealFile {
    fn is_in_memory(&self) -> io::Result<bool> {
        if let Some(known) = self.in_memory.get() {
            return Ok(*known);
        }
        let in_memory = rustix::fs::fstatfs(&self.file)?.f_type as i64 == TMPFS_MAGIC;
        Ok(*self.in_memory.get_or_init(|| in_memory))
    }
}

#[derive(Debug)]
struct RealLock {
    /// Holds the lock for as long as it is open.
    _file: File,
}

impl DiskLock for RealLock {}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::Create => {
                options.create(true).truncate(false);
            }
            OpenMode::Truncate => {
                options.create(true).truncate(true);
            }
        }
        Ok(Arc::new(RealFile { file: options.open(path)?, in_memory: OnceLock::new() }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            entries.push(DirEntry { name, is_dir: entry.file_type()?.is_dir() });
        }
        entries.sort();
        Ok(entries)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // An empty path names the working directory of a relative file name.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        File::open(path)?.sync_all()
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match fs::metadata(path) {
            Ok(found) => {
                let modified_ms =
                    found.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
                let len_bytes = if found.is_dir() { 0 } else { found.len() };
                Ok(Some(Metadata { len_bytes, modified_ms, is_dir: found.is_dir() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        // flock keeps out another of our nodes, even in the same process; the record lock keeps out a Java process,
        // whose FileChannel.tryLock takes that kind.
        let operation = FlockOperation::NonBlockingLockExclusive;
        for outcome in [rustix::fs::flock(&file, operation), rustix::fs::fcntl_lock(&file, operation)] {
            match outcome {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK | Errno::ACCESS) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Box::new(RealLock { _file: file })))
    }

    fn space(&self, path: &Path) -> io::Result<VolumeSpace> {
        let volume = rustix::fs::statvfs(path)?;
        Ok(VolumeSpace {
            total_bytes: volume.f_blocks.saturating_mul(volume.f_frsize),
            free_bytes: volume.f_bavail.saturating_mul(volume.f_frsize),
        })
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.file.read_at(&mut buf[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn read_at_nowait(&self, position: u64, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let mut filled = 0;
        while filled < buf.len() {
            let mut slices = [IoSliceMut::new(&mut buf[filled..])];
            match rustix::io::preadv2(&self.file, &mut slices, position + filled as u64, ReadWriteFlags::NOWAIT) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                // A file system without the flag: one that lives in memory never waits.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return if self.is_in_memory()? { self.read_at(position, buf).map(Some) } else { Ok(None) };
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(filled))
    }

    fn write_at(&self, position: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        if let [only] = slices {
            return self.file.write_all_at(only, position);
        }
        let mut slices = slices;
        let mut position = position;
        // An empty first slice would be written for ever.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let count = slices.len().min(WRITE_SLICES_MAX);
            match rustix::io::pwritev(&self.file, &slices[..count], position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    position += written as u64;
                    IoSlice::advance_slices(&mut slices, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_by_slices_and_read_by_position() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        let file = RealDisk.open(&path, OpenMode::Create).unwrap();
        let parts: Vec<Vec<u8>> = (0..3000u32).map(|i| i.to_be_bytes().to_vec()).collect();
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        file.write_at(0, &mut slices).unwrap();
        let mut back = vec![0; 20_000];
        assert_eq!(file.read_at(4, &mut back).unwrap(), 11_996);
        assert_eq!(back[..11_996], parts.concat()[4..]);
        if let Some(read) = file.read_at_nowait(4, &mut back).unwrap() {
            assert_eq!(read, 11_996);
        }
    }

    #[test]
    fn the_lock_is_held_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".lock");
        let held = RealDisk.try_lock(&path).unwrap();
        assert!(held.is_some());
        assert!(RealDisk.try_lock(&path).unwrap().is_none());
        drop(held);
        assert!(RealDisk.try_lock(&path).unwrap().is_some());
    }

    #[test]
    fn names_and_metadata_are_told() {
        let home = tempfile::tempdir().unwrap();
        let nested = home.path().join("x").join("t-0");
        RealDisk.create_dir(&nested).unwrap();
        super::super::replace_file(&RealDisk, &nested.join("partition.metadata"), b"version: 0").unwrap();
        assert_eq!(
            RealDisk.list_dir(&nested).unwrap(),
            [DirEntry { name: "partition.metadata".into(), is_dir: false }]
        );
        let found = RealDisk.metadata(&nested.join("partition.metadata")).unwrap().unwrap();
        assert_eq!((found.len_bytes, found.is_dir), (10, false));
        assert!(RealDisk.metadata(&nested.join("absent")).unwrap().is_none());
        assert!(RealDisk.space(&nested).unwrap().total_bytes > 0);
    }
}
