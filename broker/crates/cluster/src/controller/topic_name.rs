//! What a topic may be called (Kafka: org.apache.kafka.common.internals.Topic).

use base::limits::TOPIC_NAME_LEN_MAX;

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopicName {
    /// No name at all.
    #[error("Topic name is invalid: the empty string is not allowed")]
    Empty,
    /// A name that means a directory.
    #[error("Topic name is invalid: '{0}' is not allowed")]
    Dots(String),
    /// Longer than file systems allow.
    #[error("Topic name is invalid: the length of '{0}' is longer than the max allowed length {TOPIC_NAME_LEN_MAX}")]
    TooLong(String),
    /// A letter that no name has.
    #[error(
        "Topic name is invalid: '{0}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    )]
    Characters(String),
}

/// Checks a name.
pub fn validate_topic_name(name: &str) -> Result<(), InvalidTopicName> {
    match name {
        "" => Err(InvalidTopicName::Empty),
        "." | ".." => Err(InvalidTopicName::Dots(name.to_owned())),
        _ if name.encode_utf16().count() > TOPIC_NAME_LEN_MAX => Err(InvalidTopicName::TooLong(name.to_owned())),
        _ if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) => Ok(()),
        _ => Err(InvalidTopicName::Characters(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_dots_dashes_and_underscores_up_to_249_make_a_name() {
        for name in ["a", "A-9_b.c", "...", &"x".repeat(249)] {
            assert_eq!(validate_topic_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn other_names_are_refused_in_kafkas_words() {
        let message = |name: &str| validate_topic_name(name).unwrap_err().to_string();
        assert_eq!(message(""), "Topic name is invalid: the empty string is not allowed");
        assert_eq!(message(".."), "Topic name is invalid: '..' is not allowed");
        let letters = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
        assert_eq!(message("a b"), format!("Topic name is invalid: 'a b' {letters}"));
        assert_eq!(message("é"), format!("Topic name is invalid: 'é' {letters}"));
        let long = "x".repeat(250);
        let expected =
            format!("Topic name is invalid: the length of '{long}' is longer than the max allowed length 249");
        assert_eq!(message(&long), expected);
    }
}
