//! The catalogue: one row per setting, read once from the tables under `data/`, which were taken from Kafka 4.4's own
//! definitions (`AbstractKafkaConfig`, `LogConfig`, `GroupConfig`, `ClientMetricsConfigs`); `monedula.tsv` holds our own.
//! The texts stay where the program image has them, so a row costs its pointers only.

use std::sync::LazyLock;

use super::rule::Rule;
use super::value::{InvalidValue, Value, ValueType};

/// Whose setting it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigKind {
    /// A node; includes the settings that only we have.
    Broker,
    /// A topic.
    Topic,
    /// A group.
    Group,
    /// A subscription to client metrics.
    ClientMetrics,
}

/// What a setting is when nobody sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// Kafka does not start without it; the loader has a value for a single node.
    Required,
    /// No value.
    Unset,
    /// This text.
    Text(&'static str),
}

/// Whether a broker setting can change while the broker runs (Kafka: DynamicBrokerConfig).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateMode {
    /// Only by a restart.
    ReadOnly,
    /// For one broker, not for all.
    PerBroker,
    /// For one broker or for all.
    ClusterWide,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Kafka's name.
    pub name: &'static str,
    /// Type of its values.
    pub value_type: ValueType,
    /// Value when unset.
    pub default: DefaultValue,
    /// What values are allowed.
    pub rule: Rule,
    /// Kafka does not show it to clients.
    pub internal: bool,
    /// Whether it can change at run time.
    pub update: UpdateMode,
    /// What it does, in one sentence; empty where nothing is written.
    pub documentation: &'static str,
    synonyms: &'static str,
}

impl Setting {
    /// Secrets are never shown (Kafka: values of type PASSWORD).
    pub fn sensitive(&self) -> bool {
        self.value_type == ValueType::Password
    }

    /// Text of the default, if there is one.
    pub fn default_text(&self) -> Option<&'static str> {
        match self.default {
            DefaultValue::Text(text) => Some(text),
            DefaultValue::Required | DefaultValue::Unset => None,
        }
    }

    /// The broker settings that stand in when a topic or group does not set this one, the strongest first, each with the
    /// factor that turns its unit into ours (Kafka: ServerTopicConfigSynonyms).
    pub fn broker_synonyms(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        self.synonyms.split(',').filter_map(|entry| {
            let (name, factor) = entry.split_once('*')?;
            Some((name, factor.parse().ok()?))
        })
    }

    /// Reads `text` as a value of this setting and checks it; the error is Kafka's message.
    pub fn parse(&self, text: &str) -> Result<Value, InvalidValue> {
        let value = Value::parse(self.name, self.value_type, text)?;
        self.rule.check(self.name, &value)?;
        Ok(value)
    }
}

/// All settings of a kind, sorted by name.
pub fn all(kind: ConfigKind) -> &'static [Setting] {
    match kind {
        ConfigKind::Broker => &BROKER,
        ConfigKind::Topic => &TOPIC,
        ConfigKind::Group => &GROUP,
        ConfigKind::ClientMetrics => &CLIENT_METRICS,
    }
}

/// The setting with this name.
pub fn find(kind: ConfigKind, name: &str) -> Option<&'static Setting> {
    let settings = all(kind);
    settings.binary_search_by(|setting| setting.name.cmp(name)).ok().map(|at| &settings[at])
}

/// `listener.name.<listener>.` before a broker setting makes it that of one listener; `None` when there is no such prefix.
pub fn without_listener_prefix(name: &str) -> Option<&str> {
    name.strip_prefix("listener.name.")?.split_once('.').map(|(_, base)| base)
}

static BROKER: LazyLock<Vec<Setting>> =
    LazyLock::new(|| table(&[include_str!("data/broker.tsv"), include_str!("data/monedula.tsv")]));
static TOPIC: LazyLock<Vec<Setting>> = LazyLock::new(|| table(&[include_str!("data/topic.tsv")]));
static GROUP: LazyLock<Vec<Setting>> = LazyLock::new(|| table(&[include_str!("data/group.tsv")]));
static CLIENT_METRICS: LazyLock<Vec<Setting>> = LazyLock::new(|| table(&[include_str!("data/client-metrics.tsv")]));

fn rows(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// A row that cannot be read is left out; a test holds that there is none.
fn table(texts: &[&'static str]) -> Vec<Setting> {
    let mut settings: Vec<Setting> = texts.iter().flat_map(|text| rows(text)).filter_map(read_row).collect();
    settings.sort_unstable_by_key(|setting| setting.name);
    settings.shrink_to_fit();
    settings
}

fn read_row(row: &'static str) -> Option<Setting> {
    let mut columns = row.split('\t');
    let name = columns.next()?;
    let value_type = ValueType::from_name(columns.next()?)?;
    let default = match columns.next()? {
        "(required)" => DefaultValue::Required,
        "(unset)" => DefaultValue::Unset,
        text => DefaultValue::Text(text),
    };
    let rule = Rule::read(columns.next()?)?;
    let _importance = columns.next()?;
    let internal = columns.next()? == "internal";
    let update = match columns.next()? {
        "read-only" => UpdateMode::ReadOnly,
        "per-broker" => UpdateMode::PerBroker,
        "cluster-wide" => UpdateMode::ClusterWide,
        _ => return None,
    };
    let synonyms = columns.next()?;
    Some(Setting { name, value_type, default, rule, internal, update, synonyms, documentation: columns.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_can_be_read() {
        let written = [include_str!("data/broker.tsv"), include_str!("data/monedula.tsv")].iter().flat_map(|t| rows(t));
        assert_eq!(all(ConfigKind::Broker).len(), written.count());
        assert_eq!(all(ConfigKind::Topic).len(), rows(include_str!("data/topic.tsv")).count());
        assert_eq!(all(ConfigKind::Group).len(), rows(include_str!("data/group.tsv")).count());
        assert_eq!(all(ConfigKind::ClientMetrics).len(), 3);
    }

    #[test]
    fn every_setting_is_explained_in_a_sentence() {
        for kind in [ConfigKind::Broker, ConfigKind::Topic, ConfigKind::Group, ConfigKind::ClientMetrics] {
            for setting in all(kind) {
                assert!(setting.documentation.ends_with('.'), "{}: {}", setting.name, setting.documentation);
            }
        }
    }

    #[test]
    fn every_default_is_an_allowed_value() {
        for kind in [ConfigKind::Broker, ConfigKind::Topic, ConfigKind::Group, ConfigKind::ClientMetrics] {
            for setting in all(kind) {
                if let Some(text) = setting.default_text() {
                    assert!(setting.parse(text).is_ok(), "{} = {text}", setting.name);
                }
            }
        }
    }

    #[test]
    fn a_synonym_is_a_broker_setting() {
        for kind in [ConfigKind::Topic, ConfigKind::Group] {
            for (name, factor) in all(kind).iter().flat_map(|s| s.broker_synonyms()) {
                assert!(find(ConfigKind::Broker, name).is_some(), "{name}");
                assert!(factor >= 1);
            }
        }
        let retention: Vec<_> = find(ConfigKind::Topic, "retention.ms").unwrap().broker_synonyms().collect();
        assert_eq!(
            retention,
            [("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)]
        );
    }

    #[test]
    fn a_listener_prefix_is_cut_off() {
        assert_eq!(
            without_listener_prefix("listener.name.internal.ssl.keystore.location"),
            Some("ssl.keystore.location")
        );
        assert_eq!(without_listener_prefix("ssl.keystore.location"), None);
        assert_eq!(without_listener_prefix("listener.name.internal"), None);
    }
}
