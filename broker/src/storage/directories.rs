//! Taking the data directories at start: locked, formatted if that is allowed, and all of one cluster and this node
//! (Kafka: MetaPropertiesEnsemble, LogManager.lockLogDirs).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Clock, Entropy, NodeId, TopicId};
use cluster::DirectoryId;
use partition_log::disk::{Disk, DiskLock};
use partition_log::formats::meta_properties::{self, MetaProperties};

use super::format::{default_features, new_directory_id, write_bootstrap, write_meta};
use super::{LOCK, META_PROPERTIES, StorageError, is_reserved, unusable};
use crate::config::Config;

/// A data directory that this node holds.
#[derive(Debug)]
pub struct LogDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// Its `directory.id`.
    pub id: DirectoryId,
    /// Held until the node has stopped.
    _lock: Box<dyn DiskLock>,
}

/// The data directories of this node.
#[derive(Debug)]
pub struct Storage {
    /// Id of the cluster to which they belong.
    pub cluster_id: Arc<str>,
    /// In the order of `log.dirs`, that of the metadata log last if it is none of them.
    pub directories: Vec<LogDirectory>,
    /// Whether this start formatted them.
    pub formatted_now: bool,
}

/// Takes all directories of the settings, formats those that are new if `monedula.storage.auto.format` allows it, and
/// checks that they belong together and to this node.
pub fn open(
    disk: &dyn Disk,
    config: &Config,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<Storage, StorageError> {
    let mut found = Vec::new();
    for path in config.storage.all_dirs() {
        if disk.metadata(&path).map_err(unusable(&path))?.is_none() && !config.storage.auto_format {
            return Err(StorageError::NotFormatted { path });
        }
        let lock = lock(disk, &path)?;
        let meta = meta_properties::read(disk, &path.join(META_PROPERTIES))?;
        found.push((path, lock, meta));
    }
    verify(found.iter().map(|(path, _, meta)| (path.as_path(), meta.as_ref())), config.node_id)?;
    let known = found.iter().find_map(|(_, _, meta)| meta.as_ref().map(|meta| meta.cluster_id.clone()));
    check_wanted(&found, known.as_deref(), config.cluster_id_wanted.as_deref())?;
    let cluster_id =
        known.or_else(|| config.cluster_id_wanted.clone()).unwrap_or_else(|| TopicId(entropy.uuid()).to_string());
    let mut directories = Vec::with_capacity(found.len());
    let mut formatted_now = false;
    let new_cluster = found.iter().all(|(_, _, meta)| meta.is_none());
    for (path, lock, meta) in found {
        let id = match meta {
            Some(MetaProperties { directory_id: Some(id), .. }) => id,
            // Kafka before 3.7 gave directories no id.
            Some(meta) => named(disk, &path, &meta.cluster_id, meta.node_id, entropy)?,
            None if !config.storage.auto_format => return Err(StorageError::NotFormatted { path }),
            None => {
                refuse_foreign_content(disk, &path)?;
                if new_cluster && path == config.storage.metadata_log_dir {
                    write_bootstrap(disk, &path, &default_features(), clock.wall_ms())?;
                }
                formatted_now = true;
                named(disk, &path, &cluster_id, config.node_id, entropy)?
            }
        };
        directories.push(LogDirectory { path, id, _lock: lock });
    }
    Ok(Storage { cluster_id: cluster_id.into(), directories, formatted_now })
}

/// Writes whose the directory is, with an id of its own.
fn named(
    disk: &dyn Disk,
    path: &Path,
    cluster_id: &str,
    node_id: NodeId,
    entropy: &dyn Entropy,
) -> Result<DirectoryId, StorageError> {
    let id = new_directory_id(entropy);
    write_meta(disk, path, cluster_id, node_id, id)?;
    Ok(id)
}

/// Makes the directory when it is missing and takes its lock, which also shows that it can be written.
pub(super) fn lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn DiskLock>, StorageError> {
    disk.create_dir(path).map_err(unusable(path))?;
    let lock = disk.try_lock(&path.join(LOCK)).map_err(unusable(path))?;
    lock.ok_or_else(|| StorageError::Locked { path: path.to_owned() })
}

/// All that are formatted are of one cluster, of this node, and none is a copy of another.
pub(super) fn verify<'a>(
    found: impl Iterator<Item = (&'a Path, Option<&'a MetaProperties>)>,
    node_id: NodeId,
) -> Result<(), StorageError> {
    let formatted: Vec<(&Path, &MetaProperties)> = found.filter_map(|(path, meta)| Some((path, meta?))).collect();
    for (at, (path, meta)) in formatted.iter().enumerate() {
        let expected = &formatted[0].1.cluster_id;
        if meta.cluster_id != *expected {
            let (expected, found) = (expected.clone(), meta.cluster_id.clone());
            return Err(StorageError::ForeignCluster { path: path.to_path_buf(), expected, found });
        }
        if meta.node_id != node_id {
            let found = meta.node_id;
            return Err(StorageError::ForeignNode { path: path.to_path_buf(), expected: node_id, found });
        }
        let Some(id) = meta.directory_id else { continue };
        if is_reserved(&id) {
            return Err(StorageError::ReservedDirectoryId { path: path.to_path_buf(), id });
        }
        if let Some((first, _)) = formatted[..at].iter().find(|(_, other)| other.directory_id == Some(id)) {
            let (first, second) = (first.to_path_buf(), path.to_path_buf());
            return Err(StorageError::DuplicateDirectoryId { first, second, id });
        }
    }
    Ok(())
}

