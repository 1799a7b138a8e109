//! `leader-epoch-checkpoint`: the first offset of every leader epoch of a partition (Kafka: LeaderEpochCheckpointFile).

use std::io;
use std::path::Path;

use base::{LeaderEpoch, Offset};

use super::{MalformedFile, ReadFileError, text};
use crate::disk::{Disk, replace_file};

const VERSION: i32 = 0;

/// A leader epoch and the offset of its first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Offset of the first record that a leader of this epoch appended, or would have.
    pub start_offset: Offset,
}

/// The text of a checkpoint.
pub fn encode(entries: &[EpochEntry]) -> String {
    text::encode(VERSION, entries.iter().map(|entry| format!("{} {}", entry.epoch, entry.start_offset)))
}

/// Reads the text of a checkpoint.
pub fn decode(content: &str) -> Result<Vec<EpochEntry>, MalformedFile> {
    text::decode(content, VERSION, |line| {
        let (epoch, start_offset) = line.trim().split_once(' ')?;
        Some(EpochEntry { epoch: epoch.parse().ok()?, start_offset: start_offset.parse().ok()? })
    })
}

/// Reads a checkpoint file; one that is missing holds nothing.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Vec<EpochEntry>, ReadFileError> {
    Ok(text::read(disk, path, decode)?.unwrap_or_default())
}

/// Replaces a checkpoint file; a crash leaves the old or the new one.
pub fn write(disk: &dyn Disk, path: &Path, entries: &[EpochEntry]) -> io::Result<()> {
    replace_file(disk, path, encode(entries).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kafkas() {
        let entries = [EpochEntry { epoch: 0, start_offset: 0 }, EpochEntry { epoch: 3, start_offset: 120 }];
        assert_eq!(encode(&entries), "0\n2\n0 0\n3 120\n");
        assert_eq!(decode("0\n2\n0 0\n3 120\n").as_deref(), Ok(&entries[..]));
        assert!(decode("0\n1\n0\n").is_err());
    }
}
