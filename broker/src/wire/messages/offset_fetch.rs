//! OffsetFetch, versions 1 to 10. Versions 1 to 7 ask for one group, later ones for several; version 10 names topics by
//! id instead of name. Here every version is a list of groups.

use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest as KnownRequest, OffsetFetchResponse as KnownResponse};
use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use uuid::Uuid;

use super::parts::{
    compact_array, compact_nullable_array, compact_string, put_compact_count, put_compact_nullable_string,
    put_compact_string, put_no_tagged_fields, skip_tagged_fields, uuid, written_size,
};
use crate::wire::primitive::compact_nullable_string;

/// Newest version that crate kafka-protocol reads and writes.
const KNOWN_MAX: i16 = 9;
/// First version with a list of groups.
const GROUPS_MIN: i16 = 8;

/// The request.
#[derive(Debug, Clone, PartialEq)]
pub struct OffsetFetchRequest {
    /// What is asked of each group.
    pub groups: Vec<RequestGroup>,
    /// Refuse offsets that an open transaction may change.
    pub require_stable: bool,
}

/// What is asked of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestGroup {
    /// `group.id`.
    pub group_id: StrBytes,
    /// Id of a member of a KIP-848 group.
    pub member_id: Option<StrBytes>,
    /// Epoch of a member of a KIP-848 group; -1 otherwise.
    pub member_epoch: i32,
    /// `None` for all that are stored.
    pub topics: Option<Vec<RequestTopic>>,
}

/// Partitions of one topic.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTopic {
    /// Name, up to version 9; empty after that.
    pub name: StrBytes,
    /// Id, from version 10 on; nil before that.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<i32>,
}

impl Decodable for OffsetFetchRequest {
    fn decode<B: ByteBuf>(buf: &mut B, version: i16) -> anyhow::Result<Self> {
        if version <= KNOWN_MAX {
            return KnownRequest::decode(buf, version).map(|request| known_request(request, version));
        }
        let groups = compact_array(buf, |buf| {
            let group = RequestGroup {
                group_id: compact_string(buf)?,
                member_id: compact_nullable_string(buf)?,
                member_epoch: buf.try_get_i32()?,
                topics: compact_nullable_array(buf, |buf| {
                    let topic_id = uuid(buf)?;
                    let partitions = compact_array(buf, |buf| Ok(buf.try_get_i32()?))?;
                    skip_tagged_fields(buf)?;
                    Ok(RequestTopic { name: StrBytes::default(), topic_id, partitions })
                })?,
            };
            skip_tagged_fields(buf)?;
            Ok(group)
        })?;
        let require_stable = buf.try_get_u8()? != 0;
        skip_tagged_fields(buf)?;
        Ok(OffsetFetchRequest { groups, require_stable })
    }
}

fn known_request(request: KnownRequest, version: i16) -> OffsetFetchRequest {
    let require_stable = request.require_stable;
    let by_name = |name: StrBytes, partitions| RequestTopic { name, topic_id: Uuid::nil(), partitions };
    let groups = if version >= GROUPS_MIN {
        let groups = request.groups.into_iter().map(|group| RequestGroup {
            group_id: group.group_id.0,
            member_id: group.member_id,
            member_epoch: group.member_epoch,
            topics: group
                .topics
                .map(|topics| topics.into_iter().map(|topic| by_name(topic.name.0, topic.partition_indexes)).collect()),
        });
        groups.collect()
    } else {
        let topics = request
            .topics
            .map(|topics| topics.into_iter().map(|topic| by_name(topic.name.0, topic.partition_indexes)).collect());
        vec![RequestGroup { group_id: request.group_id.0, member_id: None, member_epoch: -1, topics }]
    };
    OffsetFetchRequest { groups, require_stable }
}

impl HeaderVersion for OffsetFetchRequest {
    fn header_version(version: i16) -> i16 {
        KnownRequest::header_version(version.min(KNOWN_MAX))
    }
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OffsetFetchResponse {
    /// One for each group asked for.
    pub groups: Vec<ResponseGroup>,
}

/// The offsets of one group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseGroup {
    /// `group.id`.
    pub group_id: StrBytes,
    /// 0 for none; then there are no topics.
    pub error_code: i16,
    /// The offsets.
    pub topics: Vec<ResponseTopic>,
}

/// The offsets of one topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseTopic {
    /// Name, up to version 9.
    pub name: StrBytes,
    /// Id, from version 10 on.
    pub topic_id: Uuid,
    /// One for each partition.
    pub partitions: Vec<ResponsePartition>,
}

/// The offset of one partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponsePartition {
    /// Index of the partition.
    pub partition: i32,
    /// -1 for none.
    pub committed_offset: i64,
    /// -1 for none.
    pub committed_leader_epoch: i32,
    /// The client's own text.
    pub metadata: Option<StrBytes>,
    /// 0 for none.
    pub error_code: i16,
}

