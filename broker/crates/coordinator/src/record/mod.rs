//! The records of `__consumer_offsets` in Kafka's own form (schemas of kafka-group-coordinator, `coordinator-key` and
//! `coordinator-value`): a key is its type and fields, a value its version and fields. Every codec stands beside bytes
//! that Kafka's own classes wrote.

mod fields;
mod group_metadata;
mod offset_commit;

use std::sync::Arc;

use bytes::Bytes;

use crate::machine::{RawRecord, RecordError};
use fields::{Reader, Writer};

pub use group_metadata::{GroupMetadata, StoredMember};
pub use offset_commit::CommittedOffset;

/// Key types (Kafka: CoordinatorRecordType).
mod key_type {
    pub const LEGACY_OFFSET_COMMIT: i16 = 0;
    pub const OFFSET_COMMIT: i16 = 1;
    pub const GROUP_METADATA: i16 = 2;
    pub const CONSUMER_GROUP_METADATA: i16 = 3;
    pub const SHARE_GROUP_METADATA: i16 = 11;
    pub const STREAMS_GROUP_METADATA: i16 = 17;
}

/// A record that this coordinator writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A committed offset, or its removal.
    Offset {
        /// Group that committed.
        group_id: Arc<str>,
        /// Topic.
        topic: Arc<str>,
        /// Partition of the topic.
        partition: i32,
        /// `None` removes the offset.
        value: Option<CommittedOffset>,
    },
    /// A generation of a classic group, or the group's removal.
    Group {
        /// The group.
        group_id: Arc<str>,
        /// `None` removes the group.
        value: Option<Arc<GroupMetadata>>,
    },
}

/// A group that belongs to another protocol than the classic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKind {
    /// KIP-848.
    Consumer,
    /// KIP-932.
    Share,
    /// KIP-1071.
    Streams,
}

/// What a record of the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// A record that this coordinator acts on.
    Record(Record),
    /// A group of another protocol is there, or is gone.
    Foreign {
        /// The group.
        group_id: Arc<str>,
        /// Its protocol.
        kind: ForeignKind,
        /// False for a tombstone.
        alive: bool,
    },
    /// Part of a group of another protocol, or of a type that a newer Kafka writes. It stays in the log untouched.
    Other,
}

impl Record {
    /// The bytes for the log.
    pub fn encode(&self) -> RawRecord {
        match self {
            Record::Offset { group_id, topic, partition, value } => {
                let mut key = Writer::with_version(key_type::OFFSET_COMMIT);
                key.string(group_id);
                key.string(topic);
                key.i32(*partition);
                RawRecord { key: key.into_bytes(), value: value.as_ref().map(CommittedOffset::encode) }
            }
            Record::Group { group_id, value } => {
                let mut key = Writer::with_version(key_type::GROUP_METADATA);
                key.string(group_id);
                RawRecord { key: key.into_bytes(), value: value.as_ref().map(|value| value.encode()) }
            }
        }
    }
}

impl Stored {
    /// Reads a record of the log.
    ///
    /// # Errors
    /// The record is of a type acted on here, and its bytes do not follow the schema.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Stored, RecordError> {
        let mut key = Reader::new("key", key);
        let stored = match key.i16("type")? {
            key_type::LEGACY_OFFSET_COMMIT | key_type::OFFSET_COMMIT => Stored::Record(Record::Offset {
                group_id: key.string("group")?,
                topic: key.string("topic")?,
                partition: key.i32("partition")?,
                value: value.map(CommittedOffset::decode).transpose()?,
            }),
            key_type::GROUP_METADATA => Stored::Record(Record::Group {
                group_id: key.string("group")?,
                value: value.map(GroupMetadata::decode).transpose()?.map(Arc::new),
            }),
            key_type::CONSUMER_GROUP_METADATA => foreign(&mut key, ForeignKind::Consumer, value)?,
            key_type::SHARE_GROUP_METADATA => foreign(&mut key, ForeignKind::Share, value)?,
            key_type::STREAMS_GROUP_METADATA => foreign(&mut key, ForeignKind::Streams, value)?,
            _ => Stored::Other,
        };
        Ok(stored)
    }
}

fn foreign(key: &mut Reader<'_>, kind: ForeignKind, value: Option<&[u8]>) -> Result<Stored, RecordError> {
    Ok(Stored::Foreign { group_id: key.string("group")?, kind, alive: value.is_some() })
}

/// Copies what a reader lent.
fn owned(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Hexadecimal text to bytes, for golden records.

    /// The bytes that `text` spells.
    pub fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::hex;
    use super::*;

    #[test]
    fn keys_are_kafkas_bytes() {
        let offset = Record::Offset { group_id: "g1".into(), topic: "t".into(), partition: 5, value: None };
        assert_eq!(offset.encode().key, hex("00010002673100017400000005"));
        assert_eq!(offset.encode().value, None);
        let group = Record::Group { group_id: "g1".into(), value: None };
        assert_eq!(group.encode().key, hex("000200026731"));
        for record in [offset, group] {
            assert_eq!(Stored::decode(&record.encode().key, None), Ok(Stored::Record(record)));
        }
    }

    #[test]
    fn a_key_of_type_0_is_read_as_an_offset() {
        let read = Stored::decode(&hex("00000002673100017400000005"), None);
        let expected = Record::Offset { group_id: "g1".into(), topic: "t".into(), partition: 5, value: None };
        assert_eq!(read, Ok(Stored::Record(expected)));
    }

    #[test]
    fn groups_of_later_protocols_are_recognised_and_their_parts_are_left_alone() {
        let consumer = Stored::decode(&hex("000300026731"), Some(&[0, 0, 0, 0, 0, 7]));
        assert_eq!(consumer, Ok(Stored::Foreign { group_id: "g1".into(), kind: ForeignKind::Consumer, alive: true }));
        for key_type in [4i16, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23, 24, 1000] {
            assert_eq!(Stored::decode(&key_type.to_be_bytes(), Some(&[])), Ok(Stored::Other));
        }
    }

    #[test]
    fn a_truncated_key_is_an_error() {
        let whole = hex("00010002673100017400000005");
        for end in 0..whole.len() {
            assert!(Stored::decode(&whole[..end], None).is_err(), "{end} bytes");
        }
    }
}
