//! What the data directories are, for `storage info` (Kafka: StorageTool.infoCommand).

use std::fmt::Write;
use std::path::PathBuf;

use partition_log::disk::Disk;
use partition_log::formats::meta_properties::{self, MetaProperties};

use super::directories::verify;
use super::{META_PROPERTIES, StorageError, unusable};
use crate::config::Config;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Directories that are there.
    pub directories: Vec<PathBuf>,
    /// Whose they are, if one is formatted.
    pub meta: Option<MetaProperties>,
    /// What is wrong; a node would not start.
    pub problems: Vec<String>,
}

/// Looks at every directory of the settings and changes nothing.
pub fn info(disk: &dyn Disk, config: &Config) -> Result<Info, StorageError> {
    let (mut directories, mut problems, mut metas) = (Vec::new(), Vec::new(), Vec::new());
    for path in config.storage.all_dirs() {
        match disk.metadata(&path).map_err(unusable(&path))? {
            None => problems.push(format!("{} does not exist", path.display())),
            Some(found) if !found.is_dir => problems.push(format!("{} is not a directory", path.display())),
            Some(_) => {
                match meta_properties::read(disk, &path.join(META_PROPERTIES)) {
                    Ok(None) => problems.push(format!("{} is not formatted.", path.display())),
                    Ok(Some(meta)) => metas.push((path.clone(), meta)),
                    Err(error) => problems.push(error.to_string()),
                }
                directories.push(path);
            }
        }
    }
    let checked = verify(metas.iter().map(|(path, meta)| (path.as_path(), Some(meta))), config.node_id);
    problems.extend(checked.err().map(|error| error.to_string()));
    Ok(Info { directories, meta: metas.into_iter().next().map(|(_, meta)| meta), problems })
}

impl Info {
    /// As `kafka-storage info` prints it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut list = |one: &str, many: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                let title = if lines.len() == 1 { one } else { many };
                let _ = writeln!(text, "Found {title}:\n  {}\n", lines.join("\n  "));
            }
        };
        let directories = self.directories.iter().map(|path| path.display().to_string()).collect();
        list("log directory", "log directories", directories);
        list("problem", "problems", self.problems.clone());
        if let Some(meta) = &self.meta {
            let id = meta.directory_id.map(|id| format!(", directory.id={id}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "Found metadata: {{cluster.id={}{id}, node.id={}, version=1}}\n",
                meta.cluster_id, meta.node_id
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use base::TopicId;

    use super::*;

    #[test]
    fn the_report_reads_as_kafkas() {
        let meta = MetaProperties {
            cluster_id: "AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
            node_id: base::NodeId(1),
            directory_id: Some(TopicId::ZERO),
        };
        let info = Info { directories: vec!["/a".into(), "/b".into()], meta: Some(meta), problems: Vec::new() };
        assert_eq!(
            info.text(),
            "Found log directories:\n  /a\n  /b\n\nFound metadata: {cluster.id=AAAAAAAAAAAAAAAAAAAAAA, \
             directory.id=AAAAAAAAAAAAAAAAAAAAAA, node.id=1, version=1}\n\n"
        );
        let info =
            Info { directories: vec!["/a".into()], meta: None, problems: vec!["/a is not formatted.".to_owned()] };
        assert_eq!(info.text(), "Found log directory:\n  /a\n\nFound problem:\n  /a is not formatted.\n\n");
    }
}
