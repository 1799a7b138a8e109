//! Values of settings: from text and back, as Kafka's `ConfigDef.parseType` and `convertToString` do it.

/// Type of a setting, with Kafka's name and its number in DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
    /// 32 bits.
    Int,
    /// 16 bits.
    Short,
    /// 64 bits.
    Long,
    /// A floating-point number.
    Double,
    /// Texts, separated by commas.
    List,
    /// Name of a Java class; kept as text.
    Class,
    /// A secret.
    Password,
}

impl ValueType {
    /// The type with Kafka's name for it.
    pub fn from_name(name: &str) -> Option<ValueType> {
        Some(match name {
            "BOOLEAN" => ValueType::Boolean,
            "STRING" => ValueType::String,
            "INT" => ValueType::Int,
            "SHORT" => ValueType::Short,
            "LONG" => ValueType::Long,
            "DOUBLE" => ValueType::Double,
            "LIST" => ValueType::List,
            "CLASS" => ValueType::Class,
            "PASSWORD" => ValueType::Password,
            _ => return None,
        })
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Boolean => "BOOLEAN",
            ValueType::String => "STRING",
            ValueType::Int => "INT",
            ValueType::Short => "SHORT",
            ValueType::Long => "LONG",
            ValueType::Double => "DOUBLE",
            ValueType::List => "LIST",
            ValueType::Class => "CLASS",
            ValueType::Password => "PASSWORD",
        }
    }

    /// Number on the wire (Kafka: DescribeConfigsResponse.ConfigType); 0 is "unknown" and never a known setting's.
    pub fn wire_id(self) -> i8 {
        match self {
            ValueType::Boolean => 1,
            ValueType::String => 2,
            ValueType::Int => 3,
            ValueType::Short => 4,
            ValueType::Long => 5,
            ValueType::Double => 6,
            ValueType::List => 7,
            ValueType::Class => 8,
            ValueType::Password => 9,
        }
    }
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of type BOOLEAN.
    Boolean(bool),
    /// Of type INT, SHORT or LONG, within its range.
    Number(i64),
    /// Of type DOUBLE.
    Double(f64),
    /// Of type STRING, CLASS or PASSWORD.
    Text(String),
    /// Of type LIST.
    List(Vec<String>),
}

/// A value that a setting does not take. The messages are Kafka's, because clients and operators know them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// Of the wrong type, out of range or not one of the allowed ones.
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Refused {
        /// Setting.
        name: String,
        /// Value as Kafka shows it.
        value: String,
        /// What is allowed.
        reason: String,
    },
    /// A list that names an entry twice.
    #[error("Configuration '{name}' values must not be duplicated.")]
    Duplicated {
        /// Setting.
        name: String,
    },
    /// A list without entries.
    #[error("Configuration '{name}' must not be empty. Valid values include: {allowed}")]
    EmptyList {
        /// Setting.
        name: String,
        /// What the list may hold.
        allowed: String,
    },
    /// An entry of `controller.quorum.bootstrap.servers`.
    #[error(
        "Failed to parse host name from {entry} for the configuration {name}. Each entry should be in the form \"{{host}}:{{port}}\""
    )]
    NotHostPort {
        /// Setting.
        name: String,
        /// Entry.
        entry: String,
    },
    /// An entry of `controller.quorum.voters`.
    #[error("Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`.")]
    NotVoter {
        /// Setting.
        name: String,
    },
}

impl InvalidValue {
    pub(super) fn refused(name: &str, value: impl Into<String>, reason: impl Into<String>) -> InvalidValue {
        InvalidValue::Refused { name: name.to_owned(), value: value.into(), reason: reason.into() }
    }
}

impl Value {
    /// Reads `text` as a value of `value_type`.
    pub fn parse(name: &str, value_type: ValueType, text: &str) -> Result<Value, InvalidValue> {
        let trimmed = text.trim();
        let not_a_number = || InvalidValue::refused(name, text, format!("Not a number of type {}", value_type.name()));
        match value_type {
            ValueType::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            ValueType::Boolean if trimmed.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
            ValueType::Boolean => Err(InvalidValue::refused(name, text, "Expected value to be either true or false")),
            ValueType::Int => trimmed.parse::<i32>().map(|n| Value::Number(n.into())).map_err(|_| not_a_number()),
            ValueType::Short => trimmed.parse::<i16>().map(|n| Value::Number(n.into())).map_err(|_| not_a_number()),
            ValueType::Long => trimmed.parse::<i64>().map(Value::Number).map_err(|_| not_a_number()),
            ValueType::Double => parse_java_double(trimmed).map(Value::Double).ok_or_else(not_a_number),
            ValueType::List if trimmed.is_empty() => Ok(Value::List(Vec::new())),
            ValueType::List => Ok(Value::List(trimmed.split(',').map(|entry| entry.trim().to_owned()).collect())),
            ValueType::String | ValueType::Class => Ok(Value::Text(trimmed.to_owned())),
            ValueType::Password => Ok(Value::Text(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Boolean(value) => value.fmt(f),
            Value::Number(value) => value.fmt(f),
            Value::Double(value) => f.write_str(&java_double(*value)),
            Value::Text(value) => f.write_str(value),
            Value::List(entries) => f.write_str(&entries.join(",")),
        }
    }
}

/// `Double.parseDouble` for the decimal forms; Java's hexadecimal floating-point form is not read.
fn parse_java_double(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    if unsigned == "NaN" || unsigned == "Infinity" {
        return text.parse().ok();
    }
    // Rust also reads "inf" and "nan"; Java also reads a type suffix.
    let number = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let decimal = number.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    decimal.then(|| number.parse().ok()).flatten()
}

/// `Double.toString`: plain between 0.001 and 10 million, otherwise with an exponent, always with a fraction.
fn java_double(value: f64) -> String {
    let magnitude = value.abs();
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        format!("{value:?}")
    } else {
        let scientific = format!("{value:e}");
        match scientific.split_once('e') {
            Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
            Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
            None => scientific,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_written_as_java_writes_it() {
        for (value, text) in [
            (f64::MAX, "1.7976931348623157E308"),
            (0.5, "0.5"),
            (-1.0, "-1.0"),
            (1e20, "1.0E20"),
            (2_147_483_648.0, "2.147483648E9"),
            (0.0001, "1.0E-4"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(java_double(value), text);
        }
    }

    #[test]
    fn what_java_does_not_read_as_a_number_is_refused() {
        for text in ["inf", "nan", "1,5", "0x10", "", "1e"] {
            assert_eq!(parse_java_double(text), None, "{text}");
        }
        assert_eq!(parse_java_double("0.5f"), Some(0.5));
    }
}
