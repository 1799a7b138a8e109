//! OffsetCommitValue: what a group committed for one partition. Versions 0 to 4 are read. Version 3 is written, or 1
//! for a commit with an expiry of its own: Kafka 4.4 writes 4, which only adds a topic id, but tools that read the
//! topic themselves (Burrow) stop at 3, and every Kafka since 2.1 reads 3.

use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs, TopicId};
use bytes::Bytes;

use super::fields::{Reader, Writer};
use crate::machine::RecordError;

const SCHEMA: &str = "OffsetCommitValue";
const VERSION_NEWEST: i16 = 4;
const VERSION_WRITTEN: i16 = 3;
const VERSION_WITH_EXPIRY: i16 = 1;
const TOPIC_ID_TAG: u32 = 0;

/// A committed offset and what came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Next offset that the group will read.
    pub offset: Offset,
    /// Leader epoch of the last record read, as the client gave it; -1 when it gave none.
    pub leader_epoch: LeaderEpoch,
    /// The client's own text.
    pub metadata: Arc<str>,
    /// When it was committed.
    pub commit_timestamp_ms: TimestampMs,
    /// When it expires, for old clients that asked for a retention time of their own.
    pub expire_timestamp_ms: Option<TimestampMs>,
    /// Id of the topic, where a version 4 record told it; otherwise zero.
    pub topic_id: TopicId,
}

impl CommittedOffset {
    pub(super) fn encode(&self) -> Bytes {
        match self.expire_timestamp_ms {
            Some(expire_ms) => {
                let mut value = Writer::with_version(VERSION_WITH_EXPIRY);
                value.i64(self.offset);
                value.string(&self.metadata);
                value.i64(self.commit_timestamp_ms);
                value.i64(expire_ms);
                value.into_bytes()
            }
            None => {
                let mut value = Writer::with_version(VERSION_WRITTEN);
                value.i64(self.offset);
                value.i32(self.leader_epoch);
                value.string(&self.metadata);
                value.i64(self.commit_timestamp_ms);
                value.into_bytes()
            }
        }
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new(SCHEMA, value);
        let version = value.version(VERSION_NEWEST)?;
        let flexible = version >= 4;
        let offset = value.i64("offset")?;
        let leader_epoch = if version >= 3 { value.i32("leaderEpoch")? } else { -1 };
        let metadata = value.flexible_string(flexible, "metadata")?;
        let commit_timestamp_ms = value.i64("commitTimestamp")?;
        let expire_ms = if version == 1 { value.i64("expireTimestamp")? } else { -1 };
        let topic_id = match flexible {
            true => match value.tagged_field(TOPIC_ID_TAG)? {
                Some(bytes) => TopicId(value.uuid_of(bytes, "topicId")?),
                None => TopicId::ZERO,
            },
            false => TopicId::ZERO,
        };
        let expire_timestamp_ms = (expire_ms != -1).then_some(expire_ms);
        Ok(CommittedOffset { offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::hex;

    fn sample() -> CommittedOffset {
        CommittedOffset {
            offset: 42,
            leader_epoch: 3,
            metadata: "méta".into(),
            commit_timestamp_ms: 1_700_000_000_123,
            expire_timestamp_ms: None,
            topic_id: TopicId::ZERO,
        }
    }

    const V1: &str = "0001000000000000002a00056dc3a974610000018bcfe5687b0000018bcfee903b";
    const V3: &str = "0003000000000000002a0000000300056dc3a974610000018bcfe5687b";

    #[test]
    fn version_3_is_written_as_kafka_writes_it() {
        assert_eq!(sample().encode(), hex(V3));
        assert_eq!(CommittedOffset::decode(&hex(V3)), Ok(sample()));
    }

    #[test]
    fn an_offset_with_its_own_expiry_is_written_in_version_1() {
        let expiring = CommittedOffset { leader_epoch: -1, expire_timestamp_ms: Some(1_700_000_600_123), ..sample() };
        assert_eq!(expiring.encode(), hex(V1));
        assert_eq!(CommittedOffset::decode(&hex(V1)), Ok(expiring));
    }

    #[test]
    fn every_version_of_kafka_is_read() {
        let without_epoch = CommittedOffset { leader_epoch: -1, ..sample() };
        for old in
            ["0000000000000000002a00056dc3a974610000018bcfe5687b", "0002000000000000002a00056dc3a974610000018bcfe5687b"]
        {
            assert_eq!(CommittedOffset::decode(&hex(old)), Ok(without_epoch.clone()));
        }
        let plain_4 = hex("0004000000000000002a00000003066dc3a974610000018bcfe5687b00");
        assert_eq!(CommittedOffset::decode(&plain_4), Ok(sample()));
        let with_id =
            hex("0004000000000000002a00000003066dc3a974610000018bcfe5687b010010e0bea0de74a14fe78c0ad2bef97f3ab3");
        let topic_id = "4L6g3nShT-eMCtK--X86sw".parse().unwrap();
        assert_eq!(CommittedOffset::decode(&with_id), Ok(CommittedOffset { topic_id, ..sample() }));
    }

    #[test]
    fn bl_088_an_offset_without_an_epoch_keeps_minus_one() {
        let written = CommittedOffset { leader_epoch: -1, ..sample() }.encode();
        assert_eq!(CommittedOffset::decode(&written).unwrap().leader_epoch, -1);
    }

    #[test]
    fn a_newer_version_and_a_short_value_are_errors() {
        let newer = CommittedOffset::decode(&hex("0005"));
        assert_eq!(newer, Err(RecordError::UnknownVersion { schema: SCHEMA, version: 5 }));
        let whole = hex(V3);
        for end in 0..whole.len() {
            assert!(CommittedOffset::decode(&whole[..end]).is_err(), "{end} bytes");
        }
    }
}
