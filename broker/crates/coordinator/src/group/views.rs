//! DescribeGroups, ListGroups, and what metrics show.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::GroupId;
use super::classic::{ClassicGroup, Member, State};
use super::command::{DescribedGroup, DescribedMember, ListGroups, ListedGroup};
use super::machine::GroupMachine;
use crate::record::ForeignKind;

/// Kafka's name of the type of the groups that this machine serves.
const CLASSIC: &str = "classic";

/// A group as metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSummary {
    /// The group.
    pub group_id: GroupId,
    /// Kafka's name of the state.
    pub state: &'static str,
    /// Number of members.
    pub members: usize,
    /// Committed offsets.
    pub offsets: Vec<SummaryOffset>,
}

/// A committed offset as metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryOffset {
    /// Topic.
    pub topic: Arc<str>,
    /// Partition of the topic.
    pub partition: i32,
    /// Next offset that the group will read.
    pub offset: base::Offset,
}

impl GroupMachine {
    /// All groups, for metrics.
    pub fn summaries(&self) -> Vec<GroupSummary> {
        self.classic_groups().map(|group| self.summary(group)).collect()
    }

    fn summary(&self, group: &ClassicGroup) -> GroupSummary {
        let topics = self.offsets().of_group(&group.id).flat_map(|(topic, partitions)| {
            partitions.map(move |(partition, committed)| SummaryOffset {
                topic: topic.clone(),
                partition,
                offset: committed.offset,
            })
        });
        GroupSummary {
            group_id: group.id.clone(),
            state: group.state.name(),
            members: group.members.len(),
            offsets: topics.collect(),
        }
    }

    /// A group that does not exist is `Dead`, which is all that clients before DescribeGroups 6 can be told.
    pub(super) fn describe(&self, group_id: GroupId) -> DescribedGroup {
        match self.existing(&group_id) {
            Ok(group) => describe_group(group),
            Err(error) => DescribedGroup {
                group_id,
                state: "Dead",
                protocol_type: Arc::default(),
                protocol_name: Arc::default(),
                members: Vec::new(),
                error: Some(error),
            },
        }
    }

    pub(super) fn list(&self, filter: &ListGroups) -> Vec<ListedGroup> {
        let lower = |names: &[String]| names.iter().map(|name| name.trim().to_lowercase()).collect();
        let (states, types): (BTreeSet<String>, BTreeSet<String>) = (lower(&filter.states), lower(&filter.types));
        if !types.is_empty() && !types.contains(CLASSIC) {
            return Vec::new();
        }
        let wanted = |group: &&ClassicGroup| states.is_empty() || states.contains(&group.state.name().to_lowercase());
        let listed = |group: &ClassicGroup| ListedGroup {
            group_id: group.id.clone(),
            protocol_type: group.protocol_type.clone().unwrap_or_default(),
            state: group.state.name(),
            group_type: CLASSIC,
        };
        self.classic_groups().filter(wanted).map(listed).collect()
    }
}

fn describe_group(group: &ClassicGroup) -> DescribedGroup {
    // The chosen protocol and the metadata for it are final only in a stable group.
    let protocol_name = match group.state {
        State::Stable => group.protocol_name.clone().unwrap_or_default(),
        State::Empty | State::PreparingRebalance | State::CompletingRebalance => Arc::default(),
    };
    let describe_member = |member: &Arc<Member>| DescribedMember {
        member_id: member.id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: match group.state {
            State::Stable => member.metadata(&protocol_name).cloned().unwrap_or_default(),
            State::Empty | State::PreparingRebalance | State::CompletingRebalance => Bytes::new(),
        },
        assignment: member.assignment.clone(),
    };
    DescribedGroup {
        group_id: group.id.clone(),
        state: group.state.name(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        members: group.members.values().map(describe_member).collect(),
        protocol_name,
        error: None,
    }
}

impl ForeignKind {
    /// Kafka's name of the group type.
    pub fn name(self) -> &'static str {
        match self {
            ForeignKind::Consumer => "consumer",
            ForeignKind::Share => "share",
            ForeignKind::Streams => "streams",
        }
    }
}
