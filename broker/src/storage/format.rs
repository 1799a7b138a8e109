//! Formatting data directories (Kafka: `kafka-storage format`, Formatter).

use std::path::{Path, PathBuf};

use base::{Clock, Entropy, NodeId, TimestampMs, TopicId};
use cluster::DirectoryId;
use cluster::controller::SUPPORTED_FEATURES;
use partition_log::disk::{Disk, replace_file};
use partition_log::formats::meta_properties::{self, MetaProperties};

use super::directories::{lock, verify};
use super::{META_PROPERTIES, METADATA_PARTITION, StorageError, bootstrap, is_reserved, unusable};
use crate::config::Config;

/// What `storage format` was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatOptions {
    /// `--cluster-id`.
    pub cluster_id: String,
    /// `--ignore-formatted`.
    pub ignore_formatted: bool,
    /// Levels that differ from the highest.
    pub features: Vec<(String, i16)>,
    /// Id for the directory of the metadata log, when `--initial-controllers` names it.
    pub metadata_directory_id: Option<DirectoryId>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// Directories that are formatted now and were not before; empty when all were.
    pub directories: Vec<PathBuf>,
    /// Levels at which the cluster begins.
    pub features: Vec<(&'static str, i16)>,
}

/// Formats every directory of the settings that is not formatted yet. A running node holds its directories, so it is
/// never formatted under it.
pub fn format(
    disk: &dyn Disk,
    config: &Config,
    options: &FormatOptions,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<Formatted, StorageError> {
    let features = levels(&options.features)?;
    let mut found = Vec::new();
    for path in config.storage.all_dirs() {
        let lock = lock(disk, &path)?;
        let meta = meta_properties::read(disk, &path.join(META_PROPERTIES))?;
        if meta.is_some() && !options.ignore_formatted {
            return Err(StorageError::AlreadyFormatted { path });
        }
        if let Some(meta) = meta.as_ref().filter(|meta| meta.cluster_id != options.cluster_id) {
            let (expected, found) = (options.cluster_id.clone(), meta.cluster_id.clone());
            return Err(StorageError::ForeignCluster { path, expected, found });
        }
        found.push((path, lock, meta));
    }
    verify(found.iter().map(|(path, _, meta)| (path.as_path(), meta.as_ref())), config.node_id)?;
    let mut directories = Vec::new();
    for (path, _, _) in found.iter().filter(|(_, _, meta)| meta.is_none()) {
        let mut id = new_directory_id(entropy);
        if *path == config.storage.metadata_log_dir {
            id = options.metadata_directory_id.unwrap_or(id);
            write_bootstrap(disk, path, &features, clock.wall_ms())?;
        }
        write_meta(disk, path, &options.cluster_id, config.node_id, id)?;
        directories.push(path.clone());
    }
    Ok(Formatted { directories, features })
}

/// The level of this feature is the quorum's, in the raft log, and not among the metadata.
const KRAFT_VERSION: &str = "kraft.version";

/// The highest level of every feature.
pub(super) fn default_features() -> Vec<(&'static str, i16)> {
    let features = SUPPORTED_FEATURES.iter().filter(|feature| feature.name != KRAFT_VERSION);
    features.map(|feature| (feature.name, feature.max)).collect()
}

fn levels(asked: &[(String, i16)]) -> Result<Vec<(&'static str, i16)>, StorageError> {
    let mut levels = default_features();
    for (name, level) in asked {
        let Some(feature) = SUPPORTED_FEATURES.iter().find(|feature| feature.name == name) else {
            let supported = SUPPORTED_FEATURES.iter().map(|feature| feature.name).collect::<Vec<_>>().join(", ");
            return Err(StorageError::UnknownFeature { name: name.clone(), supported });
        };
        if !(feature.min..=feature.max).contains(level) {
            let (min, max) = (feature.min, feature.max);
            return Err(StorageError::FeatureLevel { name: feature.name, level: *level, min, max });
        }
        levels.iter_mut().filter(|(known, _)| known == name).for_each(|entry| entry.1 = *level);
    }
    // Level 0 is that of a feature which is not there.
    levels.retain(|(_, level)| *level > 0);
    Ok(levels)
}

/// The snapshot comes before `meta.properties`: a directory that counts as formatted has both.
pub(super) fn write_bootstrap(
    disk: &dyn Disk,
    path: &Path,
    features: &[(&str, i16)],
    now_ms: TimestampMs,
) -> Result<(), StorageError> {
    let directory = path.join(METADATA_PARTITION);
    disk.create_dir(&directory).map_err(unusable(&directory))?;
    let content = bootstrap::snapshot(features, now_ms)?;
    replace_file(disk, &directory.join(bootstrap::file_name()), &content).map_err(unusable(&directory))?;
    disk.sync_dir(path).map_err(unusable(path))
}

/// An id for a directory.
pub(super) fn new_directory_id(entropy: &dyn Entropy) -> DirectoryId {
    loop {
        let id = TopicId(entropy.uuid());
        if !is_reserved(&id) {
            return id;
        }
    }
}

/// Writes whose the directory is.
pub(super) fn write_meta(
    disk: &dyn Disk,
    path: &Path,
    cluster_id: &str,
    node_id: NodeId,
    id: DirectoryId,
) -> Result<(), StorageError> {
    let properties = MetaProperties { cluster_id: cluster_id.to_owned(), node_id, directory_id: Some(id) };
    meta_properties::write(disk, &path.join(META_PROPERTIES), &properties).map_err(unusable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_that_this_version_has_are_taken() {
        let asked = |name: &str, level| levels(&[(name.to_owned(), level)]).map_err(|error| error.to_string());
        assert_eq!(asked("metadata.version", 33), Ok(default_features()));
        assert_eq!(asked("kraft.version", 1), Ok(default_features()));
        assert!(asked("group.version", 0).unwrap().iter().all(|(name, _)| *name != "group.version"));
        assert_eq!(
            asked("metadata.version", 34),
            Err("metadata.version cannot be 34: this version works at 7 to 33".to_owned())
        );
        assert!(
            asked("foo", 1)
                .unwrap_err()
                .starts_with("Unsupported feature: foo. Supported features are: metadata.version")
        );
    }
}
