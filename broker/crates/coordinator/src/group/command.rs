//! What can be asked of the group coordinator, and what it answers.

use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs, TopicId};
use bytes::Bytes;
use uuid::Uuid;

use super::error::GroupError;
use super::{GroupId, InstanceId, MemberId};

/// A protocol (assignor) that a member offers, with its metadata for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Name of the protocol.
    pub name: Arc<str>,
    /// Opaque to the coordinator, except the subscription of consumers.
    pub metadata: Bytes,
}

/// A request to take part in the next generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The group.
    pub group_id: GroupId,
    /// Empty for a member that has no id yet.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// `client.id`.
    pub client_id: Arc<str>,
    /// Address of the client as Java prints it: `/127.0.0.1`.
    pub client_host: Arc<str>,
    /// `consumer`, `connect` and so on.
    pub protocol_type: Arc<str>,
    /// Offered protocols, the preferred one first.
    pub protocols: Vec<Protocol>,
    /// How long the member may be silent.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for the member.
    pub rebalance_timeout_ms: i32,
    /// The client understands MEMBER_ID_REQUIRED (JoinGroup 4 and newer).
    pub member_id_required: bool,
    /// The client understands that a leader may skip the assignment (JoinGroup 9 and newer, KIP-814).
    pub may_skip_assignment: bool,
    /// Makes the id of a new member unique.
    pub unique: Uuid,
}

/// The member is in the generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Id of the member.
    pub member_id: MemberId,
    /// Number of the generation.
    pub generation: i32,
    /// Type of the group.
    pub protocol_type: Option<Arc<str>>,
    /// Protocol chosen for the generation.
    pub protocol_name: Option<Arc<str>>,
    /// Member id of the leader.
    pub leader: MemberId,
    /// The leader need not compute an assignment.
    pub skip_assignment: bool,
    /// Every member with its metadata, for the leader; empty for the others.
    pub members: Vec<JoinedMember>,
}

/// A member as the leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// Id of the member.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// A refused join. The member id goes into the answer, which clients read even then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRefused {
    /// Id to show to the client.
    pub member_id: MemberId,
    /// Why.
    pub error: GroupError,
}

/// A member's turn to get its assignment; the leader's brings the assignments of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// The group.
    pub group_id: GroupId,
    /// The member.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// Generation that the member joined.
    pub generation: i32,
    /// What the member believes to be the group's type; `None` from old clients.
    pub protocol_type: Option<Arc<str>>,
    /// What the member believes to be the chosen protocol; `None` from old clients.
    pub protocol_name: Option<Arc<str>>,
    /// Assignments by member, from the leader.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// A member's assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// Type of the group.
    pub protocol_type: Option<Arc<str>>,
    /// Chosen protocol.
    pub protocol_name: Option<Arc<str>>,
    /// Opaque to the coordinator.
    pub assignment: Bytes,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The group.
    pub group_id: GroupId,
    /// The member.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// Generation that the member is in.
    pub generation: i32,
}

/// A member that shall leave: by its id, or a static member by its instance id alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Empty when only the instance id is known.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
}

/// Members that shall leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The group.
    pub group_id: GroupId,
    /// Who.
    pub members: Vec<Leaving>,
}

/// What became of one member's leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// As asked.
    pub member: Leaving,
    /// `None` when it has left.
    pub error: Option<GroupError>,
}

/// One offset to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetToCommit {
    /// Topic.
    pub topic: Arc<str>,
    /// Partition of the topic.
    pub partition: i32,
    /// Next offset to read.
    pub offset: Offset,
    /// As the client gave it; -1 for none.
    pub leader_epoch: LeaderEpoch,
    /// The client's own text.
    pub metadata: Arc<str>,
}

/// Offsets to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOffsets {
    /// The group.
    pub group_id: GroupId,
    /// Empty for a commit outside group management.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// Generation; negative for a commit outside group management.
    pub generation: i32,
    /// Retention asked for by OffsetCommit 2 to 4; `None` for the broker's.
    pub retention_ms: Option<i64>,
    /// The client understands GROUP_ID_NOT_FOUND (OffsetCommit 9 and newer).
    pub knows_group_not_found: bool,
    /// The offsets.
    pub offsets: Vec<OffsetToCommit>,
}

/// Partitions of a topic by which offsets are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPartitions {
    /// Topic.
    pub topic: Arc<str>,
    /// Id of the topic where the client named it by id, otherwise zero.
    pub topic_id: TopicId,
    /// Partitions.
    pub partitions: Vec<i32>,
}

/// Offsets to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOffsets {
    /// The group.
    pub group_id: GroupId,
    /// `None` asks for all that are stored.
    pub topics: Option<Vec<TopicPartitions>>,
    /// Refuse offsets that an open transaction may change.
    pub require_stable: bool,
}

