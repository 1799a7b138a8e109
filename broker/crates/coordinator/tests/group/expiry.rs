//! What time does to members: sessions, pending ids, rounds, missing syncs.

use coordinator::Machine;
use coordinator::group::command::Join;
use coordinator::group::{Command, GroupError};

use crate::harness::*;

#[test]
fn a_silent_member_is_removed_and_the_others_join_anew() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    shard.advance_ms(9_999);
    assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
    shard.advance_ms(1);
    assert_eq!(shard.heartbeat(&members[0], 1), Err(GroupError::RebalanceInProgress { group_id: "g".into() }));
    assert!(matches!(shard.heartbeat(&members[1], 1), Err(GroupError::UnknownMember { .. })));
    let ticket = shard.rejoin(&members[0]);
    assert_eq!(shard.joined(ticket).members.len(), 1);
}

#[test]
fn the_last_silent_member_leaves_an_empty_group() {
    let mut shard = Shard::default();
    shard.stable(1);
    shard.advance_ms(10_000);
    assert_eq!(shard.last_group().unwrap().members.len(), 0);
    assert_eq!(shard.state("g"), "Empty");
}

#[test]
fn bl_077_a_pending_member_neither_holds_an_empty_group_up_nor_stays_for_ever() {
    let mut shard = Shard::default();
    shard.stable(1);
    shard.advance_ms(5_000);
    let pending = shard.send(Command::Join(join("pending")));
    let pending = shard.refused(pending).member_id;
    shard.advance_ms(5_000);
    // The only real member is gone. A group without members has a rebalance timeout of 0.
    assert_eq!(shard.state("g"), "Empty");
    shard.advance_ms(5_000);
    let ticket = shard.rejoin(&pending);
    assert!(matches!(shard.refused(ticket).error, GroupError::UnknownMember { .. }));
    let next = shard.machine.next_deadline_ms().unwrap_or(i64::MAX);
    assert!(next > shard.now_ms, "nothing is left to wait for");
}

#[test]
fn bl_077_a_round_waits_for_a_pending_member_until_its_id_expires() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    let pending = shard.send(Command::Join(join("pending")));
    shard.refused(pending);
    let ticket = shard.rejoin(&members[0]);
    assert_eq!(shard.answer(ticket), None);
    shard.advance_ms(10_000);
    assert_eq!(shard.joined(ticket).generation, 2);
}

#[test]
fn a_round_closes_at_the_rebalance_timeout_and_drops_who_has_not_joined() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let ticket = shard.rejoin(&members[0]);
    for _ in 0..6 {
        assert_eq!(shard.answer(ticket), None);
        // It lives, but does not join.
        let _ = shard.heartbeat(&members[1], 1);
        shard.advance_ms(9_000);
        let _ = shard.heartbeat(&members[1], 1);
        shard.advance_ms(1_000);
    }
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, joined.members.len()), (2, 1));
}

#[test]
fn when_the_leader_is_late_another_member_leads() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    shard.enter("new");
    let ticket = shard.rejoin(&members[1]);
    shard.advance_ms(10_000);
    let joined = shard.joined(ticket);
    assert_ne!(joined.leader, members[0]);
    assert_eq!(joined.generation, 2);
}

#[test]
fn a_member_that_waits_for_others_is_alive() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let ticket = shard.rejoin(&members[0]);
    for _ in 0..4 {
        let _ = shard.heartbeat(&members[1], 1);
        shard.advance_ms(9_000);
    }
    assert_eq!(shard.answer(ticket), None, "36 s is beyond its session timeout");
    let other = shard.rejoin(&members[1]);
    assert_eq!((shard.joined(ticket).generation, shard.joined(other).generation), (2, 2));
}

#[test]
fn a_new_member_that_waits_too_long_is_let_go() {
    let mut shard = Shard::default();
    let long = Join { rebalance_timeout_ms: 3_600_000, session_timeout_ms: 1_800_000, ..join("a") };
    let ticket = shard.send(Command::Join(Join { member_id_required: false, ..long.clone() }));
    shard.advance_ms(3_000);
    let member = shard.joined(ticket).member_id;
    shard.settle(&[member], 1);
    let ticket = shard.send(Command::Join(Join { client_id: "b".into(), member_id_required: false, ..long }));
    shard.advance_ms(299_999);
    assert_eq!(shard.answer(ticket), None);
    shard.advance_ms(1);
    assert!(matches!(shard.refused(ticket).error, GroupError::UnknownMember { .. }));
}

#[test]
fn members_that_never_ask_for_their_assignment_are_dropped_at_the_rebalance_timeout() {
    let mut shard = Shard::default();
    let ids = [shard.enter("a"), shard.enter("b")];
    shard.advance_ms(6_000);
    let joined = ids.map(|(_, ticket)| shard.joined(ticket));
    let leader = joined[0].leader.clone();
    let follower = joined.iter().find(|joined| joined.member_id != leader).unwrap().member_id.clone();
    let ticket = shard.sync(&leader, 1, &[(&leader, "L")]);
    assert!(shard.synced(ticket).is_ok());
    for _ in 0..12 {
        let _ = shard.heartbeat(&leader, 1);
        let _ = shard.heartbeat(&follower, 1);
        shard.advance_ms(5_000);
    }
    assert!(matches!(shard.heartbeat(&follower, 1), Err(GroupError::UnknownMember { .. })));
    assert_eq!(shard.state("g"), "PreparingRebalance");
}

#[test]
fn a_leader_that_never_assigns_is_dropped_and_the_waiting_join_anew() {
    let mut shard = Shard::default();
    let ids = [shard.enter("a"), shard.enter("b")];
    shard.advance_ms(6_000);
    let joined = ids.map(|(_, ticket)| shard.joined(ticket));
    let leader = joined[0].leader.clone();
    let follower = joined.iter().find(|joined| joined.member_id != leader).unwrap().member_id.clone();
    let waiting = shard.sync(&follower, 1, &[]);
    shard.advance_ms(10_000);
    assert_eq!(shard.synced(waiting), Err(GroupError::RebalanceInProgress { group_id: "g".into() }));
    let ticket = shard.rejoin(&follower);
    assert_eq!(shard.joined(ticket).leader, follower);
}

#[test]
fn a_commit_keeps_a_session_alive() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    for offset in 0..5 {
        shard.advance_ms(9_000);
        assert!(shard.commit(member_commit(&members[0], 1, "t", offset)).is_ok());
    }
    assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
}
