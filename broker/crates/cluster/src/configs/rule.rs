//! What values a setting takes beyond its type (Kafka: the validators of `ConfigDef` and of the classes that use it).

use super::value::{InvalidValue, Value};

/// A check of a value. The texts are those of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Any value of the type.
    Any,
    /// Between two numbers, each optional, both included.
    Range(Option<&'static str>, Option<&'static str>),
    /// One of these texts, separated by blanks.
    OneOf(&'static str),
    /// One of these texts in any case.
    OneOfAnyCase(&'static str),
    /// A list without duplicates; its entries are free when none are named.
    List {
        /// Whether it may be empty.
        empty: bool,
        /// The entries allowed, separated by blanks.
        allowed: &'static str,
    },
    /// A text that is not empty.
    NotEmpty,
    /// 1 to 9, or -1 for the codec's own default.
    GzipLevel,
    /// `partition:broker` pairs, or `*`.
    ThrottledReplicas,
    /// `id@host:port` entries.
    Voters,
    /// `host:port` entries.
    BootstrapServers,
    /// `latest`, `earliest` or `by_duration:` with an ISO duration that is not negative.
    OffsetReset,
}

impl Rule {
    /// Reads a rule as the tables write it.
    pub(super) fn read(text: &'static str) -> Option<Rule> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match word {
            // A text cannot be null here, so "not null" allows everything.
            "" | "not-null" => Rule::Any,
            "range" => {
                let (min, max) = rest.split_once(' ')?;
                Rule::Range(Some(min).filter(|bound| *bound != "-"), Some(max).filter(|bound| *bound != "-"))
            }
            "one-of" => Rule::OneOf(rest),
            "one-of-any-case" => Rule::OneOfAnyCase(rest),
            "list" => {
                let (empty, rest) = rest.split_once(' ')?;
                let allowed = rest.split_once(' ').map_or("", |(_, allowed)| allowed);
                Rule::List { empty: empty == "empty", allowed }
            }
            "not-empty" => Rule::NotEmpty,
            "gzip-level" => Rule::GzipLevel,
            "throttled-replicas" => Rule::ThrottledReplicas,
            "voters" => Rule::Voters,
            "bootstrap-servers" => Rule::BootstrapServers,
            "offset-reset" => Rule::OffsetReset,
            _ => return None,
        })
    }

    /// Checks a value of the right type.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), InvalidValue> {
        match (self, value) {
            (Rule::Range(min, max), Value::Number(number)) => check_range(name, *number as f64, value, *min, *max),
            (Rule::Range(min, max), Value::Double(number)) => check_range(name, *number, value, *min, *max),
            (Rule::OneOf(allowed), Value::Text(text)) => check_one_of(name, text, allowed),
            (Rule::OneOfAnyCase(allowed), Value::Text(text)) => check_one_of_any_case(name, text, allowed),
            (Rule::List { empty, allowed }, Value::List(entries)) => check_list(name, entries, *empty, allowed),
            (Rule::NotEmpty, Value::Text(text)) if text.is_empty() => {
                Err(InvalidValue::refused(name, "", "String must be non-empty"))
            }
            (Rule::GzipLevel, Value::Number(level)) if *level != -1 && !(1..=9).contains(level) => {
                Err(InvalidValue::refused(name, level.to_string(), "Value must be between 1 and 9 or equal to -1"))
            }
            (Rule::ThrottledReplicas, Value::List(entries)) => check_throttled_replicas(name, entries),
            (Rule::Voters, Value::List(entries)) if !entries.iter().all(|entry| voter(entry).is_some()) => {
                Err(InvalidValue::NotVoter { name: name.to_owned() })
            }
            (Rule::BootstrapServers, Value::List(entries)) => {
                match entries.iter().find(|entry| host_port(entry).is_none()) {
                    Some(entry) => Err(InvalidValue::NotHostPort { name: name.to_owned(), entry: entry.clone() }),
                    None => Ok(()),
                }
            }
            (Rule::OffsetReset, Value::Text(text)) => check_offset_reset(name, text),
            _ => Ok(()),
        }
    }

    /// What is allowed, for a person who wrote something else; empty when everything of the type is.
    pub fn allowed(&self) -> String {
        match self {
            Rule::Any => String::new(),
            Rule::Range(Some(min), Some(max)) => format!("{min} to {max}"),
            Rule::Range(Some(min), None) => format!("at least {min}"),
            Rule::Range(None, Some(max)) => format!("at most {max}"),
            Rule::Range(None, None) => String::new(),
            Rule::OneOf(allowed) | Rule::OneOfAnyCase(allowed) => format!("one of {allowed}"),
            Rule::List { allowed: "", .. } => "a comma-separated list".to_owned(),
            Rule::List { allowed, .. } => format!("a comma-separated list of {allowed}"),
            Rule::NotEmpty => "a text that is not empty".to_owned(),
            Rule::GzipLevel => "1 to 9 or -1".to_owned(),
            Rule::ThrottledReplicas => "* or partition:broker,...".to_owned(),
            Rule::Voters => "id@host:port,...".to_owned(),
            Rule::BootstrapServers => "host:port,...".to_owned(),
            Rule::OffsetReset => "latest, earliest or by_duration:PnDTnHnMn.nS".to_owned(),
        }
    }
}