/// An offset that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedOffset {
    /// Partition of the topic.
    pub partition: i32,
    /// -1 when there is none.
    pub offset: Offset,
    /// As it was committed; -1 for none.
    pub leader_epoch: LeaderEpoch,
    /// The client's own text.
    pub metadata: Arc<str>,
    /// Set when the offset cannot be told.
    pub error: Option<GroupError>,
}

/// The offsets of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedTopic {
    /// Topic.
    pub topic: Arc<str>,
    /// As asked.
    pub topic_id: TopicId,
    /// One entry per partition asked for, in the order asked.
    pub partitions: Vec<FetchedOffset>,
}

/// Offsets to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteOffsets {
    /// The group.
    pub group_id: GroupId,
    /// Which.
    pub topics: Vec<TopicPartitions>,
}

/// What became of one topic whose offsets were to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedOffsets {
    /// Topic.
    pub topic: Arc<str>,
    /// As asked.
    pub partitions: Vec<i32>,
    /// Holds for each of the partitions.
    pub error: Option<GroupError>,
}

/// A group with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Kafka's name of the state; `Dead` when there is no such group.
    pub state: &'static str,
    /// Empty for a group that never had a member.
    pub protocol_type: Arc<str>,
    /// Chosen protocol; empty unless stable.
    pub protocol_name: Arc<str>,
    /// The members.
    pub members: Vec<DescribedMember>,
    /// Set when there is no such group.
    pub error: Option<GroupError>,
}

/// A member as tools see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// Id of the member.
    pub member_id: MemberId,
    /// Set for static members.
    pub instance_id: Option<InstanceId>,
    /// `client.id`.
    pub client_id: Arc<str>,
    /// Address of the client.
    pub client_host: Arc<str>,
    /// Its metadata for the chosen protocol; empty unless the group is stable.
    pub metadata: Bytes,
    /// Its assignment.
    pub assignment: Bytes,
}

/// Which groups to list. Both filters ignore case, and an empty one lets all pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListGroups {
    /// Names of states.
    pub states: Vec<String>,
    /// Names of group types.
    pub types: Vec<String>,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Empty for a group that never had a member.
    pub protocol_type: Arc<str>,
    /// Kafka's name of the state.
    pub state: &'static str,
    /// Kafka's name of the type.
    pub group_type: &'static str,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Answered by [`Answer::Join`], when the round is complete.
    Join(Join),
    /// Answered by [`Answer::Sync`], when the leader has brought the assignments.
    Sync(Sync),
    /// Answered by [`Answer::Heartbeat`].
    Heartbeat(Heartbeat),
    /// Answered by [`Answer::Leave`].
    Leave(Leave),
    /// Answered by [`Answer::Commit`].
    CommitOffsets(CommitOffsets),
    /// Answered by [`Answer::Fetch`].
    FetchOffsets(FetchOffsets),
    /// Answered by [`Answer::DeleteOffsets`].
    DeleteOffsets(DeleteOffsets),
    /// Answered by [`Answer::Describe`].
    Describe(Vec<GroupId>),
    /// Answered by [`Answer::List`].
    List(ListGroups),
    /// Answered by [`Answer::DeleteGroups`].
    DeleteGroups(Vec<GroupId>),
    /// The topics are gone, and their offsets go with them. Answered by [`Answer::Done`].
    TopicsDeleted(Vec<(Arc<str>, TopicId)>),
}

/// What is answered, one variant per command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Command::Join`].
    Join(Result<Joined, JoinRefused>),
    /// To [`Command::Sync`].
    Sync(Result<Synced, GroupError>),
    /// To [`Command::Heartbeat`].
    Heartbeat(Result<(), GroupError>),
    /// To [`Command::Leave`]: one entry per member asked for.
    Leave(Result<Vec<Left>, GroupError>),
    /// To [`Command::CommitOffsets`]: one entry per offset, in the order given.
    Commit(Result<Vec<Option<GroupError>>, GroupError>),
    /// To [`Command::FetchOffsets`].
    Fetch(Vec<FetchedTopic>),
    /// To [`Command::DeleteOffsets`].
    DeleteOffsets(Result<Vec<DeletedOffsets>, GroupError>),
    /// To [`Command::Describe`]: one entry per group asked for.
    Describe(Vec<DescribedGroup>),
    /// To [`Command::List`].
    List(Vec<ListedGroup>),
    /// To [`Command::DeleteGroups`]: one entry per group asked for.
    DeleteGroups(Vec<(GroupId, Option<GroupError>)>),
    /// To [`Command::TopicsDeleted`].
    Done,
}

/// When an offset committed now with a retention of its own expires.
pub(super) fn expire_timestamp_ms(now_ms: TimestampMs, retention_ms: Option<i64>) -> Option<TimestampMs> {
    retention_ms.map(|retention_ms| now_ms.saturating_add(retention_ms))
}
