//! What DescribeConfigs shows: every setting with its value, its source and the layers behind it
//! (Kafka: ConfigHelper.createTopicConfigEntry, createBrokerConfigEntry, createGroupConfigEntry).

use super::layers::{BrokerLayers, Lookup};
use super::setting::{ConfigKind, Setting, all, find, without_listener_prefix};
use super::value::{Value, ValueType};
use super::{broker, group, topic};

/// Where a value comes from, with Kafka's number for it (DescribeConfigsResponse.ConfigSource).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// The topic.
    Topic,
    /// One broker, at run time.
    DynamicBroker,
    /// All brokers, at run time.
    DynamicDefaultBroker,
    /// The start of the broker.
    StaticBroker,
    /// Nobody.
    Default,
    /// A subscription to client metrics.
    ClientMetrics,
    /// The group.
    Group,
}

impl ConfigSource {
    /// Number on the wire.
    pub fn wire_id(self) -> i8 {
        match self {
            ConfigSource::Topic => 1,
            ConfigSource::DynamicBroker => 2,
            ConfigSource::DynamicDefaultBroker => 3,
            ConfigSource::StaticBroker => 4,
            ConfigSource::Default => 5,
            ConfigSource::ClientMetrics => 7,
            ConfigSource::Group => 8,
        }
    }
}

/// A layer behind a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    /// Name in that layer.
    pub name: String,
    /// Value there; `None` for a secret.
    pub value: Option<String>,
    /// The layer.
    pub source: ConfigSource,
}

/// One setting as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedEntry {
    /// Setting.
    pub name: String,
    /// Effective value; `None` when unset or secret.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
    /// Whether it is a secret.
    pub sensitive: bool,
    /// Whether it can only change with a restart.
    pub read_only: bool,
    /// The layers, the strongest first.
    pub synonyms: Vec<Synonym>,
    /// Type; `None` for a name that nobody knows.
    pub value_type: Option<ValueType>,
    /// What it does; `None` for a name that nobody knows.
    pub documentation: Option<&'static str>,
}

/// Which settings were asked for; none named means all.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a>(pub &'a [String]);

impl Wanted<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == name)
    }
}

/// The settings of a topic.
pub fn topic(wanted: Wanted<'_>, overrides: &dyn Lookup, layers: &BrokerLayers<'_>) -> Vec<DescribedEntry> {
    let settings = topic::visible().filter(|setting| wanted.has(setting.name));
    settings
        .map(|setting| {
            let value = topic::effective_value(setting, overrides, layers);
            let synonym = setting.broker_synonyms().next();
            let layers = synonym.map(|(name, _)| broker_synonyms(name, layers, false)).unwrap_or_default();
            of_resource(setting, value, ConfigSource::Topic, overrides, layers)
        })
        .collect()
}

/// The settings of a group.
pub fn group(wanted: Wanted<'_>, overrides: &dyn Lookup, layers: &BrokerLayers<'_>) -> Vec<DescribedEntry> {
    let settings = all(ConfigKind::Group).iter().filter(|setting| !setting.internal && wanted.has(setting.name));
    settings
        .map(|setting| {
            let value = group::effective_value(setting, overrides, layers);
            let behind = match setting.broker_synonyms().next() {
                Some((name, _)) => broker_synonyms(name, layers, false),
                None => default_synonym(setting).into_iter().collect(),
            };
            of_resource(setting, value, ConfigSource::Group, overrides, behind)
        })
        .collect()
}

/// The settings of a client-metrics subscription.
pub fn client_metrics(wanted: Wanted<'_>, overrides: &dyn Lookup) -> Vec<DescribedEntry> {
    let settings = all(ConfigKind::ClientMetrics).iter().filter(|setting| wanted.has(setting.name));
    settings
        .map(|setting| {
            let text = overrides.lookup(setting.name).or(setting.default_text());
            let value = text.and_then(|text| setting.parse(text).ok());
            of_resource(setting, value, ConfigSource::ClientMetrics, overrides, Vec::new())
        })
        .collect()
}

