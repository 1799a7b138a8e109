//! Settings of a group: its own, bounded by the broker's (Kafka: GroupConfig).

use super::layers::{BrokerLayers, Lookup};
use super::setting::{ConfigKind, Setting, find};
use super::value::{InvalidValue, Value};

/// Why settings of a group are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupConfigError {
    /// Not a setting of a group.
    #[error("Unknown group config name: {name}")]
    Unknown {
        /// What was given.
        name: String,
    },
    /// Not a value of the setting.
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    /// Outside of what the broker allows.
    #[error("{name} must be {allowed}")]
    OutOfBounds {
        /// Setting of the group.
        name: String,
        /// What the broker allows.
        allowed: String,
    },
    /// The broker does not have the assignor.
    #[error(
        "streams.assignor.name '{name}' is not a registered task assignor. Registered assignors are: [{}].",
        known.join(", ")
    )]
    UnknownAssignor {
        /// What was given.
        name: String,
        /// `group.streams.assignors`.
        known: Vec<String>,
    },
    /// The dead-letter topic would be an internal one.
    #[error("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")]
    InternalDeadLetterTopic,
    /// The session would end before the next heartbeat.
    #[error("{session} must be greater than {heartbeat}")]
    SessionNotLonger {
        /// Session timeout setting.
        session: String,
        /// Heartbeat interval setting.
        heartbeat: String,
    },
}

/// Effective value: the group's own, the broker's, the default.
pub fn effective_value(setting: &Setting, overrides: &dyn Lookup, broker: &BrokerLayers<'_>) -> Option<Value> {
    let own = overrides.lookup(setting.name).and_then(|text| setting.parse(text).ok());
    own.or_else(|| {
        setting.broker_synonyms().find_map(|(name, _)| match (broker.value(name)?, setting.value_type) {
            // The broker lists its assignors; a group uses the first of them.
            (Value::List(entries), super::ValueType::String) => entries.first().map(|first| Value::Text(first.clone())),
            (value, _) => Some(value),
        })
    })
    .or_else(|| setting.default_text().and_then(|text| setting.parse(text).ok()))
}

/// Checks what a group would set itself after a change.
pub fn validate(overrides: &dyn Lookup, broker: &BrokerLayers<'_>) -> Result<(), GroupConfigError> {
    let mut names = Vec::new();
    overrides.each(&mut |name, text| names.push((name, text)));
    for (name, _) in &names {
        find(ConfigKind::Group, name).ok_or_else(|| GroupConfigError::Unknown { name: String::from(*name) })?;
    }
    for (name, text) in &names {
        let Some(setting) = find(ConfigKind::Group, name) else { continue };
        match setting.parse(text)? {
            Value::Number(number) => check_bounds(setting, number, broker)?,
            Value::Text(text) => check_text(setting.name, text, broker)?,
            Value::Boolean(_) | Value::Double(_) | Value::List(_) => {}
        }
    }
    for kind in ["consumer", "share", "streams"] {
        let number =
            |name: &str| find(ConfigKind::Group, name).and_then(|setting| effective_value(setting, overrides, broker));
        let (session, heartbeat) = (format!("{kind}.session.timeout.ms"), format!("{kind}.heartbeat.interval.ms"));
        if let (Some(Value::Number(session_ms)), Some(Value::Number(heartbeat_ms))) =
            (number(&session), number(&heartbeat))
            && session_ms <= heartbeat_ms
        {
            return Err(GroupConfigError::SessionNotLonger { session, heartbeat });
        }
    }
    Ok(())
}

/// The broker bounds `consumer.session.timeout.ms` by `group.consumer.{min,max}.session.timeout.ms`, and so on.
fn check_bounds(setting: &Setting, number: i64, broker: &BrokerLayers<'_>) -> Result<(), GroupConfigError> {
    let Some((kind, rest)) = setting.name.split_once('.') else { return Ok(()) };
    let rest = rest.strip_prefix("num.").unwrap_or(rest);
    let bound = |word: &str| broker.number(&format!("group.{kind}.{word}.{rest}"));
    let (min, max) = (bound("min"), bound("max"));
    if min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max) {
        return Ok(());
    }
    let allowed = match (min, max) {
        (Some(min), Some(max)) => format!("in the range {min} to {max} inclusive."),
        (Some(min), None) => format!("greater than or equal to {min}"),
        (None, Some(max)) => format!("less than or equal to {max}"),
        (None, None) => return Ok(()),
    };
    Err(GroupConfigError::OutOfBounds { name: setting.name.to_owned(), allowed })
}

fn check_text(setting: &str, text: String, broker: &BrokerLayers<'_>) -> Result<(), GroupConfigError> {
    match setting {
        "streams.assignor.name" => {
            let known = broker.list("group.streams.assignors");
            if known.contains(&text) { Ok(()) } else { Err(GroupConfigError::UnknownAssignor { name: text, known }) }
        }
        "errors.deadletterqueue.topic.name" if text.starts_with("__") => Err(GroupConfigError::InternalDeadLetterTopic),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn refused(name: &str, value: &str) -> Option<String> {
        let overrides = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        validate(&overrides, &BrokerLayers::at_start(&())).err().map(|error| error.to_string())
    }

    #[test]
    fn a_group_stays_within_the_bounds_of_its_broker() {
        assert_eq!(refused("consumer.session.timeout.ms", "50000"), None);
        for (name, value, reason) in [
            (
                "consumer.session.timeout.ms",
                "1",
                "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
            ),
            ("streams.num.standby.replicas", "9", "streams.num.standby.replicas must be less than or equal to 2"),
            (
                "streams.assignor.name",
                "x",
                "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
            ),
        ] {
            assert_eq!(refused(name, value).as_deref(), Some(reason));
        }
    }

    #[test]
    fn a_key_that_is_not_a_group_setting_is_named() {
        assert_eq!(refused("foo", "1").as_deref(), Some("Unknown group config name: foo"));
    }

    #[test]
    fn the_assignor_of_a_group_is_the_first_of_its_broker() {
        let setting = find(ConfigKind::Group, "streams.assignor.name").unwrap();
        let value = effective_value(setting, &(), &BrokerLayers::at_start(&()));
        assert_eq!(value, Some(Value::Text("sticky".to_owned())));
    }
}
