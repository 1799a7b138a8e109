//! JoinGroup and SyncGroup of dynamic members.

use coordinator::group::command::{Join, Protocol, Sync};
use coordinator::group::{Answer, Command, GroupConfig, GroupError, MemberId};

use crate::harness::*;

#[test]
fn a_new_dynamic_member_is_told_its_id_first_and_the_group_is_stored() {
    let mut shard = Shard::default();
    let ticket = shard.send(Command::Join(join("c")));
    let record = shard.last_group().unwrap();
    assert_eq!((&*record.protocol_type, record.generation, record.members.len()), ("", 0, 0));
    assert_eq!((record.leader.clone(), record.protocol_name.clone()), (None, None));
    assert_eq!(record.state_timestamp_ms, WALL_MS);
    let refused = shard.refused(ticket);
    assert!(refused.member_id.starts_with("c-"));
    assert_eq!(refused.error, GroupError::MemberIdRequired { member_id: refused.member_id.clone() });
    assert_eq!(shard.state("g"), "Empty");
}

#[test]
fn a_client_without_member_id_required_joins_at_once() {
    let mut shard = Shard::default();
    let ticket = shard.send(Command::Join(Join { member_id_required: false, ..join("c") }));
    assert_eq!(shard.answer(ticket), None);
    shard.advance_ms(3_000);
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, joined.leader == joined.member_id, joined.members.len()), (1, true, 1));
}

#[test]
fn the_first_round_waits_for_the_initial_delay_and_longer_while_members_come() {
    let mut shard = Shard::default();
    let (_, first) = shard.enter("a");
    shard.advance_ms(2_999);
    let (_, second) = shard.enter("b");
    shard.advance_ms(1);
    assert_eq!((shard.answer(first), shard.answer(second)), (None, None));
    shard.advance_ms(3_000);
    assert_eq!((shard.joined(first).generation, shard.joined(second).generation), (1, 1));
}

#[test]
fn the_initial_delay_is_not_extended_past_the_rebalance_timeout() {
    let mut shard = Shard::default();
    let quick = |client: &str| Join { rebalance_timeout_ms: 4_000, member_id_required: false, ..join(client) };
    let first = shard.send(Command::Join(quick("a")));
    for client in ["b", "c", "d"] {
        shard.advance_ms(1_999);
        shard.send(Command::Join(quick(client)));
    }
    shard.advance_ms(1_000);
    assert_eq!(shard.joined(first).generation, 1);
}

#[test]
fn only_the_leader_sees_the_members_and_all_get_their_assignments_when_it_syncs() {
    let mut shard = Shard::default();
    let ids = [shard.enter("a"), shard.enter("b")];
    shard.advance_ms(6_000);
    let joined = ids.map(|(_, ticket)| shard.joined(ticket));
    let leader = joined[0].leader.clone();
    let (lead, follow) =
        if joined[0].member_id == leader { (&joined[0], &joined[1]) } else { (&joined[1], &joined[0]) };
    assert_eq!((lead.members.len(), follow.members.len()), (2, 0));
    assert_eq!(lead.members[0].metadata, subscription(&["t"]));
    assert_eq!(shard.state("g"), "CompletingRebalance");

    let waiting = shard.sync(&follow.member_id, 1, &[]);
    assert_eq!(shard.answer(waiting), None);
    let leading = shard.sync(&leader, 1, &[(&leader, "L"), (&follow.member_id, "F")]);
    let record = shard.last_group().unwrap();
    assert_eq!((record.generation, &*record.protocol_type, record.members.len()), (1, "consumer", 2));
    assert_eq!(record.protocol_name.as_deref(), Some("range"));
    assert_eq!(shard.synced(leading).unwrap().assignment, "L");
    let synced = shard.synced(waiting).unwrap();
    assert_eq!((&synced.assignment[..], synced.protocol_name.as_deref()), (&b"F"[..], Some("range")));
    assert_eq!(shard.state("g"), "Stable");
    let again = shard.sync(&follow.member_id, 1, &[]);
    assert_eq!(shard.synced(again).unwrap().assignment, "F");
    assert!(shard.last.is_empty());
}

#[test]
fn a_member_that_the_leader_left_out_gets_an_empty_assignment() {
    let mut shard = Shard::default();
    let (member_id, ticket) = shard.enter("a");
    shard.advance_ms(3_000);
    shard.joined(ticket);
    let ticket = shard.sync(&member_id, 1, &[]);
    assert_eq!(shard.synced(ticket).unwrap().assignment.len(), 0);
}