/// The settings of this broker, and whatever else was set under names that nobody knows or that are not shown otherwise.
pub fn broker(wanted: Wanted<'_>, layers: &BrokerLayers<'_>) -> Vec<DescribedEntry> {
    let mut entries: Vec<DescribedEntry> = all(ConfigKind::Broker)
        .iter()
        .filter(|setting| !setting.internal && wanted.has(setting.name))
        .map(|setting| {
            of_broker(
                setting.name,
                layers.text(setting.name),
                broker_synonyms(setting.name, layers, sensitive(setting.name)),
            )
        })
        .collect();
    let mut others = std::collections::BTreeSet::new();
    for layer in [layers.at_start, layers.all_brokers, layers.this_broker] {
        layer.each(&mut |name, _| {
            if wanted.has(name) && find(ConfigKind::Broker, name).is_none_or(|setting| setting.internal) {
                others.insert(name);
            }
        });
    }
    for name in others {
        let text = layers.this_broker.lookup(name).or_else(|| layers.all_brokers.lookup(name));
        let text = text.or_else(|| layers.at_start.lookup(name)).map(str::to_owned);
        entries.push(of_broker(name, text, broker_synonyms(name, layers, sensitive(name))));
    }
    entries
}

/// What is set at run time for all brokers, and nothing else.
pub fn all_brokers(wanted: Wanted<'_>, layers: &BrokerLayers<'_>) -> Vec<DescribedEntry> {
    let mut entries = Vec::new();
    layers.all_brokers.each(&mut |name, value| {
        if wanted.has(name) {
            let only = BrokerLayers { at_start: &(), all_brokers: layers.all_brokers, this_broker: &() };
            let mut behind = broker_synonyms(name, &only, sensitive(name));
            behind.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
            entries.push(of_broker(name, Some(value.to_owned()), behind));
        }
    });
    entries
}

/// A name that nobody knows may be a secret, so it counts as one (Kafka: AbstractKafkaConfig.maybeSensitive).
fn sensitive(name: &str) -> bool {
    broker_setting(name).is_none_or(Setting::sensitive)
}

fn broker_setting(name: &str) -> Option<&'static Setting> {
    find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name))
}

fn of_resource(
    setting: &Setting,
    value: Option<Value>,
    own: ConfigSource,
    overrides: &dyn Lookup,
    behind: Vec<Synonym>,
) -> DescribedEntry {
    let value = value.map(|value| value.to_string());
    let mut synonyms = behind;
    if overrides.lookup(setting.name).is_some() {
        synonyms.insert(0, Synonym { name: setting.name.to_owned(), value: value.clone(), source: own });
    }
    DescribedEntry {
        name: setting.name.to_owned(),
        value,
        source: synonyms.first().map_or(ConfigSource::Default, |strongest| strongest.source),
        sensitive: false,
        read_only: false,
        synonyms,
        value_type: Some(setting.value_type),
        documentation: Some(setting.documentation),
    }
}

fn of_broker(name: &str, value: Option<String>, synonyms: Vec<Synonym>) -> DescribedEntry {
    let setting = broker_setting(name);
    let sensitive = sensitive(name);
    DescribedEntry {
        name: name.to_owned(),
        value: value.filter(|_| !sensitive),
        source: synonyms.first().map_or(ConfigSource::Default, |strongest| strongest.source),
        sensitive,
        read_only: !broker::is_dynamic(name),
        synonyms,
        value_type: setting.map(|setting| setting.value_type),
        documentation: setting.map(|setting| setting.documentation),
    }
}

/// All layers in which a broker setting or one of its other names has a value. What stands before the first mention of
/// the setting itself belongs to a stronger name and is left out, which is Kafka's way of hiding listener overrides.
fn broker_synonyms(name: &str, layers: &BrokerLayers<'_>, sensitive: bool) -> Vec<Synonym> {
    let names = broker::synonyms(name);
    let mut found = Vec::new();
    let sources = [
        (layers.this_broker, ConfigSource::DynamicBroker),
        (layers.all_brokers, ConfigSource::DynamicDefaultBroker),
        (layers.at_start, ConfigSource::StaticBroker),
    ];
    let mut add = |name: &str, value: &str, source| {
        let value = (!sensitive).then(|| value.to_owned());
        found.push(Synonym { name: name.to_owned(), value, source });
    };
    for (layer, source) in sources {
        for name in &names {
            if let Some(value) = layer.lookup(name) {
                add(name, value, source);
            }
        }
    }
    for name in &names {
        if let Some(value) = find(ConfigKind::Broker, name).and_then(Setting::default_text) {
            add(name, value, ConfigSource::Default);
        }
    }
    let strongest = found.iter().position(|synonym| synonym.name == name).unwrap_or(found.len());
    found.split_off(strongest)
}

