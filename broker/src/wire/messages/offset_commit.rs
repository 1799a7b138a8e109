//! OffsetCommit, versions 2 to 10. Version 10 names topics by id instead of name (KIP-848).

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition as KnownPartition, OffsetCommitResponseTopic as KnownTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest as KnownRequest, OffsetCommitResponse as KnownResponse};
use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use uuid::Uuid;

use super::parts::{
    compact_array, compact_string, put_compact_count, put_no_tagged_fields, skip_tagged_fields, uuid, written_size,
};
use crate::wire::primitive::compact_nullable_string;

/// Newest version that crate kafka-protocol reads and writes.
const KNOWN_MAX: i16 = 9;

/// The request.
#[derive(Debug, Clone, PartialEq)]
pub struct OffsetCommitRequest {
    /// `group.id`.
    pub group_id: StrBytes,
    /// Generation of a classic group or epoch of a member; -1 outside group management.
    pub generation_id_or_member_epoch: i32,
    /// Id of the member; empty outside group management.
    pub member_id: StrBytes,
    /// `group.instance.id`.
    pub group_instance_id: Option<StrBytes>,
    /// Retention asked for, versions 2 to 4; -1 for the broker's.
    pub retention_time_ms: i64,
    /// What to commit.
    pub topics: Vec<RequestTopic>,
}

/// Offsets of one topic.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTopic {
    /// Name, up to version 9; empty after that.
    pub name: StrBytes,
    /// Id, from version 10 on; nil before that.
    pub topic_id: Uuid,
    /// The offsets.
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

impl Decodable for OffsetCommitRequest {
    fn decode<B: ByteBuf>(buf: &mut B, version: i16) -> anyhow::Result<Self> {
        if version <= KNOWN_MAX {
            return KnownRequest::decode(buf, version).map(OffsetCommitRequest::from);
        }
        let request = OffsetCommitRequest {
            group_id: compact_string(buf)?,
            generation_id_or_member_epoch: buf.try_get_i32()?,
            member_id: compact_string(buf)?,
            group_instance_id: compact_nullable_string(buf)?,
            retention_time_ms: -1,
            topics: compact_array(buf, |buf| {
                let topic_id = uuid(buf)?;
                let partitions = compact_array(buf, |buf| OffsetCommitRequestPartition::decode(buf, KNOWN_MAX))?;
                skip_tagged_fields(buf)?;
                Ok(RequestTopic { name: StrBytes::default(), topic_id, partitions })
            })?,
        };
        skip_tagged_fields(buf)?;
        Ok(request)
    }
}

impl From<KnownRequest> for OffsetCommitRequest {
    fn from(request: KnownRequest) -> Self {
        let topics = request.topics.into_iter().map(|topic| RequestTopic {
            name: topic.name.0,
            topic_id: Uuid::nil(),
            partitions: topic.partitions,
        });
        OffsetCommitRequest {
            group_id: request.group_id.0,
            generation_id_or_member_epoch: request.generation_id_or_member_epoch,
            member_id: request.member_id,
            group_instance_id: request.group_instance_id,
            retention_time_ms: request.retention_time_ms,
            topics: topics.collect(),
        }
    }
}

impl HeaderVersion for OffsetCommitRequest {
    fn header_version(version: i16) -> i16 {
        KnownRequest::header_version(version.min(KNOWN_MAX))
    }
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OffsetCommitResponse {
    /// One for each topic asked for.
    pub topics: Vec<ResponseTopic>,
}

/// What became of one topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseTopic {
    /// Name, up to version 9.
    pub name: StrBytes,
    /// Id, from version 10 on.
    pub topic_id: Uuid,
    /// Partition and error code, 0 for none.
    pub partitions: Vec<(i32, i16)>,
}

impl OffsetCommitResponse {
    fn known(&self) -> KnownResponse {
        let partition =
            |(index, code): &(i32, i16)| KnownPartition::default().with_partition_index(*index).with_error_code(*code);
        let topic = |topic: &ResponseTopic| {
            let partitions = topic.partitions.iter().map(partition).collect();
            KnownTopic::default().with_name(topic.name.clone().into()).with_partitions(partitions)
        };
        KnownResponse::default().with_topics(self.topics.iter().map(topic).collect())
    }

    fn write(&self, buf: &mut impl ByteBufMut) -> anyhow::Result<()> {
        buf.put_i32(0);
        put_compact_count(buf, self.topics.len())?;
        for topic in &self.topics {
            buf.put_u128(topic.topic_id.as_u128());
            put_compact_count(buf, topic.partitions.len())?;
            for (index, code) in &topic.partitions {
                buf.put_i32(*index);
                buf.put_i16(*code);
                put_no_tagged_fields(buf);
            }
            put_no_tagged_fields(buf);
        }
        put_no_tagged_fields(buf);
        Ok(())
    }
}

impl Encodable for OffsetCommitResponse {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        if version <= KNOWN_MAX { self.known().encode(buf, version) } else { self.write(buf) }
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        if version <= KNOWN_MAX { self.known().compute_size(version) } else { written_size(|buf| self.write(buf)) }
    }
}

impl HeaderVersion for OffsetCommitResponse {
    fn header_version(version: i16) -> i16 {
        KnownResponse::header_version(version.min(KNOWN_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::testing::{assert_written, read};
    use super::*;

    const ID: Uuid = Uuid::from_u128(0xe0bea0de_74a1_4fe7_8c0a_d2bef97f3ab3);

    #[test]
    fn version_10_is_read_as_kafka_writes_it() {
        let golden = "026700000007026d026902e0bea0de74a14fe78c0ad2bef97f3ab3\
                      0200000001000000000000002a000000030278000000";
        let request: OffsetCommitRequest = read(10, golden);
        assert_eq!((&*request.group_id, &*request.member_id), ("g", "m"));
        assert_eq!((request.generation_id_or_member_epoch, request.group_instance_id.as_deref()), (7, Some("i")));
        assert_eq!(request.topics[0].topic_id, ID);
        let partition = &request.topics[0].partitions[0];
        assert_eq!((partition.partition_index, partition.committed_offset), (1, 42));
        assert_eq!((partition.committed_leader_epoch, partition.committed_metadata.as_deref()), (3, Some("x")));
    }

    #[test]
    fn every_version_of_the_answer_is_written() {
        let topic = ResponseTopic { name: StrBytes::from_static_str("t"), topic_id: ID, partitions: vec![(1, 12)] };
        let response = OffsetCommitResponse { topics: vec![topic] };
        let golden = "0000000002e0bea0de74a14fe78c0ad2bef97f3ab30200000001000c000000";
        assert_written(&response, 10, golden);
        assert_written(&response, 9, "000000000202740200000001000c000000");
        for version in 2..=10 {
            assert!(response.compute_size(version).is_ok(), "version {version}");
        }
    }
}
