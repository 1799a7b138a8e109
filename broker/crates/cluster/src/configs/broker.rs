//! Changing the settings of brokers while they run: which may change, where, and to what
//! (Kafka: DynamicBrokerConfig.validateConfigs, DynamicThreadPool). Every refusal is an invalid request there, and here.

use std::collections::BTreeMap;

use super::layers::{BrokerLayers, Lookup};
use super::setting::{ConfigKind, UpdateMode, find, without_listener_prefix};
use super::value::InvalidValue;

/// Why a change of broker settings is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerConfigError {
    /// They change only with a restart.
    #[error("Cannot update these configs dynamically: [{}]", names.join(", "))]
    NotDynamic {
        /// Settings.
        names: Vec<String>,
    },
    /// Keys and certificates belong to a listener.
    #[error(
        "These security configs can be dynamically updated only per-listener using the listener prefix: [{}]",
        names.join(", ")
    )]
    NeedsListener {
        /// Settings.
        names: Vec<String>,
    },
    /// They differ from broker to broker.
    #[error("Cannot update these configs at default cluster level, broker id must be specified: [{}]", names.join(", "))]
    NeedsBroker {
        /// Settings.
        names: Vec<String>,
    },
    /// Not a value of the setting.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// A pool of threads grows or shrinks by no more than a factor of two at a time.
    #[error("Dynamic thread count update validation failed for {name}={wanted}, value {reason}")]
    Threads {
        /// Setting.
        name: String,
        /// Threads asked for.
        wanted: i64,
        /// What is allowed.
        reason: String,
    },
    /// The cleaners grow or shrink by no more than a factor of two at a time.
    #[error("Log cleaner threads cannot be {change} the current value {current}")]
    CleanerThreads {
        /// The change that was refused.
        change: &'static str,
        /// Threads now.
        current: i64,
    },
    /// Settings that the broker could not run with.
    #[error("{reason}")]
    Rule {
        /// Kafka's words.
        reason: String,
    },
}

/// Security settings that Kafka can read again at run time, for one listener only (Kafka: SslConfigs.RECONFIGURABLE_CONFIGS).
const PER_LISTENER: [&str; 10] = [
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// Settings of listeners that may still be set for all brokers (Kafka: CLUSTER_LEVEL_LISTENER_CONFIGS).
const LISTENER_SETTINGS_OF_ALL_BROKERS: [&str; 3] =
    ["max.connections", "max.connection.creation.rate", "num.network.threads"];

const THREAD_POOLS: [&str; 5] = [
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
];

/// Other names under which a broker setting may be given, the strongest first, itself among them
/// (Kafka: DynamicBrokerConfig.brokerConfigSynonyms).
pub fn synonyms(name: &str) -> Vec<&str> {
    const ROLL: [&str; 2] = ["log.roll.ms", "log.roll.hours"];
    const ROLL_JITTER: [&str; 2] = ["log.roll.jitter.ms", "log.roll.jitter.hours"];
    const RETENTION: [&str; 3] = ["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
    const OF_A_MECHANISM: [&str; 5] = [
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.server.callback.handler.class",
        "connections.max.reauth.ms",
    ];
    if ROLL.contains(&name) {
        ROLL.to_vec()
    } else if ROLL_JITTER.contains(&name) {
        ROLL_JITTER.to_vec()
    } else if RETENTION.contains(&name) {
        RETENTION.to_vec()
    } else if name == "log.flush.interval.ms" {
        vec!["log.flush.interval.ms", "log.flush.scheduler.interval.ms"]
    } else if let Some(base) = without_listener_prefix(name) {
        vec![name, OF_A_MECHANISM.into_iter().find(|suffix| base.ends_with(suffix)).unwrap_or(base)]
    } else {
        vec![name]
    }
}

/// Whether a broker setting can change while the broker runs.
pub fn is_dynamic(name: &str) -> bool {
    find(ConfigKind::Broker, name).is_some_and(|setting| setting.update != UpdateMode::ReadOnly)
}

/// Checks what would be set at run time after a change, for one broker or for all. A name that nobody knows is accepted,
/// as in Kafka, where plug-ins have settings of their own.
pub fn validate(
    settings: &BTreeMap<String, String>,
    one_broker: bool,
    now: &BrokerLayers<'_>,
) -> Result<(), BrokerConfigError> {
    let named = |refused: &dyn Fn(&str) -> bool| -> Option<Vec<String>> {
        let names: Vec<String> = settings.keys().filter(|name| refused(name)).cloned().collect();
        (!names.is_empty()).then_some(names)
    };
    if let Some(names) = named(&|name| find(ConfigKind::Broker, name).is_some() && !is_dynamic(name)) {
        return Err(BrokerConfigError::NotDynamic { names });
    }
    if let Some(names) = named(&|name| PER_LISTENER.contains(&name)) {
        return Err(BrokerConfigError::NeedsListener { names });
    }
    for (name, text) in settings {
        if let Some(setting) = find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name)) {
            setting.parse(text)?;
        }
    }
    if !one_broker && let Some(names) = named(&needs_broker) {
        return Err(BrokerConfigError::NeedsBroker { names });
    }
    THREAD_POOLS.iter().try_for_each(|name| check_threads(name, settings.lookup(name), now))?;
    check_cleaners(settings.lookup("log.cleaner.threads"), now)?;
    let after = BrokerLayers { this_broker: settings, ..*now };
    match contradiction(&after) {
        Some(reason) => Err(BrokerConfigError::Rule { reason }),
        None => Ok(()),
    }
}

