//! Small files of a log directory: their text or bytes, and nothing of when they are read or written.

pub mod clean_shutdown;
pub mod epoch_checkpoint;
pub mod meta_properties;
pub mod offset_checkpoint;
pub mod partition_metadata;
mod text;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Largest small file that is read; a larger one is not what its name says.
pub const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Why a small file could not be read.
#[derive(Debug, Error)]
pub enum ReadFileError {
    /// The disk refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// The content is not what it should be.
    #[error("{path} is malformed: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: MalformedFile,
    },
}

/// What is wrong with the content of a small file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MalformedFile {
    /// A line is not of the form it should have.
    #[error("malformed line '{line}'")]
    Line {
        /// The line.
        line: String,
    },
    /// A version that is not known.
    #[error("unknown version {version}, expected {expected}")]
    Version {
        /// What the file said.
        version: String,
        /// What is known.
        expected: i32,
    },
    /// Fewer or more entries than the file says.
    #[error("{expected} entries were announced and {found} are there")]
    Count {
        /// What the file said.
        expected: usize,
        /// What was found.
        found: usize,
    },
    /// A key is missing.
    #[error("key '{key}' is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
}
