//! What a simulated disk holds: for every file the content as processes see it and as a power cut would leave it, for
//! every directory the names as seen and the changes that no sync has made durable. Pure memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that a device writes as a whole; a torn write ends at a multiple of it.
const SECTOR_BYTES: usize = 512;

/// Kinds of operations that change the disk. Each counts as one step at which it can crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A file is made.
    Create,
    /// A directory is made.
    CreateDir,
    /// Bytes are written.
    Write,
    /// A file is cut or extended.
    SetLen,
    /// A file is synced.
    Sync,
    /// A directory is synced.
    SyncDir,
    /// A name changes.
    Rename,
    /// A file or directory is removed.
    Remove,
}

#[derive(Debug, Clone)]
enum Change {
    Write { position: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { position, bytes } => {
                let end = position + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*position..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => content.resize(*len, 0),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(usize),
    Dir,
}

#[derive(Debug, Clone)]
enum NameChange {
    Put(PathBuf, Node),
    Take(PathBuf),
    Move(PathBuf, PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            NameChange::Put(path, node) => {
                names.insert(path.clone(), *node);
            }
            NameChange::Take(path) => {
                names.remove(path);
            }
            NameChange::Move(from, to) => {
                let moved: Vec<PathBuf> = names.keys().filter(|name| name.starts_with(from)).cloned().collect();
                for old in moved {
                    let Some(node) = names.remove(&old) else { continue };
                    let new = match old.strip_prefix(from) {
                        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
                        Ok(_) | Err(_) => to.clone(),
                    };
                    names.insert(new, node);
                }
            }
        }
    }
}

/// The content of a simulated disk.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    files: Vec<File>,
    seen: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// Per directory, the changes of its names since it was synced, oldest first.
    unsynced: BTreeMap<PathBuf, Vec<NameChange>>,
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", path.display()))
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

impl State {
    fn change_names(&mut self, directory: PathBuf, change: NameChange) {
        change.apply(&mut self.seen);
        self.unsynced.entry(directory).or_default().push(change);
    }

    pub(super) fn node(&self, path: &Path) -> Option<Node> {
        self.seen.get(path).copied()
    }

    pub(super) fn make_file(&mut self, path: &Path) -> io::Result<usize> {
        if self.node(&parent(path)) != Some(Node::Dir) {
            return Err(not_found(&parent(path)));
        }
        self.files.push(File::default());
        let inode = self.files.len() - 1;
        self.change_names(parent(path), NameChange::Put(path.to_path_buf(), Node::File(inode)));
        Ok(inode)
    }

    pub(super) fn make_dir(&mut self, path: &Path) {
        self.change_names(parent(path), NameChange::Put(path.to_path_buf(), Node::Dir));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if self.node(from).is_none() {
            return Err(not_found(from));
        }
        self.change_names(parent(to), NameChange::Move(from.to_path_buf(), to.to_path_buf()));
        // The names below a renamed directory move with it, those not yet durable too.
        let below: Vec<PathBuf> = self.unsynced.keys().filter(|dir| dir.starts_with(from)).cloned().collect();
        for old in below {
            let Some(changes) = self.unsynced.remove(&old) else { continue };
            let moved = changes.into_iter().map(|change| change.moved(from, to)).collect();
            let rest = old.strip_prefix(from).map(Path::to_path_buf).unwrap_or_default();
            let new = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            self.unsynced.insert(new, moved);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let node = self.node(path).ok_or_else(|| not_found(path))?;
        if node == Node::Dir && self.seen.keys().any(|name| name != path && name.starts_with(path)) {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, path.display().to_string()));
        }
        self.change_names(parent(path), NameChange::Take(path.to_path_buf()));
        Ok(())
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<(String, Node)>> {
        if self.node(path) != Some(Node::Dir) {
            return Err(not_found(path));
        }
        let named = |(name, node): (&PathBuf, &Node)| {
            let text = name.file_name().and_then(|name| name.to_str())?;
            (name.parent() == Some(path)).then(|| (text.to_owned(), *node))
        };
        Ok(self.seen.iter().filter_map(named).collect())
    }

    pub(super) fn content(&self, inode: usize) -> &[u8] {
        &self.files[inode].seen
    }

    pub(super) fn write(&mut self, inode: usize, position: usize, bytes: Vec<u8>) {
        self.change(inode, Change::Write { position, bytes });
    }

    pub(super) fn set_len(&mut self, inode: usize, len: usize) {
        self.change(inode, Change::SetLen(len));
    }

    fn change(&mut self, inode: usize, change: Change) {
        let file = &mut self.files[inode];
        change.apply(&mut file.seen);
        file.unsynced.push(change);
    }

    pub(super) fn sync(&mut self, inode: usize) {
        let File { durable, unsynced, .. } = &mut self.files[inode];
        unsynced.drain(..).for_each(|change| change.apply(durable));
    }

    /// A failed sync: the pages count as clean afterwards although they never reached the device, so that a second
    /// sync succeeds and saves nothing (Rebello et al., USENIX ATC 2020).
    pub(super) fn lose_unsynced(&mut self, inode: usize) {
        self.files[inode].unsynced.clear();
    }

    pub(super) fn sync_dir(&mut self, path: &Path) {
        for change in self.unsynced.remove(path).unwrap_or_default() {
            change.apply(&mut self.durable);
        }
    }

    /// What is found after a power cut: all that was synced, of the names of each directory some first changes, and of
    /// each file any of the changes since its sync, each whole, torn or lost.
    pub(super) fn after_crash(&self, rng: &mut SimRng) -> State {
        let mut names = self.durable.clone();
        for changes in self.unsynced.values() {
            let survive = rng.below(changes.len() + 1);
            changes[..survive].iter().for_each(|change| change.apply(&mut names));
        }
        // A name whose directory did not survive is lost with it.
        let whole = names.clone();
        names.retain(|name, _| {
            name.ancestors().skip(1).all(|above| above.as_os_str().is_empty() || whole.get(above) == Some(&Node::Dir))
        });
        let files = self.files.iter().map(|file| file.after_crash(rng)).collect();
        State { files, seen: names.clone(), durable: names, unsynced: BTreeMap::new() }
    }
}

impl NameChange {
    fn moved(self, from: &Path, to: &Path) -> NameChange {
        let place = |path: PathBuf| match path.strip_prefix(from) {
            Ok(rest) => to.join(rest),
            Err(_) => path,
        };
        match self {
            NameChange::Put(path, node) => NameChange::Put(place(path), node),
            NameChange::Take(path) => NameChange::Take(place(path)),
            NameChange::Move(old, new) => NameChange::Move(place(old), place(new)),
        }
    }
}

impl File {
    fn after_crash(&self, rng: &mut SimRng) -> File {
        let mut content = self.durable.clone();
        for change in &self.unsynced {
            match (rng.below(3), change) {
                (0, _) => {}
                (1, Change::Write { position, bytes }) => {
                    let first_end = SECTOR_BYTES - position % SECTOR_BYTES;
                    let kept = (first_end + SECTOR_BYTES * rng.below(bytes.len() / SECTOR_BYTES + 1)).min(bytes.len());
                    Change::Write { position: *position, bytes: bytes[..kept].to_vec() }.apply(&mut content);
                }
                (_, change) => change.apply(&mut content),
            }
        }
        File { seen: content.clone(), durable: content, unsynced: Vec::new() }
    }
}

/// A small repeatable generator (SplitMix64), so that what survives depends on the seed alone.
#[derive(Debug, Clone)]
pub(super) struct SimRng(u64);

impl SimRng {
    pub(super) fn new(seed: u64) -> Self {
        SimRng(seed)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
