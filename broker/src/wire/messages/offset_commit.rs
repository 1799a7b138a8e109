//! OffsetCommit (8), whose version 10 names topics by id (KIP-848).

use kafka_protocol::messages::OffsetCommitResponse as KnownResponse;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition as KnownPartition, OffsetCommitResponseTopic as KnownTopic,
};
use kafka_protocol::protocol::buf::ByteBufMut;
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};
use uuid::Uuid;

message! {
    /// Commits offsets of a group.
    OffsetCommitRequest: request, versions 2..=10, flexible 8 {
        /// The group.
        group_id: StrBytes [0..] = StrBytes::default(),
        /// Generation of the classic protocol or member epoch of the consumer protocol; -1 outside a group.
        generation_id_or_member_epoch: i32 [1..] = -1,
        /// The member, empty outside a group.
        member_id: StrBytes [1..] = StrBytes::default(),
        /// The member's `group.instance.id`.
        group_instance_id: Option<StrBytes> [7..] = None,
        /// Milliseconds to keep the offsets, -1 for the broker's setting.
        retention_time_ms: i64 [2..=4] = -1,
        /// What to commit.
        topics: Vec<RequestTopic> [0..] = Vec::new(),
    }

    /// One topic.
    struct RequestTopic {
        /// Its name, before version 10.
        name: StrBytes [0..=9] = StrBytes::default(),
        /// Its id, from version 10 on.
        topic_id: Uuid [10..] = Uuid::nil(),
        /// What to commit of it.
        partitions: Vec<RequestPartition> [0..] = Vec::new(),
    }

    /// One partition.
    struct RequestPartition {
        /// Its index.
        partition_index: i32 [0..] = 0,
        /// The next offset to be read.
        committed_offset: i64 [0..] = 0,
        /// Leader epoch of the last record that was read, -1 if not known.
        committed_leader_epoch: i32 [6..] = -1,
        /// Whatever the client likes to keep with it.
        committed_metadata: Option<StrBytes> [0..] = Some(StrBytes::default()),
    }
}

/// The answer. Crate kafka-protocol knows all its versions; only errors differ from one answer to another.
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
            KnownTopic::default()
                .with_name(topic.name.clone().into())
                .with_topic_id(topic.topic_id)
                .with_partitions(topic.partitions.iter().map(partition).collect())
        };
        KnownResponse::default().with_topics(self.topics.iter().map(topic).collect())
    }
}

impl Encodable for OffsetCommitResponse {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        self.known().encode(buf, version)
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        self.known().compute_size(version)
    }
}

impl HeaderVersion for OffsetCommitResponse {
    fn header_version(version: i16) -> i16 {
        KnownResponse::header_version(version)
    }
}
