//! LeaveGroup.

use coordinator::group::command::Leave;
use coordinator::group::{Answer, Command, GroupError};

use crate::harness::*;

#[test]
fn bl_079_a_leave_during_the_round_completes_it_when_the_others_have_rejoined() {
    let mut shard = Shard::default();
    let members = shard.stable(3);
    let waiting = [shard.rejoin(&members[0]), shard.rejoin(&members[1])];
    assert_eq!(shard.state("g"), "PreparingRebalance");
    let left = shard.leave(vec![by_id(&members[2])]);
    assert_eq!(left[0].error, None);
    for ticket in waiting {
        assert_eq!(shard.joined(ticket).generation, 2);
    }
}

#[test]
fn bl_079_the_rest_rejoins_after_the_leave_and_does_not_wait_for_a_timeout() {
    let mut shard = Shard::default();
    let members = shard.stable(3);
    let first = shard.rejoin(&members[0]);
    shard.leave(vec![by_id(&members[2])]);
    assert_eq!(shard.answer(first), None);
    let second = shard.rejoin(&members[1]);
    assert_eq!((shard.joined(first).generation, shard.joined(second).generation), (2, 2));
}

#[test]
fn several_members_leave_in_one_request_and_the_unknown_are_named() {
    let mut shard = Shard::default();
    let members = shard.stable(3);
    let left = shard.leave(vec![by_id(&members[0]), by_id(&"stranger".into()), by_id(&members[1])]);
    let errors: Vec<bool> = left.iter().map(|left| left.error.is_some()).collect();
    assert_eq!(errors, [false, true, false]);
    assert_eq!(shard.state("g"), "PreparingRebalance");
    let ticket = shard.rejoin(&members[2]);
    let joined = shard.joined(ticket);
    assert_eq!((joined.leader, joined.members.len()), (members[2].clone(), 1));
}

#[test]
fn the_last_to_leave_empties_the_group_and_that_is_stored() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    shard.advance_ms(1_000);
    shard.leave(vec![by_id(&members[0])]);
    let record = shard.last_group().unwrap();
    assert_eq!((record.generation, &*record.protocol_type, record.members.len()), (2, "consumer", 0));
    assert_eq!((record.leader.clone(), record.protocol_name.clone()), (None, None));
    assert_eq!(record.state_timestamp_ms, shard.now().wall_ms);
    assert_eq!(shard.state("g"), "Empty");
}

#[test]
fn a_pending_member_can_leave() {
    let mut shard = Shard::default();
    let ticket = shard.send(Command::Join(join("c")));
    let member_id = shard.refused(ticket).member_id;
    assert_eq!(shard.leave(vec![by_id(&member_id)])[0].error, None);
    let ticket = shard.rejoin(&member_id);
    assert!(matches!(shard.refused(ticket).error, GroupError::UnknownMember { .. }));
}

#[test]
fn whoever_waits_for_a_member_that_leaves_is_told_that_it_is_unknown() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let parked = shard.rejoin(&members[0]);
    shard.leave(vec![by_id(&members[0])]);
    let refused = shard.refused(parked);
    assert_eq!(&*refused.member_id, "");
    assert!(matches!(refused.error, GroupError::UnknownMember { .. }));
}

#[test]
fn in_a_group_that_does_not_exist_every_member_is_unknown() {
    let mut shard = Shard::default();
    let left = shard.leave(vec![by_id(&"a".into()), by_id(&"b".into())]);
    assert!(left.iter().all(|left| matches!(left.error, Some(GroupError::UnknownMember { .. }))));
    assert_eq!(shard.state("g"), "Dead");
    let empty = Command::Leave(Leave { group_id: "".into(), members: Vec::new() });
    assert_eq!(shard.call(empty), Answer::Leave(Err(GroupError::InvalidGroupId)));
}
