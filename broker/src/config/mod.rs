//! Settings of the node, read once at start: defaults, then the file, then `KAFKA_*` variables, then `--override`; the
//! later one wins. Knows the catalogue in `cluster::configs` and no other part of the node.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::NodeId;
use cluster::configs::setting::{find, without_listener_prefix};
use cluster::configs::{ConfigKind, DefaultValue, InvalidValue};

pub mod acted;
pub mod environment;
pub mod file;
pub mod listeners;
pub mod placeholder;
pub mod sections;
pub mod settings;

mod checks;

pub use file::SettingsFile;
pub use listeners::{Listener, Listeners, SecurityProtocol};
pub use sections::{
    CleanerConfig, GroupsConfig, InternalTopicConfig, LogsConfig, MetadataConfig, NetConfig, StorageConfig,
    TopicsConfig, Voter,
};
pub use settings::{Origin, SetValue, Settings};

/// Why the settings cannot be used. Each is one line that names the place.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read as settings.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// `--override` without a value.
    #[error("--override {text}: name=value is expected")]
    Override {
        /// What was given.
        text: String,
    },
    /// A placeholder has no value.
    #[error("{origin}: {name}: {reason}")]
    Placeholder {
        /// Setting.
        name: String,
        /// Who set it.
        origin: Origin,
        /// Which placeholder, and why.
        reason: String,
    },
    /// A value that the setting does not take.
    #[error("{origin}: {invalid}{}", allowed_text(allowed))]
    Value {
        /// Who set it.
        origin: Origin,
        /// Kafka's message, with name and value.
        invalid: InvalidValue,
        /// What is allowed; empty when the message says it.
        allowed: String,
    },
    /// Settings that do not go together.
    #[error("{reason}")]
    Rule {
        /// What is wrong, in Kafka's words where Kafka has the rule.
        reason: String,
    },
}

fn allowed_text(allowed: &str) -> String {
    if allowed.is_empty() { String::new() } else { format!(" (allowed: {allowed})") }
}

/// Something to tell the operator once; the node starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// Nobody knows this name.
    Unknown {
        /// Name.
        name: String,
        /// Who set it.
        origin: Origin,
    },
    /// Kafka has it, and this version does not do what it says.
    NotActedOn {
        /// Name.
        name: String,
        /// Who set it.
        origin: Origin,
    },
    /// One node cannot hold so many replicas of the offsets topic, which Kafka's default for a cluster asks for.
    OffsetsReplication {
        /// `offsets.topic.replication.factor`.
        factor: i16,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::Unknown { name, origin } => write!(f, "{name} ({origin}): no such setting, ignored"),
            Warning::NotActedOn { name, origin } if name == "authorizer.class.name" => {
                write!(f, "{name} ({origin}): accepted, but without effect yet: every client may do everything")
            }
            Warning::OffsetsReplication { factor } => write!(
                f,
                "offsets.topic.replication.factor is {factor}: one node cannot make __consumer_offsets like that, \
                 and without it no group works; set it to 1"
            ),
            Warning::NotActedOn { name, origin } => write!(f, "{name} ({origin}): accepted, but without effect yet"),
        }
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// It holds partitions and serves clients.
    pub broker: bool,
    /// It votes on the metadata.
    pub controller: bool,
}

/// Where settings come from.
pub struct Inputs<'a> {
    /// The settings file, if one is named.
    pub file: Option<SettingsFile>,
    /// Variables of the environment.
    pub environment: Vec<(String, String)>,
    /// `name=value` texts, in order.
    pub overrides: &'a [String],
    /// Reads a file that a placeholder names.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Name of this machine, for listeners without a host.
    pub hostname: &'a str,
}

