//! `meta.properties`: to which cluster and node a log directory belongs (Kafka: MetaProperties, version 1).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use base::{NodeId, TopicId};

use super::{MalformedFile, ReadFileError, text};
use crate::disk::{Disk, replace_file};

const VERSION: i32 = 1;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// Id of the cluster, as text: clusters that came from ZooKeeper may have any.
    pub cluster_id: String,
    /// Id of the node.
    pub node_id: NodeId,
    /// Id of the directory (KIP-858); absent in directories that Kafka before 3.7 formatted.
    pub directory_id: Option<TopicId>,
}

/// The text of the file.
pub fn encode(properties: &MetaProperties) -> String {
    let mut text = format!("cluster.id={}\n", escape(&properties.cluster_id));
    if let Some(directory_id) = properties.directory_id {
        text.push_str(&format!("directory.id={directory_id}\n"));
    }
    text.push_str(&format!("node.id={}\nversion={VERSION}\n", properties.node_id));
    text
}

/// Reads the text of the file: the subset of Java's properties format that Kafka's writer makes.
pub fn decode(content: &str) -> Result<MetaProperties, MalformedFile> {
    let mut values = BTreeMap::new();
    for line in content.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with(['#', '!'])) {
        let (key, value) = line.split_once(['=', ':']).ok_or_else(|| MalformedFile::Line { line: line.to_owned() })?;
        values.insert(key.trim(), unescape(value.trim()));
    }
    let value = |key: &'static str| values.get(key).ok_or(MalformedFile::MissingKey { key });
    let version = value("version")?;
    if version != &VERSION.to_string() {
        return Err(MalformedFile::Version { version: version.clone(), expected: VERSION });
    }
    let malformed = |key: &str, value: &str| MalformedFile::Line { line: format!("{key}={value}") };
    let node_id = value("node.id")?;
    let directory_id = match values.get("directory.id") {
        Some(id) => Some(id.parse().map_err(|_| malformed("directory.id", id))?),
        None => None,
    };
    Ok(MetaProperties {
        cluster_id: value("cluster.id")?.clone(),
        node_id: NodeId(node_id.parse().map_err(|_| malformed("node.id", node_id))?),
        directory_id,
    })
}

/// Reads the file of a log directory; `None` when it is not formatted.
pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<MetaProperties>, ReadFileError> {
    text::read(disk, path, decode)
}

/// Replaces the file; a crash leaves the old or the new one.
pub fn write(disk: &dyn Disk, path: &Path, properties: &MetaProperties) -> io::Result<()> {
    replace_file(disk, path, encode(properties).as_bytes())
}

fn escape(value: &str) -> String {
    value.chars().fold(String::new(), |mut text, c| {
        if matches!(c, '\\' | '=' | ':' | '#' | '!') {
            text.push('\\');
        }
        text.push(c);
        text
    })
}

fn unescape(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kafkas() {
        let written = "#\n#Mon Nov 30 23:00:00 UTC 2026\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n\
                       directory.id=4L6g3nShT-eMCtK--X86sw\nnode.id=1\nversion=1\n";
        let properties = decode(written).unwrap();
        assert_eq!(properties.node_id, NodeId(1));
        assert_eq!(decode(&encode(&properties)), Ok(properties));
    }

    #[test]
    fn a_missing_key_or_another_version_is_refused() {
        assert_eq!(decode("version=1\nnode.id=1\n"), Err(MalformedFile::MissingKey { key: "cluster.id" }));
        assert!(matches!(decode("version=0\n"), Err(MalformedFile::Version { .. })));
        assert!(decode("version=1\nnode.id=x\ncluster.id=a\n").is_err());
    }
}
