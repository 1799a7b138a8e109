//! Settings of a client-metrics subscription (KIP-714; Kafka: ClientMetricsConfigs).

use super::layers::Lookup;
use super::setting::{ConfigKind, find};
use super::value::{InvalidValue, Value};

/// Shortest time between two reports of a client, in milliseconds.
pub const INTERVAL_MS_MIN: i64 = 100;
/// Longest time between two reports of a client, in milliseconds.
pub const INTERVAL_MS_MAX: i64 = 3_600_000;

const MATCH_KEYS: [&str; 6] = [
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Why settings of a subscription are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientMetricsConfigError {
    /// It has no name. An invalid request.
    #[error("Subscription name can't be empty")]
    NoName,
    /// Not a setting of a subscription. An invalid request.
    #[error("Unknown client metrics configuration: {name}")]
    Unknown {
        /// What was given.
        name: String,
    },
    /// The interval is too short or too long. An invalid request.
    #[error("Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)")]
    Interval {
        /// What was given.
        interval_ms: i64,
    },
    /// Not `key=pattern` with a known key. An invalid configuration.
    #[error("Illegal client matching pattern: {pattern}")]
    Match {
        /// What was given.
        pattern: String,
    },
    /// Not a value of the setting. An invalid configuration.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
}

/// Checks what a subscription would set after a change. Patterns are looked at for their form only.
pub fn validate(subscription: &str, overrides: &dyn Lookup) -> Result<(), ClientMetricsConfigError> {
    if subscription.is_empty() {
        return Err(ClientMetricsConfigError::NoName);
    }
    let mut settings = Vec::new();
    overrides.each(&mut |name, text| settings.push((name, text)));
    for (name, text) in settings {
        let setting = find(ConfigKind::ClientMetrics, name);
        let setting = setting.ok_or_else(|| ClientMetricsConfigError::Unknown { name: name.to_owned() })?;
        match setting.parse(text)? {
            Value::Number(interval_ms) if !(INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(&interval_ms) => {
                return Err(ClientMetricsConfigError::Interval { interval_ms });
            }
            Value::List(patterns) if name == "match" => patterns.iter().try_for_each(|pattern| check_match(pattern))?,
            _ => {}
        }
    }
    Ok(())
}

fn check_match(pattern: &str) -> Result<(), ClientMetricsConfigError> {
    let known =
        pattern.split_once('=').is_some_and(|(key, value)| MATCH_KEYS.contains(&key.trim()) && !value.contains('='));
    if known { Ok(()) } else { Err(ClientMetricsConfigError::Match { pattern: pattern.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn refused(subscription: &str, name: &str, value: &str) -> Option<String> {
        let overrides = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        validate(subscription, &overrides).err().map(|error| error.to_string())
    }

    #[test]
    fn a_subscription_is_refused_in_kafkas_words() {
        let interval = "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)";
        assert_eq!(refused("c", "interval.ms", "1").as_deref(), Some(interval));
        assert_eq!(refused("c", "foo", "1").as_deref(), Some("Unknown client metrics configuration: foo"));
        assert_eq!(refused("", "interval.ms", "1000").as_deref(), Some("Subscription name can't be empty"));
        assert_eq!(refused("c", "match", "a").as_deref(), Some("Illegal client matching pattern: a"));
        assert_eq!(refused("c", "match", "foo=a").as_deref(), Some("Illegal client matching pattern: foo=a"));
        assert_eq!(refused("c", "match", "client_id=a.*"), None);
        assert_eq!(refused("c", "interval.ms", "1000"), None);
    }
}