/// What is wrong with the effective settings of a broker beyond each value, in Kafka's words; the start checks it too
/// (Kafka: KafkaConfig.validateValues, SocketServer.validateReconfiguration).
pub fn contradiction(layers: &BrokerLayers<'_>) -> Option<String> {
    let topic = super::TopicConfig::effective(&(), layers);
    let overrides = layers.text("max.connections.per.ip.overrides").unwrap_or_default();
    let bad_override = per_ip_overrides(&overrides).find_map(Result::err);
    if topic.segment_ms < 1 {
        Some("log.roll.ms must be greater than or equal to 1".to_owned())
    } else if topic.segment_jitter_ms < 0 {
        Some("log.roll.jitter.ms must be greater than or equal to 0".to_owned())
    } else if topic.retention_ms == 0 || topic.retention_ms < -1 {
        Some("log.retention.ms must be unlimited (-1) or, greater than or equal to 1".to_owned())
    } else if let Some(entry) = bad_override {
        Some(format!("max.connections.per.ip.overrides: '{entry}' is not of the form host:count"))
    } else if layers.number("max.connections.per.ip") == Some(0) && overrides.trim().is_empty() {
        let name = "max.connections.per.ip";
        Some(format!("{name} can be set to zero only if {name}.overrides property is set."))
    } else {
        layers
            .number("max.connections")
            .filter(|count| *count <= 0)
            .map(|count| format!("Invalid max.connections {count}"))
    }
}

/// Reads `host:count,...`; an error is an entry of another form.
pub fn per_ip_overrides(text: &str) -> impl Iterator<Item = Result<(&str, i32), &str>> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(|entry| {
        let (host, count) = entry.rsplit_once(':').ok_or(entry)?;
        Ok((host.trim(), count.trim().parse().map_err(|_| entry)?))
    })
}

fn check_cleaners(wanted: Option<&str>, now: &BrokerLayers<'_>) -> Result<(), BrokerConfigError> {
    let wanted = wanted.and_then(|text| text.trim().parse::<i64>().ok());
    let (Some(wanted), Some(current)) = (wanted, now.number("log.cleaner.threads")) else { return Ok(()) };
    let change = if wanted < current / 2 {
        "reduced to less than half"
    } else if wanted > current.saturating_mul(2) {
        "increased to more than double"
    } else {
        return Ok(());
    };
    Err(BrokerConfigError::CleanerThreads { change, current })
}

fn needs_broker(name: &str) -> bool {
    match without_listener_prefix(name) {
        Some(base) => !LISTENER_SETTINGS_OF_ALL_BROKERS.contains(&base),
        None => find(ConfigKind::Broker, name).is_some_and(|setting| setting.update == UpdateMode::PerBroker),
    }
}

fn check_threads(name: &str, wanted: Option<&str>, now: &BrokerLayers<'_>) -> Result<(), BrokerConfigError> {
    let (Some(wanted), Some(current)) = (wanted.and_then(|text| text.trim().parse::<i64>().ok()), now.number(name))
    else {
        return Ok(());
    };
    let reason = if wanted == current {
        return Ok(());
    } else if wanted < current / 2 {
        format!("should be at least half the current value {current}")
    } else if wanted > current.saturating_mul(2) {
        format!("should not be greater than double the current value {current}")
    } else {
        return Ok(());
    };
    Err(BrokerConfigError::Threads { name: name.to_owned(), wanted, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str, one_broker: bool) -> Option<String> {
        let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        validate(&settings, one_broker, &BrokerLayers::at_start(&())).err().map(|error| error.to_string())
    }

    #[test]
    fn a_setting_that_needs_a_restart_is_refused() {
        assert_eq!(
            refused("num.partitions", "3", true).as_deref(),
            Some("Cannot update these configs dynamically: [num.partitions]")
        );
    }

    #[test]
    fn a_setting_of_one_broker_is_refused_for_all() {
        assert_eq!(
            refused("listeners", "PLAINTEXT://:9092", false).as_deref(),
            Some("Cannot update these configs at default cluster level, broker id must be specified: [listeners]")
        );
        assert_eq!(refused("listeners", "PLAINTEXT://:9092", true), None);
    }

    #[test]
    fn a_keystore_belongs_to_a_listener() {
        assert!(refused("ssl.keystore.location", "/k", true).unwrap().starts_with("These security configs"));
        assert_eq!(refused("listener.name.outside.ssl.keystore.location", "/k", true), None);
    }

    #[test]
    fn a_pool_of_threads_changes_by_a_factor_of_two_at_most() {
        assert_eq!(refused("num.io.threads", "16", true), None);
        assert_eq!(
            refused("num.io.threads", "17", true).as_deref(),
            Some(
                "Dynamic thread count update validation failed for num.io.threads=17, value should not be greater than double the current value 8"
            )
        );
        assert!(refused("num.io.threads", "3", true).unwrap().ends_with("at least half the current value 8"));
    }

    #[test]
    fn what_a_broker_could_not_run_with_is_refused() {
        for (name, value, reason) in [
            ("log.retention.ms", "0", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
            ("log.roll.ms", "0", "log.roll.ms must be greater than or equal to 1"),
            ("max.connections", "0", "Invalid max.connections 0"),
            (
                "log.cleaner.threads",
                "50",
                "Log cleaner threads cannot be increased to more than double the current value 1",
            ),
        ] {
            assert_eq!(refused(name, value, false).as_deref(), Some(reason));
        }
        assert!(refused("max.connections.per.ip.overrides", "a:b", true).unwrap().contains("host:count"));
        assert_eq!(refused("leader.replication.throttled.rate", "1000", true), None);
    }

    #[test]
    fn a_bad_value_is_refused_and_an_unknown_name_is_not() {
        assert_eq!(
            refused("log.retention.ms", "abc", false).as_deref(),
            Some("Invalid value abc for configuration log.retention.ms: Not a number of type LONG")
        );
        assert_eq!(refused("my.plugin.setting", "1", false), None);
    }
}
