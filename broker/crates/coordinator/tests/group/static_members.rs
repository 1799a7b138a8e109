//! Static membership (KIP-345, KIP-814).

use std::sync::Arc;

use coordinator::Ticket;
use coordinator::group::command::{Join, Leaving, Protocol, Sync};
use coordinator::group::{Command, GroupError, MemberId};

use crate::harness::*;

fn instance(name: &str) -> Join {
    Join { instance_id: Some(name.into()), ..join(name) }
}

/// The next process of an instance: another unique part of the id.
fn restarted(name: &str) -> Join {
    Join { unique: uuid::Uuid::from_u128(u128::MAX), ..instance(name) }
}

/// A stable group of two instances; the first is the leader.
fn two_instances(shard: &mut Shard) -> [(Arc<str>, MemberId); 2] {
    let tickets = ["i1", "i2"].map(|name| (Arc::from(name), shard.send(Command::Join(instance(name)))));
    shard.advance_ms(6_000);
    let joined = tickets.map(|(name, ticket): (Arc<str>, Ticket)| (name, shard.joined(ticket)));
    let leader = joined[0].1.leader.clone();
    let mut members = joined.map(|(name, joined)| (name, joined.member_id));
    members.sort_by_key(|(_, member_id)| *member_id != leader);
    shard.settle(&[members[0].1.clone(), members[1].1.clone()], 1);
    members
}

#[test]
fn a_static_member_needs_no_second_join_and_its_id_begins_with_the_instance() {
    let mut shard = Shard::default();
    let ticket = shard.send(Command::Join(instance("i1")));
    shard.advance_ms(3_000);
    let joined = shard.joined(ticket);
    assert!(joined.member_id.starts_with("i1-"));
    assert_eq!(joined.members[0].instance_id.as_deref(), Some("i1"));
}

#[test]
fn bl_076_a_restarted_follower_keeps_generation_and_assignment_and_the_old_process_is_fenced() {
    let mut shard = Shard::default();
    let [(_, leader), (name, old)] = two_instances(&mut shard);
    let ticket = shard.send(Command::Join(restarted(&name)));
    let record = shard.last_group().unwrap();
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, joined.leader, joined.skip_assignment), (1, leader.clone(), false));
    assert_ne!(joined.member_id, old);
    assert!(record.members.iter().any(|member| member.member_id == joined.member_id));
    assert_eq!((record.generation, record.members.len(), shard.state("g")), (1, 2, "Stable"));

    let ticket = shard.send(Command::Sync(Sync { instance_id: Some(name.clone()), ..sync(&joined.member_id, 1, &[]) }));
    assert_eq!(shard.synced(ticket).unwrap().assignment, old.as_bytes());
    let fenced = GroupError::FencedInstance { instance_id: name.clone(), current: joined.member_id.clone() };
    assert_eq!(shard.heartbeat_of(&old, Some(&name), 1), Err(fenced.clone()));
    let ticket = shard.send(Command::Sync(Sync { instance_id: Some(name.clone()), ..sync(&old, 1, &[]) }));
    assert_eq!(shard.synced(ticket), Err(fenced.clone()));
    let mut commit = member_commit(&old, 1, "t", 5);
    commit.instance_id = Some(name.clone());
    assert_eq!(shard.commit(commit), Err(fenced.clone()));
    let ticket =
        shard.send(Command::Join(Join { member_id: old.clone(), instance_id: Some(name.clone()), ..join("c") }));
    assert_eq!(shard.refused(ticket).error, fenced);
    assert_eq!(shard.heartbeat_of(&joined.member_id, Some(&name), 1), Ok(()));
}

#[test]
fn a_restarted_leader_may_skip_the_assignment_and_the_new_leader_is_stored() {
    let mut shard = Shard::default();
    let [(name, _), _] = two_instances(&mut shard);
    let ticket = shard.send(Command::Join(restarted(&name)));
    let record = shard.last_group().unwrap();
    let joined = shard.joined(ticket);
    assert_eq!(
        (joined.leader.clone(), joined.skip_assignment, joined.members.len()),
        (joined.member_id.clone(), true, 2)
    );
    assert_eq!(record.leader, Some(joined.member_id));
}

