//! The four checkpoint files of a log directory, which hold one offset per partition: recovery point, high watermark,
//! log start and cleaner (Kafka: OffsetCheckpointFile; lines are `topic partition offset`).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use base::{Offset, TopicPartition};

use super::{MalformedFile, ReadFileError, text};
use crate::disk::{Disk, replace_file};

const VERSION: i32 = 0;

/// Offsets by partition.
pub type Offsets = BTreeMap<TopicPartition, Offset>;

/// The text of a checkpoint.
pub fn encode(offsets: &Offsets) -> String {
    let line = |(partition, offset): (&TopicPartition, &Offset)| {
        format!("{} {} {offset}", partition.topic, partition.partition)
    };
    text::encode(VERSION, offsets.iter().map(line))
}

/// Reads the text of a checkpoint.
pub fn decode(content: &str) -> Result<Offsets, MalformedFile> {
    let entries = text::decode(content, VERSION, |line| {
        let mut words = line.split_whitespace();
        let entry = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then(|| (TopicPartition::new(entry.0, entry.1), entry.2))
    })?;
    Ok(entries.into_iter().collect())
}

/// Reads a checkpoint file; one that is missing holds nothing.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Offsets, ReadFileError> {
    Ok(text::read(disk, path, decode)?.unwrap_or_default())
}

/// Replaces a checkpoint file; a crash leaves the old or the new one.
pub fn write(disk: &dyn Disk, path: &Path, offsets: &Offsets) -> io::Result<()> {
    replace_file(disk, path, encode(offsets).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kafkas() {
        let offsets = Offsets::from([(TopicPartition::new("a", 1), 7), (TopicPartition::new("a", 0), 5)]);
        assert_eq!(encode(&offsets), "0\n2\na 0 5\na 1 7\n");
        assert_eq!(decode(&encode(&offsets)), Ok(offsets));
    }

    #[test]
    fn another_count_version_or_line_is_refused() {
        assert_eq!(decode("0\n2\na 0 5\n"), Err(MalformedFile::Count { expected: 2, found: 1 }));
        assert_eq!(decode("1\n0\n"), Err(MalformedFile::Version { version: "1".into(), expected: 0 }));
        assert_eq!(decode("0\n1\na 0\n"), Err(MalformedFile::Line { line: "a 0".into() }));
        assert_eq!(decode("\n"), Err(MalformedFile::Version { version: String::new(), expected: 0 }));
        assert_eq!(decode(""), Ok(Offsets::new()));
    }
}
