//! The frame that Kafka's checkpoint files share: a version, a count, and one entry a line (Kafka: CheckpointFile).

use std::path::Path;

use super::{MalformedFile, ReadFileError, SMALL_FILE_BYTES_MAX};
use crate::disk::{Disk, read_file};

pub(super) fn encode(version: i32, lines: impl ExactSizeIterator<Item = String>) -> String {
    let mut text = format!("{version}\n{}\n", lines.len());
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

pub(super) fn decode<T>(text: &str, version: i32, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, MalformedFile> {
    if text.is_empty() {
        // Kafka makes its checkpoints empty at first.
        return Ok(Vec::new());
    }
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if first.trim() != version.to_string() {
        return Err(MalformedFile::Version { version: first.to_owned(), expected: version });
    }
    let count = lines.next().unwrap_or_default();
    let expected: usize = count.trim().parse().map_err(|_| MalformedFile::Line { line: count.to_owned() })?;
    let entries = lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| parse(line).ok_or_else(|| MalformedFile::Line { line: line.to_owned() }))
        .collect::<Result<Vec<T>, MalformedFile>>()?;
    if entries.len() == expected { Ok(entries) } else { Err(MalformedFile::Count { expected, found: entries.len() }) }
}

/// Reads a file and decodes its text; `None` when there is no such file.
pub(super) fn read<T>(
    disk: &dyn Disk,
    path: &Path,
    decode: impl Fn(&str) -> Result<T, MalformedFile>,
) -> Result<Option<T>, ReadFileError> {
    let content = match read_file(disk, path, SMALL_FILE_BYTES_MAX) {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ReadFileError::Io { path: path.to_path_buf(), source }),
    };
    let decoded = decode(&String::from_utf8_lossy(&content));
    decoded.map(Some).map_err(|source| ReadFileError::Malformed { path: path.to_path_buf(), source })
}
