//! A settings file as names and texts: YAML whose nested maps join with dots, or Java properties. Scalars are taken as
//! they are written: YAML's own reading would turn `0123`, `1e3` or `on` into something else.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_yaml::Value;

use super::ConfigError;

/// Largest settings file read, in bytes.
pub const SETTINGS_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Deepest nesting of maps in a settings file.
const NESTING_MAX: usize = 32;

/// A settings file that was read.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds; properties are in ISO 8859-1, as Java has it.
    pub content: Vec<u8>,
}

impl SettingsFile {
    /// Names and values.
    pub fn settings(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        if is_properties(&self.path, &self.content) { self.properties() } else { self.yaml() }
    }

    fn refused(&self, reason: impl fmt::Display) -> ConfigError {
        ConfigError::File { path: self.path.clone(), reason: reason.to_string() }
    }

    fn properties(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut settings = BTreeMap::new();
        java_properties::PropertiesIter::new(self.content.as_slice())
            .read_into(|name, value| {
                settings.insert(name, value);
            })
            .map_err(|error| self.refused(error))?;
        Ok(settings)
    }

    fn yaml(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let text = std::str::from_utf8(&self.content).map_err(|error| self.refused(error))?;
        let shape: Value = serde_yaml::from_str(text).map_err(|error| self.refused(error))?;
        if shape.is_null() {
            return Ok(BTreeMap::new());
        }
        if !shape.is_mapping() {
            return Err(self.refused("names with values are expected, such as `num.partitions: 1`"));
        }
        // The first reading tells maps, lists and scalars apart; the second takes the scalars as text.
        let tree = Guided(&shape, 0)
            .deserialize(serde_yaml::Deserializer::from_str(text))
            .map_err(|error| self.refused(error))?;
        let mut settings = BTreeMap::new();
        flatten(String::new(), tree, &mut settings).map_err(|reason| self.refused(reason))?;
        Ok(settings)
    }
}

/// By the ending of the name, or by the first line that says something.
fn is_properties(path: &Path, content: &[u8]) -> bool {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("properties") => return true,
        Some("yaml" | "yml") => return false,
        _ => {}
    }
    let text = String::from_utf8_lossy(content);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    first.and_then(|line| line.split_once('=')).is_some_and(|(name, _)| {
        let name = name.trim();
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    })
}

enum Tree {
    Nothing,
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

fn flatten(prefix: String, tree: Tree, settings: &mut BTreeMap<String, String>) -> Result<(), String> {
    let value = match tree {
        Tree::Nothing => return Ok(()),
        Tree::Text(text) => text,
        Tree::List(entries) => {
            let texts: Option<Vec<String>> = entries
                .into_iter()
                .map(|entry| match entry {
                    Tree::Text(text) => Some(text),
                    Tree::Nothing | Tree::List(_) | Tree::Map(_) => None,
                })
                .collect();
            texts.ok_or_else(|| format!("{prefix}: a list may hold plain values only"))?.join(",")
        }
        Tree::Map(entries) => {
            for (name, below) in entries {
                let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                flatten(name, below, settings)?;
            }
            return Ok(());
        }
    };
    match settings.insert(prefix.clone(), value) {
        Some(_) => Err(format!("{prefix} is set twice")),
        None => Ok(()),
    }
}

/// Reads a YAML node whose shape is known; the number is its depth.
#[derive(Clone, Copy)]
struct Guided<'a>(&'a Value, usize);

impl<'de> DeserializeSeed<'de> for Guided<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        if self.1 > NESTING_MAX {
            return Err(serde::de::Error::custom(format!("maps are nested more than {NESTING_MAX} deep")));
        }
        match self.0 {
            Value::Null => IgnoredAny::deserialize(deserializer).map(|_| Tree::Nothing),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => String::deserialize(deserializer).map(Tree::Text),
            Value::Sequence(_) => deserializer.deserialize_seq(self),
            Value::Mapping(_) => deserializer.deserialize_map(self),
            Value::Tagged(_) => Err(serde::de::Error::custom("tags are not used in settings")),
        }
    }
}

impl<'de> Visitor<'de> for Guided<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        for shape in self.0.as_sequence().into_iter().flatten() {
            match access.next_element_seed(Guided(shape, self.1 + 1))? {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
        Ok(Tree::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        for (_, shape) in self.0.as_mapping().into_iter().flatten() {
            let Some(name) = access.next_key::<String>()? else { break };
            entries.push((name, access.next_value_seed(Guided(shape, self.1 + 1))?));
        }
        Ok(Tree::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, content: &str) -> Result<BTreeMap<String, String>, ConfigError> {
        SettingsFile { path: PathBuf::from(name), content: content.as_bytes().to_vec() }.settings()
    }

    fn pairs(name: &str, content: &str) -> Vec<(String, String)> {
        read(name, content).unwrap().into_iter().collect()
    }

    fn expected(entries: &[(&str, &str)]) -> Vec<(String, String)> {
        entries.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    #[test]
    fn nested_maps_and_dotted_keys_are_the_same() {
        let nested = "log:\n  dirs: /a\n  retention: {hours: 5, check.interval.ms: 7}\n";
        let dotted = "log.dirs: /a\nlog.retention.hours: 5\nlog.retention.check.interval.ms: 7\n";
        assert_eq!(pairs("a.yaml", nested), pairs("a.yaml", dotted));
        assert_eq!(pairs("a.yaml", dotted).len(), 3);
    }

    #[test]
    fn scalars_are_taken_as_they_are_written_and_lists_join() {
        let text = "a: 0123\nb: 1e3\nc: on\nd: True\ne: 1.50\nf: [broker, controller]\ng: \"x: y\"\nh:\ni: ''\nj: 0x10\nk: 9223372036854775808\n";
        let wanted = [
            ("a", "0123"),
            ("b", "1e3"),
            ("c", "on"),
            ("d", "True"),
            ("e", "1.50"),
            ("f", "broker,controller"),
            ("g", "x: y"),
            ("i", ""),
            ("j", "0x10"),
            ("k", "9223372036854775808"),
        ];
        assert_eq!(pairs("a.yml", text), expected(&wanted));
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        let text = "# comment\nlog.dirs = /a\\\n  ,/b\nlisteners=PLAINTEXT://:9092\nname: x\\u0041\n! other\nempty=\n";
        let wanted = [("empty", ""), ("listeners", "PLAINTEXT://:9092"), ("log.dirs", "/a,/b"), ("name", "xA")];
        assert_eq!(pairs("server.properties", text), expected(&wanted));
    }

    #[test]
    fn without_an_ending_the_first_line_decides() {
        assert_eq!(pairs("server.conf", "# x\n\nnode.id=1\n"), expected(&[("node.id", "1")]));
        assert_eq!(pairs("server.conf", "# x\nnode.id: 1\n"), expected(&[("node.id", "1")]));
    }

    #[test]
    fn what_cannot_be_settings_is_refused_with_the_file() {
        for text in ["a: [[1]]", "- a", "a: {b: 1}\na.b: 2", "a: 1\na: 2", "a: [", "just text", "a: !tag x"] {
            let error = read("broken.yaml", text).unwrap_err().to_string();
            assert!(error.starts_with("broken.yaml: "), "{text}: {error}");
        }
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(pairs("a.yaml", ""), []);
        assert_eq!(pairs("a.properties", "# nothing\n"), []);
    }
}
