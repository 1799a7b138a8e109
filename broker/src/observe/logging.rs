//! The log: lines on stderr, as text or as JSON, down to a level that the environment sets.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// Level when nothing is set. The consensus library tells of every election step at `info`.
const DEFAULT_FILTER: &str = "info,openraft=warn";
/// Levels that Log4j has.
const LOG4J_LEVELS: &str = "OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE, ALL";

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The variable does not hold a filter.
    #[error("{variable}={value}: {reason}")]
    Filter {
        /// Name of the variable of the environment.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        reason: String,
    },
    /// It was set up before.
    #[error("the log is set up twice: {0}")]
    Twice(String),
}

/// Form of the log (`monedula.log.format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// The value of the setting; anything but `json` is text, which the check of the settings has made sure of.
    pub fn of(setting: &str) -> LogFormat {
        if setting == "json" { LogFormat::Json } else { LogFormat::Text }
    }
}

/// Sets up the log of the process. `variable` reads the environment: `RUST_LOG` (a filter such as
/// `info,monedula::net=debug`), or else `KAFKA_LOG4J_ROOT_LOGLEVEL` of Kafka's image.
///
/// # Errors
/// See [`LoggingError`].
pub fn init(format: LogFormat, variable: impl Fn(&str) -> Option<String>) -> Result<(), LoggingError> {
    let filter = filter(variable)?;
    let colours = std::io::stderr().is_terminal();
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    let result = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    result.map_err(|error| LoggingError::Twice(error.to_string()))
}

fn filter(variable: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, LoggingError> {
    let set = |name: &'static str| variable(name).filter(|value| !value.is_empty()).map(|value| (name, value));
    let Some((variable, value)) = set("RUST_LOG").or_else(|| set("KAFKA_LOG4J_ROOT_LOGLEVEL")) else {
        return Ok(EnvFilter::new(DEFAULT_FILTER));
    };
    let text = if variable == "RUST_LOG" { Some(value.as_str()) } else { from_log4j(&value) };
    let parsed = text.ok_or_else(|| format!("one of {LOG4J_LEVELS} is expected"));
    parsed
        .and_then(|text| EnvFilter::try_new(text).map_err(|error| error.to_string()))
        .map_err(|reason| LoggingError::Filter { variable, value: value.clone(), reason })
}

/// What a level of Log4j is here. A word that is none would be taken for the name of a module, and silence the log.
fn from_log4j(level: &str) -> Option<&str> {
    match level.to_ascii_uppercase().as_str() {
        "ALL" => Some("trace"),
        "FATAL" => Some("error"),
        "INFO" => Some(DEFAULT_FILTER),
        "OFF" | "ERROR" | "WARN" | "DEBUG" | "TRACE" => Some(level),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter_of(variables: &[(&str, &str)]) -> Result<String, String> {
        let read =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        filter(read).map(|filter| filter.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn rust_log_wins_over_the_variable_of_kafkas_image() {
        let both = [("RUST_LOG", "debug"), ("KAFKA_LOG4J_ROOT_LOGLEVEL", "ERROR")];
        assert_eq!(filter_of(&both).unwrap(), "debug");
        assert_eq!(filter_of(&both[1..]).unwrap(), "error");
    }

    #[test]
    fn levels_of_log4j_are_understood() {
        for (level, filter) in [("FATAL", "error"), ("ALL", "trace"), ("OFF", "off"), ("warn", "warn")] {
            assert_eq!(filter_of(&[("KAFKA_LOG4J_ROOT_LOGLEVEL", level)]).unwrap(), filter, "{level}");
        }
    }

    #[test]
    fn nothing_set_or_an_empty_value_is_the_default() {
        let default = filter_of(&[]).unwrap();
        assert_eq!(filter_of(&[("RUST_LOG", "")]).unwrap(), default);
        assert!(default.contains("openraft=warn"));
    }

    #[test]
    fn a_value_that_is_no_filter_is_named() {
        let refused = filter_of(&[("RUST_LOG", "monedula=loud")]).unwrap_err();
        assert!(refused.starts_with("RUST_LOG=monedula=loud: "), "{refused}");
        let refused = filter_of(&[("KAFKA_LOG4J_ROOT_LOGLEVEL", "loud")]).unwrap_err();
        assert!(refused.starts_with("KAFKA_LOG4J_ROOT_LOGLEVEL=loud: one of OFF, FATAL"), "{refused}");
    }
}
