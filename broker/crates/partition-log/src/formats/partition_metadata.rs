//! `partition.metadata`: the id of the topic a directory belongs to (Kafka: PartitionMetadataFile).

use std::io;
use std::path::Path;

use base::TopicId;

use super::{MalformedFile, ReadFileError, text};
use crate::disk::{Disk, replace_file};

const VERSION: i32 = 0;

/// The text of the file; Kafka ends it without a newline after the id but writes none to follow.
pub fn encode(topic_id: TopicId) -> String {
    format!("version: {VERSION}\ntopic_id: {topic_id}")
}

/// Reads the text of the file.
pub fn decode(content: &str) -> Result<TopicId, MalformedFile> {
    let value = |key: &'static str| {
        let line = content.lines().find(|line| line.split(':').next() == Some(key));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
            .ok_or(MalformedFile::MissingKey { key })
    };
    let version = value("version")?;
    if version != VERSION.to_string() {
        return Err(MalformedFile::Version { version: version.to_owned(), expected: VERSION });
    }
    let id = value("topic_id")?;
    id.parse().map_err(|_| MalformedFile::Line { line: id.to_owned() })
}

/// Reads the file of a partition's directory; `None` when there is none.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<TopicId>, ReadFileError> {
    text::read(disk, path, decode)
}

/// Replaces the file; a crash leaves the old or the new one.
pub fn write(disk: &dyn Disk, path: &Path, topic_id: TopicId) -> io::Result<()> {
    replace_file(disk, path, encode(topic_id).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kafkas() {
        let id: TopicId = "4L6g3nShT-eMCtK--X86sw".parse().unwrap();
        assert_eq!(encode(id), "version: 0\ntopic_id: 4L6g3nShT-eMCtK--X86sw");
        assert_eq!(decode(&encode(id)), Ok(id));
        assert_eq!(decode("version: 0\n"), Err(MalformedFile::MissingKey { key: "topic_id" }));
    }
}
