//! GroupMetadataValue: one generation of a classic group with its members and their assignments. Versions 0 to 4 are
//! read; version 3 is written, as Kafka 4.4 does.

use std::sync::Arc;

use base::TimestampMs;
use bytes::Bytes;

use super::fields::{Reader, Writer};
use super::owned;
use crate::machine::RecordError;

const SCHEMA: &str = "GroupMetadataValue";
const VERSION_NEWEST: i16 = 4;
const VERSION_WRITTEN: i16 = 3;

/// A classic group as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMetadata {
    /// `consumer`, `connect` and so on; empty for a group that never had a member.
    pub protocol_type: Arc<str>,
    /// Number of the generation, from 0.
    pub generation: i32,
    /// Name of the protocol (assignor) chosen for the generation.
    pub protocol_name: Option<Arc<str>>,
    /// Member id of the leader.
    pub leader: Option<Arc<str>>,
    /// When the group came into its state; -1 where the record is too old to tell.
    pub state_timestamp_ms: TimestampMs,
    /// The members; none means that the group is empty.
    pub members: Vec<StoredMember>,
}

/// A member as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMember {
    /// Id that the coordinator gave out.
    pub member_id: Arc<str>,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// `client.id`.
    pub client_id: Arc<str>,
    /// Address of the client as Java prints it: `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// How long a rebalance waits for the member; -1 where the record is too old to tell.
    pub rebalance_timeout_ms: i32,
    /// How long the member may be silent.
    pub session_timeout_ms: i32,
    /// What the member offered for the chosen protocol.
    pub subscription: Bytes,
    /// What the leader gave the member.
    pub assignment: Bytes,
}

impl GroupMetadata {
    pub(super) fn encode(&self) -> Bytes {
        let mut value = Writer::with_version(VERSION_WRITTEN);
        value.string(&self.protocol_type);
        value.i32(self.generation);
        value.nullable_string(self.protocol_name.as_deref());
        value.nullable_string(self.leader.as_deref());
        value.i64(self.state_timestamp_ms);
        value.count(self.members.len());
        for member in &self.members {
            value.string(&member.member_id);
            value.nullable_string(member.instance_id.as_deref());
            value.string(&member.client_id);
            value.string(&member.client_host);
            value.i32(member.rebalance_timeout_ms);
            value.i32(member.session_timeout_ms);
            value.bytes(&member.subscription);
            value.bytes(&member.assignment);
        }
        value.into_bytes()
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new(SCHEMA, value);
        let version = value.version(VERSION_NEWEST)?;
        let flexible = version >= 4;
        let mut group = GroupMetadata {
            protocol_type: value.flexible_string(flexible, "protocolType")?,
            generation: value.i32("generation")?,
            protocol_name: value.nullable_string(flexible, "protocol")?,
            leader: value.nullable_string(flexible, "leader")?,
            state_timestamp_ms: if version >= 2 { value.i64("currentStateTimestamp")? } else { -1 },
            members: Vec::new(),
        };
        for _ in 0..value.count(flexible, "members")? {
            group.members.push(StoredMember::decode(&mut value, version)?);
        }
        if flexible {
            value.skip_tagged_fields()?;
        }
        Ok(group)
    }
}

impl StoredMember {
    fn decode(value: &mut Reader<'_>, version: i16) -> Result<Self, RecordError> {
        let flexible = version >= 4;
        let member = StoredMember {
            member_id: value.flexible_string(flexible, "memberId")?,
            instance_id: if version >= 3 { value.nullable_string(flexible, "groupInstanceId")? } else { None },
            client_id: value.flexible_string(flexible, "clientId")?,
            client_host: value.flexible_string(flexible, "clientHost")?,
            rebalance_timeout_ms: if version >= 1 { value.i32("rebalanceTimeout")? } else { -1 },
            session_timeout_ms: value.i32("sessionTimeout")?,
            subscription: owned(value.bytes(flexible, "subscription")?),
            assignment: owned(value.bytes(flexible, "assignment")?),
        };
        if flexible {
            value.skip_tagged_fields()?;
        }
        Ok(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::hex;

    fn sample() -> GroupMetadata {
        GroupMetadata {
            protocol_type: "consumer".into(),
            generation: 7,
            protocol_name: Some("range".into()),
            leader: Some("m-1".into()),
            state_timestamp_ms: 1_700_000_000_123,
            members: vec![StoredMember {
                member_id: "m-1".into(),
                instance_id: Some("i-1".into()),
                client_id: "c".into(),
                client_host: "/127.0.0.1".into(),
                rebalance_timeout_ms: 300_000,
                session_timeout_ms: 45_000,
                subscription: Bytes::from_static(&[1, 2, 3]),
                assignment: Bytes::from_static(&[4, 5]),
            }],
        }
    }

    fn empty() -> GroupMetadata {
        GroupMetadata {
            protocol_type: "".into(),
            generation: 0,
            protocol_name: None,
            leader: None,
            state_timestamp_ms: 1_700_000_000_123,
            members: Vec::new(),
        }
    }

    const V0: &str = "00000008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e310000afc800000003010203000000020405";
    const V1: &str = "00010008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e31000493e00000afc800000003010203000000020405";
    const V2: &str = "00020008636f6e73756d657200000007000572616e676500036d2d310000018bcfe5687b0000000100036d2d31000163000a2f3132372e302e302e31000493e00000afc800000003010203000000020405";
    const V3: &str = "00030008636f6e73756d657200000007000572616e676500036d2d310000018bcfe5687b0000000100036d2d310003692d31000163000a2f3132372e302e302e31000493e00000afc800000003010203000000020405";
    const V4: &str = "000409636f6e73756d6572000000070672616e6765046d2d310000018bcfe5687b02046d2d3104692d3102630b2f3132372e302e302e31000493e00000afc8040102030304050000";

    #[test]
    fn version_3_is_written_as_kafka_writes_it() {
        assert_eq!(sample().encode(), hex(V3));
        assert_eq!(empty().encode(), hex("0003000000000000ffffffff0000018bcfe5687b00000000"));
    }

    #[test]
    fn every_version_of_kafka_is_read() {
        let change = |change: &dyn Fn(&mut GroupMetadata)| {
            let mut group = sample();
            change(&mut group);
            Ok(group)
        };
        assert_eq!(GroupMetadata::decode(&hex(V3)), Ok(sample()));
        assert_eq!(GroupMetadata::decode(&hex(V4)), Ok(sample()));
        let without_instance = change(&|group| group.members[0].instance_id = None);
        assert_eq!(GroupMetadata::decode(&hex(V2)), without_instance);
        let without_timestamp = change(&|group| {
            group.state_timestamp_ms = -1;
            group.members[0].instance_id = None;
        });
        assert_eq!(GroupMetadata::decode(&hex(V1)), without_timestamp);
        let without_rebalance_timeout = change(&|group| {
            group.state_timestamp_ms = -1;
            group.members[0].instance_id = None;
            group.members[0].rebalance_timeout_ms = -1;
        });
        assert_eq!(GroupMetadata::decode(&hex(V0)), without_rebalance_timeout);
        assert_eq!(GroupMetadata::decode(&hex("0004010000000000000000018bcfe5687b0100")), Ok(empty()));
    }

    #[test]
    fn a_short_value_and_a_lying_count_are_errors() {
        let whole = hex(V3);
        for end in 0..whole.len() {
            assert!(GroupMetadata::decode(&whole[..end]).is_err(), "{end} bytes");
        }
        assert!(GroupMetadata::decode(&hex("0003000000000000ffffffff0000018bcfe5687b7fffffff")).is_err());
    }
}
