//! What was set at the start, and by whom.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cluster::configs::setting::{find, without_listener_prefix};
use cluster::configs::{BrokerLayers, ConfigKind, Lookup};

/// Who set a value. The later ones win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// This program, for a node that is started without saying much.
    BuiltIn,
    /// The settings file.
    File(Arc<PathBuf>),
    /// A `KAFKA_*` variable.
    Environment,
    /// `--override`.
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built in"),
            Origin::File(path) => path.display().fmt(f),
            Origin::Environment => f.write_str("environment"),
            Origin::Override => f.write_str("--override"),
        }
    }
}

/// A value and who set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetValue {
    /// As it was written, placeholders replaced.
    pub value: String,
    /// Who set it.
    pub origin: Origin,
}

/// All that was set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, SetValue>,
}

impl Settings {
    /// Sets a value; a later call for the same name wins.
    pub(super) fn set(&mut self, name: impl Into<String>, value: impl Into<String>, origin: Origin) {
        self.values.insert(name.into(), SetValue { value: value.into(), origin });
    }

    /// Every name that was set, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SetValue)> {
        self.values.iter().map(|(name, set)| (name.as_str(), set))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = (&String, &mut SetValue)> {
        self.values.iter_mut()
    }

    /// Whether somebody set it.
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// What was set, or the default of the catalogue.
    pub fn get(&self, name: &str) -> Option<&str> {
        let set = self.values.get(name).map(|set| set.value.as_str());
        set.or_else(|| find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name))?.default_text())
    }

    /// Entries of a list that was set, or of its default.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.layers().list(name)
    }

    /// These settings as the only layer.
    pub fn layers(&self) -> BrokerLayers<'_> {
        BrokerLayers::at_start(self)
    }
}

impl Lookup for Settings {
    fn lookup(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|set| set.value.as_str())
    }

    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a str)) {
        self.values.iter().for_each(|(name, set)| visit(name, &set.value));
    }
}
