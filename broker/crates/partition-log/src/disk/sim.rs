//! A disk in memory that crashes when told to. Counts every operation that changes it, so that a test can run the same
//! work again and again and cut the power at each operation in turn. Same work, same trace; same seed, same survivors.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::sim_state::{Node, OpKind, SimRng, State};
use super::{DirEntry, Disk, DiskFile, DiskLock, Metadata, OpenMode, VolumeSpace};

/// Size of the simulated volume.
const TOTAL_BYTES: u64 = 1 << 40;

/// An error that the disk gives instead of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimFault {
    /// The device failed.
    Eio,
    /// The volume is full.
    Enospc,
}

impl SimFault {
    fn error(self) -> io::Error {
        match self {
            SimFault::Eio => io::Error::other("simulated device error"),
            SimFault::Enospc => io::Error::new(io::ErrorKind::StorageFull, "simulated volume is full"),
        }
    }
}

#[derive(Debug, Default)]
struct Machine {
    state: State,
    operations: u64,
    trace: u64,
    crash_at: Option<u64>,
    crashed: bool,
    faults: Vec<(OpKind, PathBuf, SimFault)>,
    locks: Vec<PathBuf>,
    reads: u64,
    used_bytes: u64,
}

/// The simulated disk. Clones share the same content.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
}

#[derive(Debug)]
struct SimFile {
    machine: Arc<Mutex<Machine>>,
    path: PathBuf,
    inode: usize,
}

#[derive(Debug)]
struct SimLock {
    machine: Arc<Mutex<Machine>>,
    path: PathBuf,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.machine.lock().locks.retain(|held| *held != self.path);
    }
}

impl Machine {
    /// Counts an operation.
    fn step(&mut self, kind: OpKind, path: &Path, detail: u64) -> io::Result<()> {
        self.alive()?;
        self.operations += 1;
        // FNV-1a over what makes the operation what it is.
        let name = path.as_os_str().as_encoded_bytes();
        for byte in name.iter().copied().chain([kind as u8]).chain(detail.to_le_bytes()) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.crash_at.is_some_and(|at| self.operations >= at) {
            self.crashed = true;
        }
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        if self.crashed { Err(io::Error::other("the simulated machine has crashed")) } else { Ok(()) }
    }

    fn fault(&self, kind: OpKind, path: &Path) -> Option<io::Error> {
        let hit = self.faults.iter().find(|(at, below, _)| *at == kind && path.starts_with(below));
        hit.map(|(_, _, fault)| fault.error())
    }

