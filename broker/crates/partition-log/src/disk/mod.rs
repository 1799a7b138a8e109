//! The seam to files. Everything this project keeps on disk goes through `Disk`, so that a test can crash it at any
//! write, sync or rename. `RealDisk` is the machine's; `SimDisk` lives in memory and remembers what was synced.

mod real;
mod sim;
mod sim_state;

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use base::TimestampMs;

pub use real::RealDisk;
pub use sim::{SimDisk, SimFault};
pub use sim_state::OpKind;

/// How a file is opened. Every form allows reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file is made when it is missing; its content stays.
    Create,
    /// The file is made when it is missing and emptied when it is there.
    Truncate,
}

/// What is known of a file or directory without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Bytes of a file; 0 of a directory.
    pub len_bytes: u64,
    /// Time of the last change of the content.
    pub modified_ms: TimestampMs,
    /// True for a directory.
    pub is_dir: bool,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// Name without the directory. Names that are not UTF-8 are not listed: Kafka writes none.
    pub name: String,
    /// True for a directory.
    pub is_dir: bool,
}

/// Room on the volume that holds a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSpace {
    /// Size of the volume.
    pub total_bytes: u64,
    /// Bytes that an unprivileged process may still write.
    pub free_bytes: u64,
}

/// Files and directories of one machine.
///
/// A change of a directory (a file made, renamed or removed) is durable only after `sync_dir` of that directory, and
/// a change of a file's content only after `DiskFile::sync`.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes a directory and those above it; one that exists is no error.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Puts a file or directory in place of another name, atomically; an existing file of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// What is known of a path; `None` when there is nothing.
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>>;
    /// Takes the exclusive lock on a file, made when missing; `None` when another process holds it. The lock is
    /// released when the value is dropped.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>>;
    /// Room on the volume that holds `path`.
    fn space(&self, path: &Path) -> io::Result<VolumeSpace>;
}

/// An open file. All reads and writes name their position, so one handle serves many threads.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Fills `buf` from `position`; returns fewer bytes only at the end of the file.
    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// As `read_at`, but never waits for a device: `None` when not all bytes asked for (up to the end of the file)
    /// are in memory, or when the file system cannot tell.
    fn read_at_nowait(&self, position: u64, buf: &mut [u8]) -> io::Result<Option<usize>>;
    /// Writes all slices one after the other at `position`.
    fn write_at(&self, position: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()>;
    /// Cuts or extends the file.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;
    /// Bytes in the file.
    fn len(&self) -> io::Result<u64>;
    /// True when the file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Makes content and length durable. After a failure the content is unknown: never retry, never go on.
    fn sync(&self) -> io::Result<()>;
    /// The descriptor, for sendfile; `None` for a simulated file.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// A held lock.
pub trait DiskLock: fmt::Debug + Send + Sync {}

/// Reads a whole file; the caller's limit guards against a file that is not what its name says.
pub fn read_file(disk: &dyn Disk, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Existing)?;
    let len_bytes = file.len()?;
    if len_bytes > limit_bytes {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} has {len_bytes} bytes, more than the {limit_bytes} it may have", path.display()),
        ));
    }
    let mut content = vec![0; len_bytes as usize];
    let read = file.read_at(0, &mut content)?;
    content.truncate(read);
    Ok(content)
}

/// Replaces a small file so that a crash leaves the old or the new content, never a mix: a temporary file is written
/// and synced, put in place by a rename, and the directory is synced (Kafka: CheckpointFile, `.tmp` suffix).
pub fn replace_file(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let file = disk.open(temporary, OpenMode::Truncate)?;
    file.write_at(0, &mut [IoSlice::new(content)])?;
    file.sync()?;
    disk.rename(temporary, path)?;
    match path.parent() {
        Some(directory) => disk.sync_dir(directory),
        None => Ok(()),
    }
}

/// Removes a file that may be gone already; true when it was there.
pub fn remove_if_exists(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    match disk.remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
