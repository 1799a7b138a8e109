//! Settings of the group coordinator, under Kafka's names.

/// Values that rule classic groups and committed offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max_ms: i32,
    /// `group.max.size`: most members of a group.
    pub group_size_max: usize,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members before its first round.
    pub initial_rebalance_delay_ms: i32,
    /// How long a new member's first join may stay parked; Kafka fixes it at 5 minutes.
    pub new_member_join_timeout_ms: i32,
    /// Most ids of a group that are given out and not yet used. Kafka has no such limit; without one, a client that asks
    /// again and again for a new id would fill the memory.
    pub pending_joins_max: usize,
    /// `offset.metadata.max.bytes`, counted in characters as Kafka counts it.
    pub offset_metadata_len_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub offsets_retention_check_interval_ms: i64,
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig {
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 1_800_000,
            group_size_max: i32::MAX as usize,
            initial_rebalance_delay_ms: 3_000,
            new_member_join_timeout_ms: 300_000,
            pending_joins_max: 10_000,
            offset_metadata_len_max: 4_096,
            offsets_retention_ms: 10_080 * 60_000,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}