fn check_range(
    name: &str,
    number: f64,
    value: &Value,
    min: Option<&str>,
    max: Option<&str>,
) -> Result<(), InvalidValue> {
    let refused = |reason: String| Err(InvalidValue::refused(name, value.to_string(), reason));
    let bound = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    match (min, max) {
        (Some(min), _) if number < bound(min) => refused(format!("Value must be at least {min}")),
        (_, Some(max)) if number > bound(max) => refused(format!("Value must be no more than {max}")),
        _ => Ok(()),
    }
}

fn check_one_of(name: &str, text: &str, allowed: &str) -> Result<(), InvalidValue> {
    if allowed.split(' ').any(|one| one == text) {
        return Ok(());
    }
    Err(InvalidValue::refused(name, text, format!("String must be one of: {}", allowed.replace(' ', ", "))))
}

fn check_one_of_any_case(name: &str, text: &str, allowed: &str) -> Result<(), InvalidValue> {
    if allowed.split(' ').any(|one| one.eq_ignore_ascii_case(text)) {
        return Ok(());
    }
    let reason = format!("String must be one of (case insensitive): {}", allowed.replace(' ', ", "));
    Err(InvalidValue::refused(name, text, reason))
}

fn check_list(name: &str, entries: &[String], empty: bool, allowed: &str) -> Result<(), InvalidValue> {
    if entries.is_empty() && !empty {
        let allowed = if allowed.is_empty() {
            "any non-empty value".to_owned()
        } else {
            format!("[{}]", allowed.replace(' ', ", "))
        };
        return Err(InvalidValue::EmptyList { name: name.to_owned(), allowed });
    }
    let duplicated = entries.iter().enumerate().any(|(at, entry)| entries[..at].contains(entry));
    if duplicated {
        return Err(InvalidValue::Duplicated { name: name.to_owned() });
    }
    if allowed.is_empty() {
        return Ok(());
    }
    entries.iter().try_for_each(|entry| check_one_of(name, entry, allowed))
}

fn check_throttled_replicas(name: &str, entries: &[String]) -> Result<(), InvalidValue> {
    let pair = |entry: &String| {
        entry.split_once(':').is_some_and(|(partition, broker)| {
            [partition, broker].iter().all(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    // Java's split drops empty entries at the end, so a lone comma names nothing.
    let star = entries.first().is_some_and(|entry| entry == "*");
    if star || entries.iter().all(|entry| entry.is_empty()) || entries.iter().all(pair) {
        return Ok(());
    }
    let reason = format!(
        "{name} must be the literal '*' or a list of replicas in the following format: \
         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
    Err(InvalidValue::refused(name, format!("[{}]", entries.join(", ")), reason))
}

/// Reads `id@host:port`.
pub fn voter(entry: &str) -> Option<(i32, &str, u16)> {
    let (id, address) = entry.split_once('@')?;
    let (host, port) = host_port(address)?;
    Some((id.parse().ok()?, host, port))
}

/// Reads `host:port`, the host with or without the brackets of an IPv6 address.
pub fn host_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    let plain = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte));
    plain.then(|| port.parse().ok()).flatten().map(|port| (host, port))
}

fn check_offset_reset(name: &str, text: &str) -> Result<(), InvalidValue> {
    let known = match text.strip_prefix("by_duration:") {
        Some(duration) => iso_duration_ms(duration).is_some(),
        None => text == "latest" || text == "earliest",
    };
    if known {
        return Ok(());
    }
    let reason = format!(
        "Invalid value `{text}` for configuration {name}. The value must be either 'earliest', 'latest' or of the \
         format 'by_duration:<PnDTnHnMn.nS>'."
    );
    Err(InvalidValue::refused(name, text, reason))
}

/// Milliseconds of an ISO 8601 duration of days to seconds; `None` when it is none or negative.
pub fn iso_duration_ms(text: &str) -> Option<i64> {
    let (days, time) = text.strip_prefix('P')?.split_once('T').map_or((text.get(1..)?, None), |(d, t)| (d, Some(t)));
    if time == Some("") || (days.is_empty() && time.is_none()) {
        return None;
    }
    let mut total_ms = 0f64;
    let mut number = String::new();
    for (units, part) in [("D", days), ("HMS", time.unwrap_or(""))] {
        for letter in part.chars() {
            if !units.contains(letter) {
                number.push(letter);
                continue;
            }
            let unit_ms = match letter {
                'D' => 86_400_000.0,
                'H' => 3_600_000.0,
                'M' => 60_000.0,
                _ => 1_000.0,
            };
            total_ms += number.parse::<f64>().ok()? * unit_ms;
            number.clear();
        }
    }
    (number.is_empty() && total_ms >= 0.0).then_some(total_ms as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_java_does() {
        assert_eq!(iso_duration_ms("PT1H"), Some(3_600_000));
        assert_eq!(iso_duration_ms("P1DT2M0.5S"), Some(86_520_500));
        for text in ["", "P", "PT", "1H", "PT1X", "PT1", "PT-1H"] {
            assert_eq!(iso_duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn an_address_may_have_brackets() {
        assert_eq!(host_port("[::1]:9093"), Some(("::1", 9093)));
        assert_eq!(voter("3@host-1.local:9093"), Some((3, "host-1.local", 9093)));
        assert_eq!(host_port(":9093"), None);
        assert_eq!(voter("x@host:1"), None);
    }
}
