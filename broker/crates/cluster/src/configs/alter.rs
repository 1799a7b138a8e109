//! Changing settings: single alterations and the full replacement of the old API, turned into changes that a record can
//! carry (Kafka: ConfigurationControlManager). Nothing is checked here beyond the operation; see the `validate` functions.

use std::collections::BTreeMap;

use super::layers::Lookup;
use super::setting::{ConfigKind, find, without_listener_prefix};
use super::value::ValueType;

/// What to do with a setting (Kafka: AlterConfigOp.OpType).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlterOp {
    /// Give it this value.
    Set,
    /// Go back to the default.
    Delete,
    /// Add entries to a list.
    Append,
    /// Take entries out of a list.
    Subtract,
}

impl AlterOp {
    /// The operation with this number on the wire.
    pub fn from_wire(id: i8) -> Option<AlterOp> {
        Some(match id {
            0 => AlterOp::Set,
            1 => AlterOp::Delete,
            2 => AlterOp::Append,
            3 => AlterOp::Subtract,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            AlterOp::Set => "SET",
            AlterOp::Delete => "DELETE",
            AlterOp::Append => "APPEND",
            AlterOp::Subtract => "SUBTRACT",
        }
    }
}

/// One alteration that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alteration {
    /// Setting.
    pub name: String,
    /// Operation.
    pub op: AlterOp,
    /// Value; only a deletion goes without.
    pub value: Option<String>,
}

/// What one setting becomes; `None` takes it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Setting.
    pub name: String,
    /// New value.
    pub value: Option<String>,
}

/// Why alterations are refused before any value is looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlterError {
    /// The same setting twice. An invalid request.
    #[error("Error due to duplicate config keys")]
    DuplicateKeys,
    /// A value is missing. An invalid request.
    #[error("Null value not supported for : {}", names.join(", "))]
    NullValues {
        /// Settings without a value.
        names: Vec<String>,
    },
    /// Entries for something that is no list. An invalid configuration.
    #[error("Can't {op} to key {name} because its type is not LIST.")]
    NotAList {
        /// Operation.
        op: &'static str,
        /// Setting.
        name: String,
    },
    /// Entries for a broker setting that is no list. An invalid configuration.
    #[error("Config value {op} is not allowed for config key: {name}")]
    NotABrokerList {
        /// Operation.
        op: &'static str,
        /// Setting.
        name: String,
    },
    /// Entries for a broker setting that nobody knows. An invalid configuration.
    #[error("Unknown config name: {name}")]
    UnknownBrokerList {
        /// Setting.
        name: String,
    },
    /// A value that a record cannot hold. An invalid configuration.
    #[error(
        "The configuration value cannot be added because it exceeds the maximum value size of {VALUE_BYTES_MAX} bytes."
    )]
    ValueTooLarge,
}

/// Longest value of a setting, in bytes (Kafka: Short.MAX_VALUE).
pub const VALUE_BYTES_MAX: usize = 32_767;

/// Turns alterations of what is set now into changes. A setting that keeps its value is left out, except for brokers,
/// where setting the same value again makes the broker read its key files again (KAFKA-14136).
pub fn incremental(kind: ConfigKind, current: &dyn Lookup, asked: &[Alteration]) -> Result<Vec<Change>, AlterError> {
    check_request(asked.iter().map(|a| (a.name.as_str(), a.value.is_some() || a.op == AlterOp::Delete)))?;
    let mut changes = Vec::with_capacity(asked.len());
    for alteration in asked {
        let name = alteration.name.as_str();
        let old = current.lookup(name);
        let value = alteration.value.as_deref().unwrap_or_default();
        let new = match alteration.op {
            AlterOp::Set => Some(value.to_owned()),
            AlterOp::Delete => None,
            AlterOp::Append | AlterOp::Subtract => Some(edited_list(kind, old, alteration, value)?),
        };
        if new.as_ref().is_some_and(|new| new.len() > VALUE_BYTES_MAX) {
            return Err(AlterError::ValueTooLarge);
        }
        if new.as_deref() != old || kind == ConfigKind::Broker {
            changes.push(Change { name: name.to_owned(), value: new });
        }
    }
    Ok(changes)
}

/// Turns a full replacement into changes: what is not named goes back to its default.
pub fn replacement(
    kind: ConfigKind,
    current: &dyn Lookup,
    wanted: &[(String, Option<String>)],
) -> Result<Vec<Change>, AlterError> {
    check_request(wanted.iter().map(|(name, value)| (name.as_str(), value.is_some())))?;
    let mut changes: Vec<Change> = wanted
        .iter()
        .filter(|(name, value)| value.as_deref() != current.lookup(name) || kind == ConfigKind::Broker)
        .map(|(name, value)| Change { name: name.clone(), value: value.clone() })
        .collect();
    current.each(&mut |name, _| {
        if !wanted.iter().any(|(kept, _)| kept == name) {
            changes.push(Change { name: name.to_owned(), value: None });
        }
    });
    Ok(changes)
}

/// What is set after the changes.
pub fn after(current: &dyn Lookup, changes: &[Change]) -> BTreeMap<String, String> {
    let mut result = BTreeMap::new();
    current.each(&mut |name, value| {
        result.insert(name.to_owned(), value.to_owned());
    });
    for change in changes {
        match &change.value {
            Some(value) => result.insert(change.name.clone(), value.clone()),
            None => result.remove(&change.name),
        };
    }
    result
}