/// Settings of the node, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// `node.id`.
    pub node_id: NodeId,
    /// `process.roles`.
    pub roles: Roles,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// Where it listens and what it tells clients.
    pub listeners: Listeners,
    /// Directories.
    pub storage: StorageConfig,
    /// Connections and requests.
    pub net: NetConfig,
    /// Making and deleting topics.
    pub topics: TopicsConfig,
    /// Care for the logs.
    pub logs: LogsConfig,
    /// Groups and their offsets.
    pub groups: GroupsConfig,
    /// `__consumer_offsets`.
    pub offsets_topic: InternalTopicConfig,
    /// `__transaction_state`.
    pub transactions_topic: InternalTopicConfig,
    /// The metadata log and the quorum.
    pub metadata: MetadataConfig,
    /// `monedula.http.listen`; `None` when it is empty.
    pub http_listen: Option<String>,
    /// Id for the cluster when the directories are formatted at start (`CLUSTER_ID` of the official image).
    pub cluster_id_wanted: Option<String>,
    /// Everything that was set, as text.
    pub settings: Arc<Settings>,
}

impl Config {
    /// Reads and checks everything. The warnings come in the order of the names.
    pub fn load(inputs: Inputs<'_>) -> Result<(Config, Vec<Warning>), ConfigError> {
        let cluster_id_wanted = variable(&inputs.environment, "CLUSTER_ID").filter(|id| !id.is_empty());
        let mut settings = gather(&inputs)?;
        resolve_placeholders(&mut settings, &inputs)?;
        fill_in(&mut settings, inputs.file.is_some())?;
        check_values(&settings)?;
        let mut warnings = warnings(&settings);
        let config = Config::typed(settings, inputs.hostname, cluster_id_wanted)?;
        checks::check(&config)?;
        let factor = config.offsets_topic.replication_factor;
        if factor > 1 {
            warnings.push(Warning::OffsetsReplication { factor });
        }
        Ok((config, warnings))
    }

    fn typed(settings: Settings, hostname: &str, cluster_id_wanted: Option<String>) -> Result<Config, ConfigError> {
        let layers = settings.layers();
        let roles = settings.list("process.roles");
        let has = |role: &str| roles.iter().any(|named| named == role);
        let roles = Roles { broker: has("broker"), controller: has("controller") };
        let node_id = layers.number("node.id").and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let text = |name: &str| layers.text(name).filter(|text| !text.is_empty());
        Ok(Config {
            node_id: NodeId(node_id),
            roles,
            rack: text("broker.rack"),
            listeners: listeners::read(&settings, roles.broker, hostname)?,
            storage: StorageConfig::read(&settings),
            net: NetConfig::read(layers),
            topics: TopicsConfig::read(layers),
            logs: LogsConfig::read(layers),
            groups: GroupsConfig::read(layers),
            offsets_topic: InternalTopicConfig::offsets(layers),
            transactions_topic: InternalTopicConfig::transactions(layers),
            metadata: MetadataConfig::read(&settings),
            http_listen: text("monedula.http.listen"),
            cluster_id_wanted,
            settings: Arc::new(settings),
        })
    }
}

fn variable(environment: &[(String, String)], name: &str) -> Option<String> {
    environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

fn gather(inputs: &Inputs<'_>) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    if let Some(file) = &inputs.file {
        let origin = Origin::File(Arc::new(file.path.clone()));
        for (name, value) in file.settings()? {
            settings.set(name, value, origin.clone());
        }
    }
    for (name, value) in environment::settings(inputs.environment.iter().cloned()) {
        settings.set(name, value, Origin::Environment);
    }
    for text in inputs.overrides {
        let named = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
        let (name, value) = named.ok_or_else(|| ConfigError::Override { text: text.clone() })?;
        settings.set(name.trim(), value, Origin::Override);
    }
    Ok(settings)
}

fn resolve_placeholders(settings: &mut Settings, inputs: &Inputs<'_>) -> Result<(), ConfigError> {
    let sources = placeholder::Sources { variable: &|name| variable(&inputs.environment, name), read: inputs.read };
    for (name, set) in settings.values_mut() {
        set.value = placeholder::resolve(&set.value, &sources).map_err(|reason| ConfigError::Placeholder {
            name: name.clone(),
            origin: set.origin.clone(),
            reason,
        })?;
    }
    Ok(())
}

