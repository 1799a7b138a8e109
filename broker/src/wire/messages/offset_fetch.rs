//! OffsetFetch (9), versions 1 to 10. Versions 1 to 7 ask for one group, later ones for several; version 10 names topics
//! by id instead of name (KIP-848). Here every version is a list of groups.

use kafka_protocol::messages::OffsetFetchResponse as KnownResponse;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use uuid::Uuid;

/// First version with a list of groups.
const GROUPS_MIN: i16 = 8;

message! {
    /// The request as it stands on the wire.
    WireRequest: request, versions 1..=10, flexible 6 {
        /// The group, before version 8.
        group_id: StrBytes [0..=7] = StrBytes::default(),
        /// What to look up before version 8; null for all.
        topics: Option<Vec<WireTopic>> [0..=7] nullable [2..=7] = Some(Vec::new()),
        /// The groups, from version 8 on.
        groups: Vec<WireGroup> [8..] = Vec::new(),
        /// True if offsets of open transactions are to be waited for (KIP-447).
        require_stable: bool [7..] = false,
    }

    /// One topic, before version 8.
    struct WireTopic {
        /// Its name.
        name: StrBytes [0..=7] = StrBytes::default(),
        /// Its partitions to look up.
        partition_indexes: Vec<i32> [0..=7] = Vec::new(),
    }

    /// One group, from version 8 on.
    struct WireGroup {
        /// The group.
        group_id: StrBytes [8..] = StrBytes::default(),
        /// The member of the consumer protocol that asks.
        member_id: Option<StrBytes> [9..] = None,
        /// Its epoch, -1 if it is none.
        member_epoch: i32 [9..] = -1,
        /// What to look up; null for all.
        topics: Option<Vec<WireGroupTopic>> [8..] = Some(Vec::new()),
    }

    /// One topic of a group.
    struct WireGroupTopic {
        /// Its name, before version 10.
        name: StrBytes [8..=9] = StrBytes::default(),
        /// Its id, from version 10 on.
        topic_id: Uuid [10..] = Uuid::nil(),
        /// Its partitions to look up.
        partition_indexes: Vec<i32> [8..] = Vec::new(),
    }
}

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
        let request = WireRequest::decode(buf, version)?;
        let require_stable = request.require_stable;
        let groups = if version >= GROUPS_MIN {
            request.groups.into_iter().map(RequestGroup::from).collect()
        } else {
            let topics = request.topics.map(|topics| topics.into_iter().map(RequestTopic::from).collect());
            vec![RequestGroup { group_id: request.group_id, member_id: None, member_epoch: -1, topics }]
        };
        Ok(OffsetFetchRequest { groups, require_stable })
    }
}

impl From<WireGroup> for RequestGroup {
    fn from(group: WireGroup) -> RequestGroup {
        let WireGroup { group_id, member_id, member_epoch, topics } = group;
        let topics = topics.map(|topics| topics.into_iter().map(RequestTopic::from).collect());
        RequestGroup { group_id, member_id, member_epoch, topics }
    }
}

impl From<WireGroupTopic> for RequestTopic {
    fn from(topic: WireGroupTopic) -> RequestTopic {
        RequestTopic { name: topic.name, topic_id: topic.topic_id, partitions: topic.partition_indexes }
    }
}

impl From<WireTopic> for RequestTopic {
    fn from(topic: WireTopic) -> RequestTopic {
        RequestTopic { name: topic.name, topic_id: Uuid::nil(), partitions: topic.partition_indexes }
    }
}

impl HeaderVersion for OffsetFetchRequest {
    fn header_version(version: i16) -> i16 {
        WireRequest::header_version(version)
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
        OffsetFetchResponseTopics::default()
            .with_name(topic.name.clone().into())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions)
    };
    OffsetFetchResponseGroup::default()
        .with_group_id(group.group_id.clone().into())
        .with_topics(group.topics.iter().map(topic).collect())
        .with_error_code(group.error_code)
}

impl Encodable for OffsetFetchResponse {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        self.known(version).encode(buf, version)
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        self.known(version).compute_size(version)
    }
}

impl HeaderVersion for OffsetFetchResponse {
    fn header_version(version: i16) -> i16 {
        KnownResponse::header_version(version)
    }
}
