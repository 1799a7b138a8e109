//! Commits, look-ups, removal and retention of offsets.

use std::sync::Arc;

use base::TopicId;
use coordinator::group::command::{CommitOffsets, DeleteOffsets, FetchOffsets, OffsetToCommit};
use coordinator::group::{Answer, Command, GroupConfig, GroupError};
use coordinator::record::Record;

use crate::harness::*;

const MINUTE_MS: i64 = 60_000;

fn short_retention() -> GroupConfig {
    GroupConfig { offsets_retention_ms: MINUTE_MS, offsets_retention_check_interval_ms: 1_000, ..test_config() }
}

/// A shard whose retention runs, as after a load.
fn sweeping() -> Shard {
    Shard::new(short_retention()).reload(short_retention())
}

fn delete(shard: &mut Shard, group_id: &str, topic: &str) -> Result<Option<GroupError>, GroupError> {
    let topics = vec![named(topic, &[0])];
    match shard.call(Command::DeleteOffsets(DeleteOffsets { group_id: group_id.into(), topics })) {
        Answer::DeleteOffsets(answer) => answer.map(|topics| topics[0].error.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_commit_outside_group_management_makes_a_group_without_protocol_type() {
    let mut shard = Shard::default();
    assert_eq!(shard.commit(simple_commit("s", "t", 7)), Ok(vec![None]));
    assert_eq!((shard.offset("s", "t", 0), shard.state("s"), shard.log.len()), (7, "Empty", 1));
}

#[test]
fn bl_088_the_leader_epoch_is_given_back_as_it_came() {
    let mut shard = Shard::default();
    for leader_epoch in [-1, 0, 3] {
        let mut commit = simple_commit("s", "t", 1);
        commit.offsets[0].leader_epoch = leader_epoch;
        commit.offsets[0].metadata = "note".into();
        shard.commit(commit).unwrap();
        let fetched = shard.fetch("s", Some(&[("t", &[0])]))[0].partitions[0].clone();
        assert_eq!((fetched.leader_epoch, &*fetched.metadata), (leader_epoch, "note"));
    }
}

#[test]
fn bl_089_the_leader_epoch_survives_a_restart() {
    let mut shard = Shard::default();
    let mut commit = simple_commit("s", "t", 1);
    commit.offsets[0].leader_epoch = 3;
    shard.commit(commit).unwrap();
    let mut shard = shard.reload(test_config());
    assert_eq!(shard.fetch("s", Some(&[("t", &[0])]))[0].partitions[0].leader_epoch, 3);
}

#[test]
fn bl_083_a_group_that_never_committed_gets_one_entry_per_partition() {
    let mut shard = Shard::default();
    let topics = shard.fetch("nobody", Some(&[("t", &[0, 1]), ("u", &[])]));
    assert_eq!((topics.len(), topics[0].partitions.len(), topics[1].partitions.len()), (2, 2, 0));
    for (index, fetched) in topics[0].partitions.iter().enumerate() {
        assert_eq!((fetched.partition, fetched.offset, fetched.leader_epoch), (index as i32, -1, -1));
        assert_eq!((&*fetched.metadata, &fetched.error), ("", &None));
    }
    assert_eq!(shard.fetch("nobody", None), vec![]);
}

#[test]
fn bl_083_without_topics_all_stored_offsets_are_told() {
    let mut shard = Shard::default();
    shard.commit(simple_commit("s", "t", 1)).unwrap();
    shard.commit(simple_commit("s", "u", 2)).unwrap();
    let topics = shard.fetch("s", None);
    let offsets: Vec<(&str, i64)> = topics.iter().map(|topic| (&*topic.topic, topic.partitions[0].offset)).collect();
    assert_eq!(offsets, [("t", 1), ("u", 2)]);
}

#[test]
fn a_member_commits_in_its_generation_only() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    assert_eq!(shard.commit(member_commit(&members[0], 1, "t", 4)), Ok(vec![None]));
    let old = shard.commit(member_commit(&members[0], 0, "t", 9));
    assert_eq!(old, Err(GroupError::IllegalGeneration { asked: 0, current: 1 }));
    let stranger = shard.commit(member_commit(&"x".into(), 1, "t", 9));
    assert!(matches!(stranger, Err(GroupError::UnknownMember { .. })));
    let outside = shard.commit(simple_commit("g", "t", 9));
    assert!(matches!(outside, Err(GroupError::UnknownMember { .. })), "the group has members");
    assert_eq!(shard.offset("g", "t", 0), 4);
}

#[test]
fn commits_are_taken_while_members_join_and_refused_until_the_assignment_is_there() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let first = shard.rejoin(&members[0]);
    assert_eq!(shard.commit(member_commit(&members[1], 1, "t", 4)), Ok(vec![None]));
    let second = shard.rejoin(&members[1]);
    for ticket in [first, second] {
        assert_eq!(shard.joined(ticket).generation, 2);
    }
    let early = shard.commit(member_commit(&members[1], 2, "t", 5));
    assert_eq!(early, Err(GroupError::RebalanceInProgress { group_id: "g".into() }));
}

#[test]
fn a_commit_of_a_generation_to_an_unknown_group_is_refused_as_the_client_understands_it() {
    let mut shard = Shard::default();
    let commit = member_commit(&"m".into(), 3, "t", 1);
    assert_eq!(shard.commit(commit.clone()), Err(GroupError::GroupNotFound { group_id: "g".into() }));
    let old = shard.commit(CommitOffsets { knows_group_not_found: false, ..commit });
    assert!(matches!(old, Err(GroupError::IllegalGeneration { .. })));
}

#[test]
fn metadata_that_is_too_long_is_refused_for_its_partition_alone() {
    let mut shard = Shard::default();
    let mut commit = simple_commit("s", "t", 1);
    let offset =
        |partition, len| OffsetToCommit { partition, metadata: "é".repeat(len).into(), ..commit.offsets[0].clone() };
    commit.offsets = vec![offset(0, 4_097), offset(1, 4_096)];
    let error = GroupError::MetadataTooLarge { len: 4_097, max: 4_096 };
    assert_eq!(shard.commit(commit), Ok(vec![Some(error), None]));
    assert_eq!((shard.offset("s", "t", 0), shard.offset("s", "t", 1)), (-1, 1));
}

#[test]
fn an_offset_of_a_transaction_is_unstable_for_those_who_ask_for_stable_ones() {
    let mut shard = Shard::default();
    let mut record = Vec::new();
    shard.commit(simple_commit("s", "t", 5)).unwrap();
    record.push(shard.log[0].clone());
    let mut shard = Shard::default();
    coordinator::Machine::load(&mut shard.machine, &record[0].key, record[0].value.as_deref(), 7).unwrap();
    let fetch = |require_stable| {
        let topics = Some(vec![named("t", &[0])]);
        Command::FetchOffsets(FetchOffsets { group_id: "s".into(), topics, require_stable })
    };
    let error = |answer| match answer {
        Answer::Fetch(topics) => (topics[0].partitions[0].offset, topics[0].partitions[0].error.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(error(shard.call(fetch(true))), (-1, Some(GroupError::UnstableOffset)));
    assert_eq!(error(shard.call(fetch(false))), (-1, None));
    coordinator::Machine::load_marker(&mut shard.machine, 7, true);
    assert_eq!(error(shard.call(fetch(true))), (5, None));
}

#[test]
fn bl_091_offsets_of_a_subscribed_topic_are_not_deleted_and_others_are() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    for topic in ["t", "other"] {
        shard.commit(member_commit(&members[0], 1, topic, 4)).unwrap();
    }
    let error = GroupError::SubscribedToTopic { group_id: "g".into(), topic: "t".into() };
    assert_eq!(delete(&mut shard, "g", "t"), Ok(Some(error)));
    assert_eq!(delete(&mut shard, "g", "other"), Ok(None));
    assert_eq!(shard.last.len(), 1);
    assert_eq!((shard.offset("g", "t", 0), shard.offset("g", "other", 0)), (4, -1));
    assert_eq!(delete(&mut shard, "g", "never"), Ok(None));
    assert!(shard.last.is_empty());
}

#[test]
fn offsets_of_a_group_without_members_are_deleted_and_an_unknown_group_is_named() {
    let mut shard = Shard::default();
    shard.commit(simple_commit("s", "t", 7)).unwrap();
    assert_eq!(delete(&mut shard, "s", "t"), Ok(None));
    assert_eq!(shard.offset("s", "t", 0), -1);
    assert_eq!(delete(&mut shard, "none", "t"), Err(GroupError::GroupNotFound { group_id: "none".into() }));
}

#[test]
fn offsets_of_a_live_group_of_another_protocol_type_are_not_deleted() {
    let mut shard = Shard::default();
    let connect =
        coordinator::group::command::Join { protocol_type: "connect".into(), member_id_required: false, ..join("w") };
    shard.send(Command::Join(connect));
    assert_eq!(delete(&mut shard, "g", "t"), Err(GroupError::NonEmptyGroup { group_id: "g".into() }));
}

#[test]
fn the_offsets_of_a_deleted_topic_go_in_every_group() {
    let mut shard = Shard::default();
    for group_id in ["a", "b"] {
        shard.commit(simple_commit(group_id, "t", 1)).unwrap();
        shard.commit(simple_commit(group_id, "u", 2)).unwrap();
    }
    let deleted: Vec<(Arc<str>, TopicId)> = vec![("t".into(), TopicId(uuid::Uuid::from_u128(1)))];
    assert_eq!(shard.call(Command::TopicsDeleted(deleted)), Answer::Done);
    assert_eq!(shard.last.len(), 2);
    for group_id in ["a", "b"] {
        assert_eq!((shard.offset(group_id, "t", 0), shard.offset(group_id, "u", 0)), (-1, 2));
    }
}

#[test]
fn bl_086_offsets_without_a_group_expire_after_their_commit_and_the_group_goes_with_the_last() {
    let mut shard = sweeping();
    shard.commit(simple_commit("s", "t", 1)).unwrap();
    shard.advance_ms(30_000);
    shard.commit(simple_commit("s", "u", 2)).unwrap();
    shard.advance_ms(31_000);
    assert_eq!((shard.offset("s", "t", 0), shard.offset("s", "u", 0), shard.state("s")), (-1, 2, "Empty"));
    shard.advance_ms(30_000);
    assert_eq!((shard.offset("s", "u", 0), shard.state("s")), (-1, "Dead"));
    let reloaded = shard.reload(short_retention()).state("s");
    assert_eq!(reloaded, "Dead");
}

#[test]
fn bl_086_offsets_of_an_empty_group_expire_a_retention_after_it_became_empty() {
    let mut shard = sweeping();
    let members = shard.stable(1);
    shard.commit(member_commit(&members[0], 1, "t", 4)).unwrap();
    for _ in 0..10 {
        shard.advance_ms(9_000);
        assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
    }
    assert_eq!(shard.offset("g", "t", 0), 4, "the topic is in use");
    shard.leave(vec![by_id(&members[0])]);
    shard.advance_ms(59_000);
    assert_eq!(shard.offset("g", "t", 0), 4);
    shard.advance_ms(2_000);
    assert_eq!((shard.offset("g", "t", 0), shard.state("g")), (-1, "Dead"));
    assert!(shard.log.len() > 3);
}

#[test]
fn bl_086_a_live_group_loses_only_what_it_no_longer_subscribes() {
    let mut shard = sweeping();
    let members = shard.stable(1);
    for topic in ["t", "former"] {
        shard.commit(member_commit(&members[0], 1, topic, 4)).unwrap();
    }
    for _ in 0..10 {
        shard.advance_ms(9_000);
        assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
    }
    assert_eq!((shard.offset("g", "t", 0), shard.offset("g", "former", 0)), (4, -1));
    assert_eq!(shard.state("g"), "Stable");
}

#[test]
fn a_retention_that_the_client_asked_for_is_kept_with_the_offset() {
    let mut shard = sweeping();
    let commit = CommitOffsets { retention_ms: Some(5 * MINUTE_MS), ..simple_commit("s", "t", 1) };
    shard.commit(commit).unwrap();
    assert!(matches!(
        &shard.last[..],
        [Record::Offset { value: Some(offset), .. }]
            if offset.expire_timestamp_ms == Some(shard.now().wall_ms + 5 * MINUTE_MS)
    ));
    shard.advance_ms(4 * MINUTE_MS);
    let mut shard = shard.reload(short_retention());
    assert_eq!(shard.offset("s", "t", 0), 1);
    shard.advance_ms(MINUTE_MS + 1_000);
    assert_eq!(shard.offset("s", "t", 0), -1);
}