/// What a node without a file has: a broker that is its own controller, for this machine only, with one copy of
/// everything. With a file these are Kafka's own defaults, except for what Kafka demands to be set.
const WITHOUT_FILE: [(&str, &str); 7] = [
    ("listeners", "PLAINTEXT://localhost:9092"),
    ("log.dirs", "./data"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
];
const ALWAYS: [(&str, &str); 3] =
    [("node.id", "1"), ("process.roles", "broker,controller"), ("controller.listener.names", "CONTROLLER")];

fn fill_in(settings: &mut Settings, has_file: bool) -> Result<(), ConfigError> {
    match (settings.get("node.id").map(str::to_owned), settings.get("broker.id").filter(|id| id.trim() != "-1")) {
        (None, Some(id)) => {
            let id = id.to_owned();
            settings.set("node.id", id, Origin::BuiltIn);
        }
        (Some(node), Some(broker)) if node.trim() != broker.trim() => {
            return Err(ConfigError::Rule {
                reason:
                    "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, please use \
                         `node.id` instead."
                        .to_owned(),
            });
        }
        _ => {}
    }
    // The official image listens on every interface when only the advertised addresses are given.
    if !settings.is_set("listeners") && settings.is_set("advertised.listeners") {
        let everywhere: Vec<String> =
            settings.list("advertised.listeners").iter().filter_map(|text| listen_everywhere(text)).collect();
        settings.set("listeners", everywhere.join(","), Origin::BuiltIn);
    }
    let more: &[(&str, &str)] = if has_file { &[] } else { &WITHOUT_FILE };
    for (name, value) in ALWAYS.iter().chain(more) {
        let covered = settings.is_set(name) || (*name == "log.dirs" && settings.is_set("log.dir"));
        if !covered {
            settings.set(*name, *value, Origin::BuiltIn);
        }
    }
    // Tools ask for either name (Kafka: AbstractKafkaConfig.populateSynonyms).
    if let Some(id) = settings.get("node.id").map(str::to_owned)
        && settings.get("broker.id").is_none_or(|set| set.trim() == "-1")
    {
        settings.set("broker.id", id, Origin::BuiltIn);
    }
    Ok(())
}

fn listen_everywhere(advertised: &str) -> Option<String> {
    let (name, address) = advertised.split_once("://")?;
    let (_, port) = address.rsplit_once(':')?;
    Some(format!("{name}://:{port}"))
}

fn check_values(settings: &Settings) -> Result<(), ConfigError> {
    // What was filled in comes from what somebody set, and the message is to name that.
    for (name, set) in settings.iter().filter(|(_, set)| set.origin != Origin::BuiltIn) {
        if let Some(setting) = find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name)) {
            setting.parse(&set.value).map_err(|invalid| {
                let allowed = setting.rule.allowed();
                let origin = set.origin.clone();
                ConfigError::Value { origin, invalid, allowed }
            })?;
        }
    }
    Ok(())
}

fn warnings(settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (name, set) in settings.iter().filter(|(_, set)| set.origin != Origin::BuiltIn) {
        let (name, origin) = (name.to_owned(), set.origin.clone());
        match find(ConfigKind::Broker, without_listener_prefix(&name).unwrap_or(&name)) {
            None => warnings.push(Warning::Unknown { name, origin }),
            Some(setting) if acted::is_acted_on(setting.name) => {}
            // Saying what is the case anyway needs no warning.
            Some(setting) if setting.default == DefaultValue::Text("") && set.value.trim().is_empty() => {}
            Some(setting) if setting.default_text().is_some_and(|text| text == set.value.trim()) => {}
            Some(_) => warnings.push(Warning::NotActedOn { name, origin }),
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