fn default_synonym(setting: &Setting) -> Option<Synonym> {
    let value = Some(setting.default_text()?.to_owned());
    Some(Synonym { name: setting.name.to_owned(), value, source: ConfigSource::Default })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    fn only<'a>(entries: &'a [DescribedEntry], name: &str) -> &'a DescribedEntry {
        entries.iter().find(|entry| entry.name == name).unwrap()
    }

    fn sources(entry: &DescribedEntry) -> Vec<(&str, i8)> {
        entry.synonyms.iter().map(|synonym| (synonym.name.as_str(), synonym.source.wire_id())).collect()
    }

    #[test]
    fn bl_124_the_layers_of_a_topic_setting_come_in_order_and_under_their_own_names() {
        let (start, all, this) = (
            map(&[("log.segment.bytes", "3000000")]),
            map(&[("log.segment.bytes", "4000000")]),
            map(&[("log.segment.bytes", "5000000")]),
        );
        let layers = BrokerLayers { at_start: &start, all_brokers: &all, this_broker: &this };
        let entries = topic(Wanted(&[]), &map(&[("segment.bytes", "2000000")]), &layers);
        let name = "log.segment.bytes";
        let entry = only(&entries, "segment.bytes");
        assert_eq!(sources(entry), [("segment.bytes", 1), (name, 2), (name, 3), (name, 4), (name, 5)]);
        assert_eq!((entry.value.as_deref(), entry.source), (Some("2000000"), ConfigSource::Topic));
        let entries = topic(Wanted(&[]), &(), &layers);
        assert_eq!(only(&entries, "segment.bytes").value.as_deref(), Some("5000000"));
        assert_eq!(only(&entries, "segment.bytes").source, ConfigSource::DynamicBroker);
    }

    #[test]
    fn bl_124_named_keys_are_the_only_ones_shown() {
        let wanted = ["retention.ms".to_owned()];
        let entries = topic(Wanted(&wanted), &(), &BrokerLayers::at_start(&()));
        assert_eq!(entries.len(), 1);
        // Kafka 4.4 shows no layer for a default that comes from another unit.
        assert_eq!((entries[0].value.as_deref(), entries[0].synonyms.len()), (Some("604800000"), 0));
    }

    #[test]
    fn bl_125_every_setting_of_a_broker_is_shown_with_its_source() {
        let start = map(&[("num.partitions", "3"), ("ssl.key.password", "secret"), ("my.own.key", "x")]);
        let entries = broker(Wanted(&[]), &BrokerLayers::at_start(&start));
        let partitions = only(&entries, "num.partitions");
        assert_eq!((partitions.value.as_deref(), partitions.source), (Some("3"), ConfigSource::StaticBroker));
        assert!(partitions.read_only);
        let create = only(&entries, "auto.create.topics.enable");
        assert_eq!((create.value.as_deref(), create.source), (Some("true"), ConfigSource::Default));
        assert!(!only(&entries, "message.max.bytes").read_only);
        for secret in ["ssl.key.password", "my.own.key"] {
            let entry = only(&entries, secret);
            assert!(
                entry.sensitive && entry.value.is_none() && entry.synonyms.iter().all(|s| s.value.is_none()),
                "{secret}"
            );
        }
    }

    #[test]
    fn all_brokers_show_only_what_was_set_for_them() {
        let (start, all) = (map(&[("num.io.threads", "9")]), map(&[("num.io.threads", "10")]));
        let layers = BrokerLayers { at_start: &start, all_brokers: &all, this_broker: &() };
        let entries = all_brokers(Wanted(&[]), &layers);
        assert_eq!(entries.len(), 1);
        assert_eq!(sources(&entries[0]), [("num.io.threads", 3)]);
    }

    #[test]
    fn bl_128_a_compacted_topic_reports_exactly_compact() {
        let entries = topic(Wanted(&[]), &map(&[("cleanup.policy", "compact")]), &BrokerLayers::at_start(&()));
        assert_eq!(only(&entries, "cleanup.policy").value.as_deref(), Some("compact"));
    }
}
