//! Why the group coordinator refuses something. One enum serves every group operation, because they share the checks
//! of member, instance and generation; the shell maps each variant to one of Kafka's codes.

use super::{GroupId, InstanceId, MemberId};

/// A refusal, with the facts that led to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The operation does not take an empty group id.
    #[error("the group id is empty")]
    InvalidGroupId,
    /// The session timeout lies outside what the broker allows.
    #[error(
        "session timeout {asked_ms} ms is outside {min_ms}..={max_ms} ms \
         (group.min.session.timeout.ms, group.max.session.timeout.ms)"
    )]
    InvalidSessionTimeout {
        /// What the member asked for.
        asked_ms: i32,
        /// `group.min.session.timeout.ms`.
        min_ms: i32,
        /// `group.max.session.timeout.ms`.
        max_ms: i32,
    },
    /// A new dynamic member shall join again with the id given to it (KIP-394).
    #[error("join again with member id {member_id}")]
    MemberIdRequired {
        /// The id to use.
        member_id: MemberId,
    },
    /// The group has no such member.
    #[error("member '{member_id}' is not in group '{group_id}'")]
    UnknownMember {
        /// The group.
        group_id: GroupId,
        /// The id that was given.
        member_id: MemberId,
    },
    /// Another process has taken over the instance id (KIP-345).
    #[error("instance '{instance_id}' now belongs to member '{current}'")]
    FencedInstance {
        /// The instance id that both claim.
        instance_id: InstanceId,
        /// The member that holds it.
        current: MemberId,
    },
    /// The generation is not the group's.
    #[error("generation {asked} is not the current one, {current}")]
    IllegalGeneration {
        /// What the member believes.
        asked: i32,
        /// What holds.
        current: i32,
    },
    /// The member's protocol type or protocols do not fit those of the group.
    #[error("the protocols offered to group '{group_id}' have nothing in common with those of its members")]
    InconsistentProtocol {
        /// The group.
        group_id: GroupId,
    },
    /// The group is full, or too many ids are given out and not used.
    #[error("group '{group_id}' takes no more than {limit} members (group.max.size)")]
    MaxSizeReached {
        /// The group.
        group_id: GroupId,
        /// `group.max.size`, or the most ids given out at a time.
        limit: usize,
    },
    /// The members must join again.
    #[error("group '{group_id}' is rebalancing")]
    RebalanceInProgress {
        /// The group.
        group_id: GroupId,
    },
    /// There is no such group.
    #[error("group '{group_id}' does not exist")]
    GroupNotFound {
        /// The group.
        group_id: GroupId,
    },
    /// The group belongs to another protocol than the classic one.
    #[error("group '{group_id}' is not a classic group")]
    NotClassic {
        /// The group.
        group_id: GroupId,
    },
    /// The group still has members.
    #[error("group '{group_id}' is not empty")]
    NonEmptyGroup {
        /// The group.
        group_id: GroupId,
    },
    /// The group reads the topic whose offsets shall be deleted.
    #[error("group '{group_id}' is subscribed to topic '{topic}'")]
    SubscribedToTopic {
        /// The group.
        group_id: GroupId,
        /// The topic.
        topic: std::sync::Arc<str>,
    },
    /// The text beside a committed offset is too long.
    #[error("offset metadata has {len} characters, {max} are allowed (offset.metadata.max.bytes)")]
    MetadataTooLarge {
        /// Length of the text.
        len: usize,
        /// `offset.metadata.max.bytes`.
        max: usize,
    },
    /// A transaction that commits this offset is still open.
    #[error("a transaction on this offset is still open")]
    UnstableOffset,
}