    /// Counts an operation, unless a fault stands in its way.
    fn change(&mut self, kind: OpKind, path: &Path, detail: u64) -> io::Result<()> {
        self.step(kind, path, detail)?;
        match self.fault(kind, path) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl SimDisk {
    /// An empty disk that holds the root directory only.
    pub fn new() -> Self {
        let disk = SimDisk::default();
        {
            let mut machine = disk.machine.lock();
            for root in ["", "/"] {
                machine.state.make_dir(Path::new(root));
                machine.state.sync_dir(Path::new(""));
            }
        }
        disk
    }

    /// Operations counted so far.
    pub fn operations(&self) -> u64 {
        self.machine.lock().operations
    }

    /// Bytes read from files so far; tells a start that reads everything from one that does not.
    pub fn bytes_read(&self) -> u64 {
        self.machine.lock().reads
    }

    /// A hash of all operations so far, in order.
    pub fn trace(&self) -> u64 {
        self.machine.lock().trace
    }

    /// Cuts the power at the n-th operation, counted from 1: it takes effect in memory, its caller and all later ones
    /// get an error.
    pub fn crash_at(&self, operation: u64) {
        self.machine.lock().crash_at = Some(operation);
    }

    /// Cuts the power now.
    pub fn crash(&self) {
        self.machine.lock().crashed = true;
    }

    /// True once the power is cut.
    pub fn has_crashed(&self) -> bool {
        self.machine.lock().crashed
    }

    /// Lets every operation of this kind on `below` and what lies in it fail until `heal`.
    pub fn fail(&self, kind: OpKind, below: &Path, fault: SimFault) {
        self.machine.lock().faults.push((kind, below.to_path_buf(), fault));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.machine.lock().faults.clear();
    }

    /// The disk that the next start finds after a power cut; `seed` chooses what of the unsynced survives.
    pub fn after_power_cut(&self, seed: u64) -> SimDisk {
        let state = self.machine.lock().state.after_crash(&mut SimRng::new(seed));
        SimDisk { machine: Arc::new(Mutex::new(Machine { state, ..Machine::default() })) }
    }

    /// The disk that the next start finds after the process alone was killed: all that was written is there.
    pub fn after_kill(&self) -> SimDisk {
        let state = self.machine.lock().state.clone();
        SimDisk { machine: Arc::new(Mutex::new(Machine { state, ..Machine::default() })) }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut machine = self.machine.lock();
        machine.alive()?;
        let inode = match machine.state.node(path) {
            Some(Node::Dir) => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(inode)) => {
                if mode == OpenMode::Truncate {
                    machine.change(OpKind::SetLen, path, 0)?;
                    machine.state.set_len(inode, 0);
                    machine.alive()?;
                }
                inode
            }
            None if mode == OpenMode::Existing => {
                return Err(io::Error::new(io::ErrorKind::NotFound, path.display().to_string()));
            }
            None => {
                machine.change(OpKind::Create, path, 0)?;
                let inode = machine.state.make_file(path)?;
                machine.alive()?;
                inode
            }
        };
        Ok(Arc::new(SimFile { machine: self.machine.clone(), path: path.to_path_buf(), inode }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine.lock();
        machine.alive()?;
        let missing: Vec<PathBuf> = path
            .ancestors()
            .filter(|above| !above.as_os_str().is_empty() && machine.state.node(above).is_none())
            .map(Path::to_path_buf)
            .collect();
        for directory in missing.iter().rev() {
            machine.change(OpKind::CreateDir, directory, 0)?;
            machine.state.make_dir(directory);
            machine.alive()?;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine.lock();
        machine.change(OpKind::Rename, from, 0)?;
        machine.state.rename(from, to)?;
        machine.alive()
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine.lock();
        machine.alive()?;
        if machine.state.node(path).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        machine.change(OpKind::Remove, path, 0)?;
        machine.state.remove(path)?;
        machine.alive()
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let machine = self.machine.lock();
        machine.alive()?;
        let names = machine.state.list(path)?;
        Ok(names.into_iter().map(|(name, node)| DirEntry { name, is_dir: node == Node::Dir }).collect())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine.lock();
        machine.change(OpKind::SyncDir, path, 0)?;
        machine.alive()?;
        machine.state.sync_dir(path);
        Ok(())
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        let machine = self.machine.lock();
        machine.alive()?;
        Ok(machine.state.node(path).map(|node| match node {
            Node::Dir => Metadata { len_bytes: 0, modified_ms: 0, is_dir: true },
            Node::File(inode) => {
                Metadata { len_bytes: machine.state.content(inode).len() as u64, modified_ms: 0, is_dir: false }
            }
        }))
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn DiskLock>>> {
        self.open(path, OpenMode::Create)?;
        let mut machine = self.machine.lock();
        if machine.locks.iter().any(|held| held == path) {
            return Ok(None);
        }
        machine.locks.push(path.to_path_buf());
        Ok(Some(Box::new(SimLock { machine: self.machine.clone(), path: path.to_path_buf() })))
    }

    fn space(&self, _path: &Path) -> io::Result<VolumeSpace> {
        let machine = self.machine.lock();
        Ok(VolumeSpace { total_bytes: TOTAL_BYTES, free_bytes: TOTAL_BYTES.saturating_sub(machine.used_bytes) })
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut machine = self.machine.lock();
        machine.alive()?;
        let content = machine.state.content(self.inode);
        let start = content.len().min(position as usize);
        let read = buf.len().min(content.len() - start);
        buf[..read].copy_from_slice(&content[start..start + read]);
        machine.reads += read as u64;
        Ok(read)
    }

    fn read_at_nowait(&self, position: u64, buf: &mut [u8]) -> io::Result<Option<usize>> {
        self.read_at(position, buf).map(Some)
    }

    fn write_at(&self, position: u64, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let mut machine = self.machine.lock();
        machine.change(OpKind::Write, &self.path, position ^ (bytes.len() as u64) << 32)?;
        machine.used_bytes += bytes.len() as u64;
        machine.state.write(self.inode, position as usize, bytes);
        machine.alive()
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let mut machine = self.machine.lock();
        machine.change(OpKind::SetLen, &self.path, len_bytes)?;
        machine.state.set_len(self.inode, len_bytes as usize);
        machine.alive()
    }

    fn len(&self) -> io::Result<u64> {
        let machine = self.machine.lock();
        machine.alive()?;
        Ok(machine.state.content(self.inode).len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        let mut machine = self.machine.lock();
        if let Err(error) = machine.change(OpKind::Sync, &self.path, 0) {
            if !machine.crashed {
                machine.state.lose_unsynced(self.inode);
            }
            return Err(error);
        }
        machine.alive()?;
        machine.state.sync(self.inode);
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