fn check_request<'a>(asked: impl Iterator<Item = (&'a str, bool)>) -> Result<(), AlterError> {
    let mut names = std::collections::BTreeSet::new();
    let mut nulls = Vec::new();
    for (name, has_value) in asked {
        if !names.insert(name) {
            return Err(AlterError::DuplicateKeys);
        }
        if !has_value {
            nulls.push(name.to_owned());
        }
    }
    if nulls.is_empty() { Ok(()) } else { Err(AlterError::NullValues { names: nulls }) }
}

fn edited_list(
    kind: ConfigKind,
    old: Option<&str>,
    alteration: &Alteration,
    value: &str,
) -> Result<String, AlterError> {
    let name = alteration.name.as_str();
    let setting = find(kind, without_listener_prefix(name).unwrap_or(name));
    let setting = match (setting, kind) {
        (Some(setting), _) if setting.value_type == ValueType::List => setting,
        (Some(_), ConfigKind::Broker) => {
            let op = if alteration.op == AlterOp::Append { "append" } else { "subtract" };
            return Err(AlterError::NotABrokerList { op, name: name.to_owned() });
        }
        (None, ConfigKind::Broker) => return Err(AlterError::UnknownBrokerList { name: name.to_owned() }),
        _ => return Err(AlterError::NotAList { op: alteration.op.name(), name: name.to_owned() }),
    };
    let base = old.or(setting.default_text()).unwrap_or_default();
    let mut entries: Vec<&str> = base.split(',').filter(|entry| !entry.is_empty()).collect();
    for entry in value.split(',') {
        match alteration.op {
            AlterOp::Append if !entries.contains(&entry) => entries.push(entry),
            AlterOp::Subtract => {
                if let Some(at) = entries.iter().position(|known| *known == entry) {
                    entries.remove(at);
                }
            }
            AlterOp::Append | AlterOp::Set | AlterOp::Delete => {}
        }
    }
    Ok(entries.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    fn alteration(name: &str, op: AlterOp, value: Option<&str>) -> Alteration {
        Alteration { name: name.to_owned(), op, value: value.map(str::to_owned) }
    }

    fn topic(
        current: &[(&str, &str)],
        op: AlterOp,
        name: &str,
        value: &str,
    ) -> Result<BTreeMap<String, String>, AlterError> {
        let current = map(current);
        let changes = incremental(ConfigKind::Topic, &current, &[alteration(name, op, Some(value))])?;
        Ok(after(&current, &changes))
    }

    #[test]
    fn bl_121_a_replacement_takes_back_what_it_does_not_name() {
        let current = map(&[("retention.ms", "1"), ("segment.bytes", "2000000")]);
        let wanted = [("segment.bytes".to_owned(), Some("3000000".to_owned()))];
        let changes = replacement(ConfigKind::Topic, &current, &wanted).unwrap();
        assert_eq!(after(&current, &changes), map(&[("segment.bytes", "3000000")]));
    }

    #[test]
    fn bl_121_an_alteration_keeps_the_rest() {
        let after = topic(&[("retention.ms", "1")], AlterOp::Set, "segment.bytes", "3000000").unwrap();
        assert_eq!(after, map(&[("retention.ms", "1"), ("segment.bytes", "3000000")]));
    }

    #[test]
    fn entries_are_added_to_the_default_of_a_list_and_taken_from_it() {
        let added = topic(&[], AlterOp::Append, "cleanup.policy", "compact").unwrap();
        assert_eq!(added, map(&[("cleanup.policy", "delete,compact")]));
        let again =
            topic(&[("cleanup.policy", "delete,compact")], AlterOp::Append, "cleanup.policy", "compact").unwrap();
        assert_eq!(again, map(&[("cleanup.policy", "delete,compact")]));
        let taken =
            topic(&[("cleanup.policy", "delete,compact")], AlterOp::Subtract, "cleanup.policy", "delete").unwrap();
        assert_eq!(taken, map(&[("cleanup.policy", "compact")]));
    }

    #[test]
    fn entries_for_a_setting_that_is_no_list_are_refused() {
        let error = topic(&[], AlterOp::Append, "retention.ms", "1").unwrap_err();
        assert_eq!(error.to_string(), "Can't APPEND to key retention.ms because its type is not LIST.");
        let broker = |name: &str| {
            let asked = [alteration(name, AlterOp::Append, Some("9"))];
            incremental(ConfigKind::Broker, &(), &asked).unwrap_err().to_string()
        };
        assert_eq!(broker("num.io.threads"), "Config value append is not allowed for config key: num.io.threads");
        assert_eq!(broker("foo"), "Unknown config name: foo");
    }

    #[test]
    fn the_same_setting_twice_and_a_missing_value_are_refused() {
        let twice =
            [alteration("retention.ms", AlterOp::Set, Some("1")), alteration("retention.ms", AlterOp::Delete, None)];
        assert_eq!(incremental(ConfigKind::Topic, &(), &twice), Err(AlterError::DuplicateKeys));
        let null = [alteration("retention.ms", AlterOp::Set, None)];
        let error = incremental(ConfigKind::Topic, &(), &null).unwrap_err();
        assert_eq!(error.to_string(), "Null value not supported for : retention.ms");
    }

    #[test]
    fn a_topic_setting_that_stays_as_it_is_makes_no_record_but_a_broker_setting_does() {
        let current = map(&[("retention.ms", "1"), ("num.io.threads", "8")]);
        let same = |name: &str, value: &str| [alteration(name, AlterOp::Set, Some(value))];
        assert_eq!(incremental(ConfigKind::Topic, &current, &same("retention.ms", "1")), Ok(Vec::new()));
        assert_eq!(incremental(ConfigKind::Broker, &current, &same("num.io.threads", "8")).map(|c| c.len()), Ok(1));
    }
}
