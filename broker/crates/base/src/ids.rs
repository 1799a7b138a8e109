//! Names for Kafka's numbers. Offsets, epochs and timestamps stay plain integers: they are the same on the wire, in the
//! files and in arithmetic, so an alias documents them without a conversion at every border. Ids that are never
//! computed with are types of their own.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Position of a record in a partition, counted from 0. -1 means "none" where Kafka says so.
pub type Offset = i64;
/// Number of a leadership of a partition (or of a raft term); grows with every new leader. -1 means "unknown".
pub type LeaderEpoch = i32;
/// Index of a partition in its topic, counted from 0.
pub type PartitionIndex = i32;
/// Id of an idempotent or transactional producer. -1 means "none".
pub type ProducerId = i64;
/// Epoch of a producer id. -1 means "none".
pub type ProducerEpoch = i16;
/// Milliseconds since 1970-01-01 UTC. -1 means "none".
pub type TimestampMs = i64;

/// `node.id` of a broker or controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A topic's id, or any other of Kafka's 16-byte ids; shown as URL-safe base64 without padding, as Kafka shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub Uuid);

impl TopicId {
    /// The id that means "no id" on the wire.
    pub const ZERO: TopicId = TopicId(Uuid::nil());
    /// True for the id that means "no id".
    pub fn is_zero(&self) -> bool {
        self.0.is_nil()
    }
}

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 128 bits are 21 groups of 6 bits and one of 2, which base64 pads with zero bits on the right.
        let bits = self.0.as_u128();
        let mut text = [0u8; 22];
        for (i, slot) in text.iter_mut().enumerate() {
            let shift = 122i32 - 6 * i as i32;
            let group = if shift >= 0 { bits >> shift } else { bits << -shift };
            *slot = BASE64_URL[(group & 63) as usize];
        }
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// The text is not a 22-character URL-safe base64 id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a Kafka id: 22 characters of URL-safe base64 are expected")]
pub struct InvalidId(pub String);

impl FromStr for TopicId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId(text.to_owned());
        let text_bytes = text.trim_end_matches('=').as_bytes();
        if text_bytes.len() != 22 {
            return Err(invalid());
        }
        let mut bits = 0u128;
        for (i, byte) in text_bytes.iter().enumerate() {
            let group = BASE64_URL.iter().position(|b| b == byte).ok_or_else(invalid)? as u128;
            bits = if i < 21 { bits << 6 | group } else { bits << 2 | group >> 4 };
        }
        Ok(TopicId(Uuid::from_u128(bits)))
    }
}

/// A partition by the name of its topic, as it appears in directory names: `topic-0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// Name of the topic.
    pub topic: std::sync::Arc<str>,
    /// Index of the partition.
    pub partition: PartitionIndex,
}

impl TopicPartition {
    /// A partition of the named topic.
    pub fn new(topic: impl Into<std::sync::Arc<str>>, partition: PartitionIndex) -> Self {
        TopicPartition { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_and_writes_as_kafka_does() {
        // `kafka-storage random-uuid` wrote the text; the bytes are those of java.util.UUID for the same text.
        let id: TopicId = "4L6g3nShT-eMCtK--X86sw".parse().unwrap();
        assert_eq!(id.0.to_string(), "e0bea0de-74a1-4fe7-8c0a-d2bef97f3ab3");
        assert_eq!(id.to_string(), "4L6g3nShT-eMCtK--X86sw");
        assert_eq!(TopicId::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    }

    #[test]
    fn a_text_of_another_length_or_alphabet_is_refused() {
        for text in ["", "abc", "4L6g3nShT+eMCtK//X86sw", "4L6g3nShT-eMCtK--X86swAA"] {
            assert_eq!(text.parse::<TopicId>(), Err(InvalidId(text.to_owned())));
        }
    }
}