impl OffsetFetchResponse {
    fn known(&self, version: i16) -> KnownResponse {
        if version >= GROUPS_MIN {
            return KnownResponse::default().with_groups(self.groups.iter().map(known_group).collect());
        }
        let Some(group) = self.groups.first() else { return KnownResponse::default() };
        let partition = |partition: &ResponsePartition| {
            OffsetFetchResponsePartition::default()
                .with_partition_index(partition.partition)
                .with_committed_offset(partition.committed_offset)
                .with_committed_leader_epoch(if version >= 5 { partition.committed_leader_epoch } else { -1 })
                .with_metadata(partition.metadata.clone())
                .with_error_code(partition.error_code)
        };
        let topic = |topic: &ResponseTopic| {
            let partitions = topic.partitions.iter().map(partition).collect();
            OffsetFetchResponseTopic::default().with_name(topic.name.clone().into()).with_partitions(partitions)
        };
        // Before version 2 there is no place for the error of the whole group; the handler names it per partition.
        KnownResponse::default()
            .with_topics(group.topics.iter().map(topic).collect())
            .with_error_code(if version >= 2 { group.error_code } else { 0 })
    }

    fn write(&self, buf: &mut impl ByteBufMut) -> anyhow::Result<()> {
        buf.put_i32(0);
        put_compact_count(buf, self.groups.len())?;
        for group in &self.groups {
            put_compact_string(buf, &group.group_id)?;
            put_compact_count(buf, group.topics.len())?;
            for topic in &group.topics {
                buf.put_u128(topic.topic_id.as_u128());
                put_compact_count(buf, topic.partitions.len())?;
                for partition in &topic.partitions {
                    buf.put_i32(partition.partition);
                    buf.put_i64(partition.committed_offset);
                    buf.put_i32(partition.committed_leader_epoch);
                    put_compact_nullable_string(buf, partition.metadata.as_deref())?;
                    buf.put_i16(partition.error_code);
                    put_no_tagged_fields(buf);
                }
                put_no_tagged_fields(buf);
            }
            buf.put_i16(group.error_code);
            put_no_tagged_fields(buf);
        }
        put_no_tagged_fields(buf);
        Ok(())
    }
}

fn known_group(group: &ResponseGroup) -> OffsetFetchResponseGroup {
    let partition = |partition: &ResponsePartition| {
        OffsetFetchResponsePartitions::default()
            .with_partition_index(partition.partition)
            .with_committed_offset(partition.committed_offset)
            .with_committed_leader_epoch(partition.committed_leader_epoch)
            .with_metadata(partition.metadata.clone())
            .with_error_code(partition.error_code)
    };
    let topic = |topic: &ResponseTopic| {
        let partitions = topic.partitions.iter().map(partition).collect();
        OffsetFetchResponseTopics::default().with_name(topic.name.clone().into()).with_partitions(partitions)
    };
    OffsetFetchResponseGroup::default()
        .with_group_id(group.group_id.clone().into())
        .with_topics(group.topics.iter().map(topic).collect())
        .with_error_code(group.error_code)
}

impl Encodable for OffsetFetchResponse {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        if version <= KNOWN_MAX { self.known(version).encode(buf, version) } else { self.write(buf) }
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        match version {
            ..=KNOWN_MAX => self.known(version).compute_size(version),
            _ => written_size(|buf| self.write(buf)),
        }
    }
}

impl HeaderVersion for OffsetFetchResponse {
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
        let golden = "030267026d0000000502e0bea0de74a14fe78c0ad2bef97f3ab3\
                      0300000000000000010000026800ffffffff00000100";
        let request: OffsetFetchRequest = read(10, golden);
        assert!(request.require_stable);
        assert_eq!((&*request.groups[0].group_id, request.groups[0].member_epoch), ("g", 5));
        let topics = request.groups[0].topics.as_ref().unwrap();
        assert_eq!((topics[0].topic_id, &topics[0].partitions[..]), (ID, &[0, 1][..]));
        assert_eq!((&*request.groups[1].group_id, &request.groups[1].topics), ("h", &None));
    }

    #[test]
    fn every_version_of_the_answer_is_written() {
        let partition = ResponsePartition {
            partition: 1,
            committed_offset: 42,
            committed_leader_epoch: 3,
            metadata: Some(StrBytes::from_static_str("x")),
            error_code: 88,
        };
        let topic = ResponseTopic { name: StrBytes::from_static_str("t"), topic_id: ID, partitions: vec![partition] };
        let group = ResponseGroup { group_id: StrBytes::from_static_str("g"), error_code: 16, topics: vec![topic] };
        let response = OffsetFetchResponse { groups: vec![group] };
        let golden = "0000000002026702e0bea0de74a14fe78c0ad2bef97f3ab3\
                      0200000001000000000000002a0000000302780058000000100000";
        assert_written(&response, 10, golden);
        for version in 1..=10 {
            assert!(response.compute_size(version).is_ok(), "version {version}");
        }
    }
}