#[test]
fn a_sync_is_checked_for_member_generation_and_protocol() {
    let mut shard = Shard::default();
    let members = shard.stable(1);
    let stranger = shard.sync(&"x".into(), 1, &[]);
    assert!(matches!(shard.synced(stranger), Err(GroupError::UnknownMember { .. })));
    let old = shard.sync(&members[0], 0, &[]);
    assert_eq!(shard.synced(old), Err(GroupError::IllegalGeneration { asked: 0, current: 1 }));
    let other = Sync { protocol_name: Some("sticky".into()), ..sync(&members[0], 1, &[]) };
    let other = shard.send(Command::Sync(other));
    assert_eq!(shard.synced(other), Err(GroupError::InconsistentProtocol { group_id: "g".into() }));
    let silent = Sync { protocol_type: None, protocol_name: None, ..sync(&members[0], 1, &[]) };
    let silent = shard.send(Command::Sync(silent));
    assert!(shard.synced(silent).is_ok());
}

#[test]
fn a_new_member_starts_a_round_in_which_the_others_learn_of_it_by_heartbeat() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let (_, parked) = shard.enter("new");
    assert_eq!(shard.answer(parked), None);
    for member_id in &members {
        assert_eq!(shard.heartbeat(member_id, 1), Err(GroupError::RebalanceInProgress { group_id: "g".into() }));
    }
    let first = shard.rejoin(&members[1]);
    assert_eq!(shard.answer(first), None);
    let second = shard.rejoin(&members[0]);
    assert_eq!([parked, first, second].map(|ticket| shard.joined(ticket).generation), [2, 2, 2]);
    assert_eq!(shard.heartbeat(&members[0], 1), Err(GroupError::IllegalGeneration { asked: 1, current: 2 }));
    assert_eq!(shard.heartbeat(&members[0], 2), Ok(()));
}

#[test]
fn a_round_that_begins_while_syncs_wait_sends_them_back_to_join() {
    let mut shard = Shard::default();
    let ids = [shard.enter("a"), shard.enter("b")];
    shard.advance_ms(6_000);
    let joined = ids.map(|(_, ticket)| shard.joined(ticket));
    let follower = joined.iter().find(|joined| joined.leader != joined.member_id).unwrap().member_id.clone();
    let waiting = shard.sync(&follower, 1, &[]);
    shard.enter("new");
    assert_eq!(shard.synced(waiting), Err(GroupError::RebalanceInProgress { group_id: "g".into() }));
}

#[test]
fn a_follower_that_joins_again_unchanged_gets_the_running_generation_and_a_leader_starts_a_round() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let ticket = shard.rejoin(&members[1]);
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, joined.leader, joined.members.len()), (1, members[0].clone(), 0));
    assert_eq!(shard.state("g"), "Stable");
    let ticket = shard.rejoin(&members[0]);
    assert_eq!(shard.answer(ticket), None);
    assert_eq!(shard.state("g"), "PreparingRebalance");
}

#[test]
fn a_changed_subscription_starts_a_round() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let protocols = vec![Protocol { name: "range".into(), metadata: subscription(&["u"]) }];
    let changed = Join { member_id: members[1].clone(), protocols, ..join("c") };
    shard.send(Command::Join(changed));
    assert_eq!(shard.state("g"), "PreparingRebalance");
}

#[test]
fn a_second_join_of_the_same_member_takes_the_place_of_the_first() {
    let mut shard = Shard::default();
    let members = shard.stable(2);
    let first = shard.rejoin(&members[0]);
    let second = shard.rejoin(&members[0]);
    assert_eq!(shard.refused(first).error, GroupError::RebalanceInProgress { group_id: "g".into() });
    let other = shard.rejoin(&members[1]);
    assert_eq!((shard.joined(second).generation, shard.joined(other).generation), (2, 2));
}

#[test]
fn the_protocol_is_one_that_all_support_and_most_prefer() {
    let mut shard = Shard::default();
    let offer = |client: &str, names: &[&str]| Join {
        protocols: names.iter().map(|name| Protocol { name: (*name).into(), metadata: subscription(&["t"]) }).collect(),
        member_id_required: false,
        ..join(client)
    };
    let tickets = [
        shard.send(Command::Join(offer("a", &["sticky", "range"]))),
        shard.send(Command::Join(offer("b", &["range", "sticky"]))),
        shard.send(Command::Join(offer("c", &["range", "round", "sticky"]))),
    ];
    shard.advance_ms(6_000);
    for ticket in tickets {
        assert_eq!(shard.joined(ticket).protocol_name.as_deref(), Some("range"));
    }
    let nothing_in_common = shard.send(Command::Join(offer("d", &["round"])));
    assert_eq!(shard.refused(nothing_in_common).error, GroupError::InconsistentProtocol { group_id: "g".into() });
}