type Found = (PathBuf, Box<dyn DiskLock>, Option<MetaProperties>);

/// A cluster id that the operator names must be that of the data, or the node would serve another cluster's data.
fn check_wanted(found: &[Found], known: Option<&str>, wanted: Option<&str>) -> Result<(), StorageError> {
    let (Some(known), Some(wanted)) = (known, wanted) else { return Ok(()) };
    let formatted = found.iter().find(|(_, _, meta)| meta.is_some());
    match formatted {
        Some((path, _, _)) if known != wanted => Err(StorageError::ForeignCluster {
            path: path.clone(),
            expected: wanted.to_owned(),
            found: known.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// A directory with content but without `meta.properties` is somebody's: a backup half restored, or a home directory.
fn refuse_foreign_content(disk: &dyn Disk, path: &Path) -> Result<(), StorageError> {
    let entries = disk.list_dir(path).map_err(unusable(path))?;
    // A file system's root has lost+found; an earlier try to format may have left the metadata directory.
    let ours = [LOCK, "lost+found", super::METADATA_PARTITION, ".gitkeep"];
    match entries.into_iter().find(|entry| !ours.contains(&entry.name.as_str()) && !entry.name.ends_with(".tmp")) {
        Some(entry) => Err(StorageError::NotEmpty { path: path.to_owned(), found: entry.name }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use base::{ManualClock, SeededEntropy};
    use partition_log::disk::{SimDisk, read_file};

    use super::*;
    use crate::config::{Inputs, SettingsFile};
    use crate::storage::{FormatOptions, METADATA_PARTITION, format};

    fn config(overrides: &[&str]) -> Config {
        let overrides: Vec<String> = overrides.iter().map(|text| String::from(*text)).collect();
        let read = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let file: Option<SettingsFile> = None;
        Config::load(Inputs { file, environment: Vec::new(), overrides: &overrides, read: &read, hostname: "h" })
            .unwrap()
            .0
    }

    fn start(disk: &SimDisk, overrides: &[&str]) -> Result<Storage, StorageError> {
        open(disk, &config(overrides), &ManualClock::at(1), &SeededEntropy::new(7))
    }

    fn refused(disk: &SimDisk, overrides: &[&str]) -> String {
        start(disk, overrides).map(|_| ()).unwrap_err().to_string()
    }

    fn formatted_with(disk: &SimDisk, cluster_id: &str, overrides: &[&str]) {
        let seed = u64::from(cluster_id.as_bytes()[0]);
        let options = FormatOptions {
            cluster_id: cluster_id.to_owned(),
            ignore_formatted: false,
            features: Vec::new(),
            metadata_directory_id: None,
        };
        format(disk, &config(overrides), &options, &ManualClock::at(1), &SeededEntropy::new(seed)).unwrap();
    }

    const TWO: &str = "log.dirs=/d/a,/d/b";

    #[test]
    fn the_first_start_formats_by_itself_and_the_second_finds_the_same() {
        let disk = SimDisk::new();
        let first = start(&disk, &[TWO]).unwrap();
        let (cluster_id, ids) = (first.cluster_id.clone(), first.directories.iter().map(|d| d.id).collect::<Vec<_>>());
        assert!(first.formatted_now && ids[0] != ids[1] && cluster_id.len() == 22);
        let snapshot = Path::new("/d/a").join(METADATA_PARTITION).join("00000000000000000000-0000000000.checkpoint");
        assert!(disk.metadata(&snapshot).unwrap().is_some());
        drop(first);
        let second = start(&disk, &[TWO]).unwrap();
        assert!(!second.formatted_now);
        assert_eq!(second.cluster_id, cluster_id);
        assert_eq!(second.directories.iter().map(|d| d.id).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn a_second_node_on_the_same_directory_is_refused() {
        let disk = SimDisk::new();
        let _running = start(&disk, &["log.dirs=/d/a"]).unwrap();
        let error = refused(&disk, &["log.dirs=/d/a"]);
        assert!(error.starts_with("/d/a is in use by another node"), "{error}");
    }

    #[test]
    fn a_directory_of_another_cluster_or_node_is_refused() {
        let disk = SimDisk::new();
        formatted_with(&disk, "AAAAAAAAAAAAAAAAAAAAAA", &["log.dirs=/d/a"]);
        formatted_with(&disk, "BAAAAAAAAAAAAAAAAAAAAA", &["log.dirs=/d/b"]);
        let error = refused(&disk, &[TWO]);
        assert!(error.starts_with("Invalid cluster.id in: /d/b/meta.properties. Expected AAAA"), "{error}");
        let error = refused(&disk, &["log.dirs=/d/a", "node.id=2"]);
        assert!(error.starts_with("Invalid node.id in: /d/a/meta.properties. Expected 2, but read 1"), "{error}");
    }

    #[test]
    fn a_copy_of_a_directory_is_refused() {
        let disk = SimDisk::new();
        formatted_with(&disk, "AAAAAAAAAAAAAAAAAAAAAA", &["log.dirs=/d/a"]);
        let content = read_file(&disk, Path::new("/d/a/meta.properties"), 4096).unwrap();
        disk.create_dir(Path::new("/d/b")).unwrap();
        partition_log::disk::replace_file(&disk, Path::new("/d/b/meta.properties"), &content).unwrap();
        assert!(refused(&disk, &[TWO]).contains("both have directory.id"));
    }

    #[test]
    fn a_directory_with_data_but_without_an_owner_is_not_taken() {
        let disk = SimDisk::new();
        disk.create_dir(Path::new("/d/a/orders-0")).unwrap();
        assert!(refused(&disk, &["log.dirs=/d/a"]).contains("holds orders-0"));
    }

    #[test]
    fn a_new_directory_joins_the_cluster_of_the_others() {
        let disk = SimDisk::new();
        formatted_with(&disk, "AAAAAAAAAAAAAAAAAAAAAA", &["log.dirs=/d/a"]);
        let storage = start(&disk, &[TWO]).unwrap();
        assert_eq!(&*storage.cluster_id, "AAAAAAAAAAAAAAAAAAAAAA");
        assert!(disk.metadata(&Path::new("/d/b").join(METADATA_PARTITION)).unwrap().is_none());
    }

    #[test]
    fn without_leave_to_format_a_new_directory_is_refused() {
        let disk = SimDisk::new();
        let error = refused(&disk, &["log.dirs=/d/a", "monedula.storage.auto.format=false"]);
        assert_eq!(error, "/d/a is not formatted; run `monedula storage format`");
    }

    #[test]
    fn a_crash_at_any_moment_of_formatting_leaves_directories_that_the_next_start_makes_whole() {
        let whole = SimDisk::new();
        start(&whole, &[TWO]).unwrap();
        let snapshot = Path::new("/d/a").join(METADATA_PARTITION).join("00000000000000000000-0000000000.checkpoint");
        for operation in 1..=whole.operations() {
            let disk = SimDisk::new();
            disk.crash_at(operation);
            // It fails unless the crash comes after the last write.
            let _ = start(&disk, &[TWO]);
            for seed in 0..4 {
                let disk = disk.after_power_cut(seed);
                let second = start(&disk, &[TWO]).unwrap();
                assert!(disk.metadata(&snapshot).unwrap().is_some(), "crash at {operation}, seed {seed}");
                let cluster_id = second.cluster_id.clone();
                drop(second);
                let third = start(&disk, &[TWO]).unwrap();
                assert!(!third.formatted_now && third.cluster_id == cluster_id, "crash at {operation}, seed {seed}");
            }
        }
    }
}