#[test]
fn a_restarted_leader_on_an_old_client_is_shown_the_former_leader() {
    let mut shard = Shard::default();
    let [(name, old), _] = two_instances(&mut shard);
    let ticket = shard.send(Command::Join(Join { may_skip_assignment: false, ..restarted(&name) }));
    let joined = shard.joined(ticket);
    assert_eq!((joined.leader, joined.skip_assignment, joined.members.len()), (old, false, 0));
}

#[test]
fn a_restart_that_changes_the_chosen_protocol_starts_a_round() {
    let mut shard = Shard::default();
    let offer = |join: Join, names: [&str; 2]| {
        let protocols = names.map(|name| Protocol { name: name.into(), metadata: subscription(&["t"]) });
        Join { protocols: protocols.to_vec(), ..join }
    };
    let ticket = shard.send(Command::Join(offer(instance("i1"), ["range", "sticky"])));
    shard.advance_ms(3_000);
    let member_id = shard.joined(ticket).member_id;
    shard.settle(&[member_id], 1);
    let ticket = shard.send(Command::Join(offer(restarted("i1"), ["sticky", "range"])));
    assert_eq!((shard.joined(ticket).generation, shard.state("g")), (2, "CompletingRebalance"));
}

#[test]
fn a_restart_while_the_assignment_is_awaited_starts_a_round_and_fences_who_waits() {
    let mut shard = Shard::default();
    let [(_, leader), (name, follower)] = two_instances(&mut shard);
    let tickets = [shard.rejoin(&leader), shard.rejoin(&follower)];
    for ticket in tickets {
        assert_eq!(shard.joined(ticket).generation, 2);
    }
    let waiting = shard.sync(&follower, 2, &[]);
    let ticket = shard.send(Command::Join(restarted(&name)));
    assert!(matches!(shard.synced(waiting), Err(GroupError::FencedInstance { .. })));
    assert_eq!((shard.answer(ticket), shard.state("g")), (None, "PreparingRebalance"));
}

#[test]
fn a_second_process_of_an_instance_that_is_joining_fences_the_first() {
    let mut shard = Shard::default();
    let first = shard.send(Command::Join(instance("i1")));
    let second = shard.send(Command::Join(restarted("i1")));
    let refused = shard.refused(first);
    assert!(matches!(refused.error, GroupError::FencedInstance { .. }));
    shard.advance_ms(3_000);
    let joined = shard.joined(second);
    assert_eq!(joined.members.len(), 1);
    assert_ne!(joined.member_id, refused.member_id);
}

#[test]
fn a_static_member_that_is_late_stays_in_the_group_until_its_session_ends() {
    let mut shard = Shard::default();
    let [(_, leader), (_, silent)] = two_instances(&mut shard);
    let ticket = shard.rejoin(&leader);
    assert_eq!(shard.answer(ticket), None);
    shard.advance_ms(10_000);
    // Its session is over before the round is, and the round goes on without it.
    let joined = shard.joined(ticket);
    assert_eq!((joined.generation, joined.members.len()), (2, 1));
    assert!(joined.members.iter().all(|member| member.member_id != silent));
}

#[test]
fn an_administrator_removes_static_members_by_instance_id() {
    let mut shard = Shard::default();
    let [(first, leader), (second, _)] = two_instances(&mut shard);
    let by_instance = |name: &Arc<str>| Leaving { member_id: "".into(), instance_id: Some(name.clone()) };
    let left = shard.leave(vec![by_instance(&second), by_instance(&"nobody".into())]);
    assert_eq!(left[0].error, None);
    assert!(matches!(left[1].error, Some(GroupError::UnknownMember { .. })));
    let fenced = shard.leave(vec![Leaving { member_id: "other".into(), instance_id: Some(first.clone()) }]);
    assert_eq!(
        fenced[0].error,
        Some(GroupError::FencedInstance { instance_id: first.clone(), current: leader.clone() })
    );
    let ticket = shard.rejoin(&leader);
    assert_eq!(shard.joined(ticket).members.len(), 1);
}
