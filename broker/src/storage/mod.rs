//! The data directories as a whole: whose they are, making them ready, holding them. What lies in them belongs to the
//! partitions and to the controller. All files are reached through `partition_log::Disk`.

mod bootstrap;
pub mod directories;
pub mod format;
pub mod info;

use std::io;
use std::path::{Path, PathBuf};

use base::NodeId;
use cluster::DirectoryId;
use partition_log::formats::ReadFileError;

pub use directories::{LogDirectory, Storage, open};
pub use format::{FormatOptions, Formatted, format};

/// Name of the file that says whose a directory is.
pub const META_PROPERTIES: &str = "meta.properties";
/// Name of the file that a running node locks.
pub const LOCK: &str = ".lock";
/// Directory of the metadata log.
pub const METADATA_PARTITION: &str = "__cluster_metadata-0";

/// Why the data directories cannot be used. Each is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the lock.
    #[error("{} is in use by another node (its .lock is held); stop that node or set log.dirs to another directory", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The disk refused.
    #[error("cannot use {}: {source}; make it a directory that this user may write, or set log.dirs to another one", path.display())]
    Unusable {
        /// The directory or file.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// `meta.properties` cannot be read.
    #[error("{source}; restore the file from a backup, or remove the directory if its data is not needed")]
    Meta {
        /// What is wrong with it.
        #[from]
        source: ReadFileError,
    },
    /// No directory is formatted and this node may not do it by itself.
    #[error("{} is not formatted; run `monedula storage format`", path.display())]
    NotFormatted {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with data of somebody.
    #[error(
        "{} is not formatted but holds {found}; restore its meta.properties, or set log.dirs to an empty directory",
        path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// The first thing found.
        found: String,
    },
    /// Of another cluster.
    #[error(
        "Invalid cluster.id in: {}. Expected {expected}, but read {found}; the directory belongs to another cluster",
        path.join(META_PROPERTIES).display()
    )]
    ForeignCluster {
        /// The directory.
        path: PathBuf,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Of another node.
    #[error(
        "Invalid node.id in: {}. Expected {expected}, but read {found}; set node.id={found} or log.dirs to another directory",
        path.join(META_PROPERTIES).display()
    )]
    ForeignNode {
        /// The directory.
        path: PathBuf,
        /// `node.id`.
        expected: NodeId,
        /// What it is.
        found: NodeId,
    },
    /// Two directories with one id.
    #[error("{} and {} both have directory.id {id}; one is a copy of the other: take one out of log.dirs", first.display(), second.display())]
    DuplicateDirectoryId {
        /// One.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// Their id.
        id: DirectoryId,
    },
    /// An id that Kafka keeps for itself.
    #[error("Invalid directory.id in: {}: {id} is reserved", path.join(META_PROPERTIES).display())]
    ReservedDirectoryId {
        /// The directory.
        path: PathBuf,
        /// Its id.
        id: DirectoryId,
    },
    /// Formatting a directory that is formatted.
    #[error(
        "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format the others.",
        path.display()
    )]
    AlreadyFormatted {
        /// The directory.
        path: PathBuf,
    },
    /// The bootstrap snapshot cannot be made.
    #[error("cannot make the first metadata snapshot: {0}")]
    Bootstrap(#[from] record_batch::BuildError),
    /// A feature that this version does not have.
    #[error("Unsupported feature: {name}. Supported features are: {supported}")]
    UnknownFeature {
        /// What was asked for.
        name: String,
        /// What there is.
        supported: String,
    },
    /// A level that this version does not have.
    #[error("{name} cannot be {level}: this version works at {min} to {max}")]
    FeatureLevel {
        /// Feature.
        name: &'static str,
        /// What was asked for.
        level: i16,
        /// Lowest.
        min: i16,
        /// Highest.
        max: i16,
    },
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> StorageError + '_ {
    move |source| StorageError::Unusable { path: path.to_owned(), source }
}

/// Ids with which Kafka says "unassigned", "lost" and "migrating", and the first hundred, are no directory's
/// (Kafka: DirectoryId.reserved).
fn is_reserved(id: &DirectoryId) -> bool {
    id.0.as_u128() < 100
}