#[test]
fn any_protocol_type_forms_a_group_but_only_one_at_a_time() {
    let mut shard = Shard::default();
    let connect = |client: &str| Join { protocol_type: "connect".into(), member_id_required: false, ..join(client) };
    let ticket = shard.send(Command::Join(connect("w")));
    shard.advance_ms(3_000);
    assert_eq!(shard.joined(ticket).protocol_type.as_deref(), Some("connect"));
    let consumer = shard.send(Command::Join(join("c")));
    assert_eq!(shard.refused(consumer).error, GroupError::InconsistentProtocol { group_id: "g".into() });
}

#[test]
fn a_join_without_protocols_or_protocol_type_makes_no_group() {
    let mut shard = Shard::default();
    for bad in [Join { protocols: Vec::new(), ..join("c") }, Join { protocol_type: "".into(), ..join("c") }] {
        let ticket = shard.send(Command::Join(bad));
        assert_eq!(shard.refused(ticket).error, GroupError::InconsistentProtocol { group_id: "g".into() });
    }
    assert_eq!((shard.state("g"), shard.log.len()), ("Dead", 0));
}

#[test]
fn group_id_session_timeout_and_member_id_are_checked() {
    let mut shard = Shard::default();
    let ticket = shard.send(Command::Join(Join { group_id: "".into(), ..join("c") }));
    assert_eq!(shard.refused(ticket).error, GroupError::InvalidGroupId);
    for asked_ms in [5_999, 1_800_001] {
        let ticket = shard.send(Command::Join(Join { session_timeout_ms: asked_ms, ..join("c") }));
        let error = GroupError::InvalidSessionTimeout { asked_ms, min_ms: 6_000, max_ms: 1_800_000 };
        assert_eq!(shard.refused(ticket).error, error);
    }
    let ticket = shard.rejoin(&"stranger".into());
    let refused = shard.refused(ticket);
    assert_eq!(&*refused.member_id, "stranger");
    assert!(matches!(refused.error, GroupError::UnknownMember { .. }));
}

#[test]
fn a_full_group_takes_nobody_else() {
    let mut shard = Shard::new(GroupConfig { group_size_max: 2, ..test_config() });
    let members = shard.stable(2);
    let ticket = shard.send(Command::Join(join("third")));
    let refused = shard.refused(ticket);
    assert_eq!(refused.error, GroupError::MaxSizeReached { group_id: "g".into(), limit: 2 });
    assert_eq!(&*refused.member_id, "");
    assert_eq!(shard.heartbeat(&members[0], 1), Ok(()));
}

#[test]
fn while_joining_the_limit_counts_those_who_wait() {
    let mut shard = Shard::new(GroupConfig { group_size_max: 1, ..test_config() });
    let (first, _) = shard.enter("a");
    let ticket = shard.send(Command::Join(join("b")));
    assert!(matches!(shard.refused(ticket).error, GroupError::MaxSizeReached { .. }));
    let again = shard.rejoin(&first);
    assert_eq!(shard.answer(again), None);
}

#[test]
fn an_unknown_group_or_an_empty_one_has_no_members_to_beat_or_sync() {
    let mut shard = Shard::default();
    let member: MemberId = "m".into();
    assert!(matches!(shard.heartbeat(&member, 1), Err(GroupError::UnknownMember { .. })));
    let ticket = shard.sync(&member, 1, &[]);
    assert!(matches!(shard.synced(ticket), Err(GroupError::UnknownMember { .. })));
    shard.send(Command::Join(join("c")));
    assert!(matches!(shard.heartbeat(&member, 0), Err(GroupError::UnknownMember { .. })));
    let empty = Command::Sync(Sync { group_id: "".into(), ..sync(&member, 1, &[]) });
    assert_eq!(shard.call(empty), Answer::Sync(Err(GroupError::InvalidGroupId)));
}

#[test]
fn ids_are_not_given_out_without_end() {
    let mut shard = Shard::new(GroupConfig { pending_joins_max: 5, ..test_config() });
    let ask = |shard: &mut Shard, n: u128| {
        let ticket = shard.send(Command::Join(Join { unique: uuid::Uuid::from_u128(n), ..join("c") }));
        shard.refused(ticket).error
    };
    for n in 0..5 {
        assert!(matches!(ask(&mut shard, n), GroupError::MemberIdRequired { .. }));
    }
    assert_eq!(ask(&mut shard, 5), GroupError::MaxSizeReached { group_id: "g".into(), limit: 5 });
    shard.advance_ms(10_000);
    assert!(matches!(ask(&mut shard, 6), GroupError::MemberIdRequired { .. }));
}

#[test]
fn a_negative_rebalance_timeout_is_none() {
    let mut shard = Shard::default();
    let join = Join { rebalance_timeout_ms: -1, member_id_required: false, ..join("c") };
    let ticket = shard.send(Command::Join(join));
    shard.advance_ms(3_000);
    assert_eq!(shard.joined(ticket).generation, 1);
}
