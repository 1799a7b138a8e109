//! DescribeGroups, ListGroups, DeleteGroups.

use coordinator::group::command::{DescribedGroup, ListGroups, ListedGroup};
use coordinator::group::{Answer, Command, GroupError, GroupId};
use coordinator::record::Record;

use crate::harness::*;

fn list(shard: &mut Shard, states: &[&str], types: &[&str]) -> Vec<ListedGroup> {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    match shard.call(Command::List(ListGroups { states: names(states), types: names(types) })) {
        Answer::List(mut groups) => {
            groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
            groups
        }
        other => panic!("{other:?}"),
    }
}

fn ids(groups: &[ListedGroup]) -> Vec<&str> {
    groups.iter().map(|group| &*group.group_id).collect()
}

fn describe(shard: &mut Shard, group_id: &str) -> DescribedGroup {
    match shard.call(Command::Describe(vec![group_id.into()])) {
        Answer::Describe(groups) => groups[0].clone(),
        other => panic!("{other:?}"),
    }
}

fn delete(shard: &mut Shard, group_ids: &[&str]) -> Vec<(GroupId, Option<GroupError>)> {
    match shard.call(Command::DeleteGroups(group_ids.iter().map(|id| GroupId::from(*id)).collect())) {
        Answer::DeleteGroups(answers) => answers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bl_080_groups_are_listed_by_state_and_type_whatever_the_case() {
    let mut shard = Shard::default();
    shard.stable(1);
    shard.commit(simple_commit("s", "t", 1)).unwrap();
    assert_eq!(ids(&list(&mut shard, &[], &[])), ["g", "s"]);
    assert_eq!(ids(&list(&mut shard, &["Stable"], &[])), ["g"]);
    assert_eq!(ids(&list(&mut shard, &[" stable "], &[])), ["g"]);
    assert_eq!(ids(&list(&mut shard, &["Empty"], &["Classic"])), ["s"]);
    assert_eq!(ids(&list(&mut shard, &["EMPTY", "Stable"], &[])), ["g", "s"]);
    assert_eq!(ids(&list(&mut shard, &["Dead"], &[])), Vec::<&str>::new());
    for group_type in ["consumer", "share", "streams", "nonsense"] {
        assert_eq!(ids(&list(&mut shard, &[], &[group_type])), Vec::<&str>::new());
    }
}

#[test]
fn bl_082_groups_without_members_are_listed_and_an_offsets_only_group_has_no_protocol_type() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    shard.commit(member_commit(&members[0], 1, "t", 1)).unwrap();
    shard.leave(vec![by_id(&members[0])]);
    shard.commit(simple_commit("s", "t", 1)).unwrap();
    let mut shard = shard.reload(test_config());
    let groups = list(&mut shard, &[], &[]);
    assert_eq!(ids(&groups), ["g", "s"]);
    assert_eq!((&*groups[0].protocol_type, groups[0].state, groups[0].group_type), ("consumer", "Empty", "classic"));
    assert_eq!((&*groups[1].protocol_type, groups[1].state), ("", "Empty"));
}

#[test]
fn a_stable_group_is_described_with_metadata_and_assignments() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let group = describe(&mut shard, "g");
    assert_eq!((group.state, &*group.protocol_type, &*group.protocol_name), ("Stable", "consumer", "range"));
    assert_eq!((group.members.len(), group.error), (2, None));
    for member in &group.members {
        assert_eq!(member.assignment, member.member_id.as_bytes());
        assert_eq!((&member.metadata, &*member.client_host), (&subscription(&["t"]), "/127.0.0.1"));
    }
    shard.rejoin(&members[0]);
    let group = describe(&mut shard, "g");
    assert_eq!((group.state, &*group.protocol_name), ("PreparingRebalance", ""));
    assert!(group.members.iter().all(|member| member.metadata.is_empty()));
}

#[test]
fn a_group_that_is_not_there_is_dead() {
    let group = describe(&mut Shard::default(), "none");
    assert_eq!((group.state, group.members.len()), ("Dead", 0));
    assert_eq!(group.error, Some(GroupError::GroupNotFound { group_id: "none".into() }));
}

#[test]
fn bl_091_empty_and_offsets_only_groups_are_deleted_live_and_unknown_ones_are_not() {
    let mut shard = Shard::default();
    shard.stable(1);
    shard.commit(simple_commit("s", "t", 1)).unwrap();
    let answers = delete(&mut shard, &["g", "s", "none"]);
    assert_eq!(
        answers,
        [
            ("g".into(), Some(GroupError::NonEmptyGroup { group_id: "g".into() })),
            ("s".into(), None),
            ("none".into(), Some(GroupError::GroupNotFound { group_id: "none".into() })),
        ]
    );
    let expected = [
        Record::Offset { group_id: "s".into(), topic: "t".into(), partition: 0, value: None },
        Record::Group { group_id: "s".into(), value: None },
    ];
    assert_eq!(shard.last, expected);
    assert_eq!((shard.state("s"), shard.offset("s", "t", 0)), ("Dead", -1));
    assert_eq!(shard.reload(test_config()).state("s"), "Dead");
}
