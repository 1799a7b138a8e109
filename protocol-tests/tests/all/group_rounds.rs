//! What may happen between the states of a classic group: commits, heartbeats and timeouts in the middle of a round. Uses the harness.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::JoinGroupRequest;
use protocol_tests::group::{Member, await_state, commit_request, committed, stabilise, state};
use protocol_tests::ops::*;
use protocol_tests::{Broker, codes, eventually, unique};

#[test]
fn bl_085_a_commit_while_members_rejoin_lands_and_one_before_the_assignment_is_told_to_wait() {
    let broker = Broker::shared();
    let mut first = Member::new(broker, &unique("group"));
    first.become_stable();
    let topic = fresh_topic(&mut first.client, &[]);
    let group = first.group.clone();
    let mut second = Member::new(broker, &group);
    let join = second.send_join();
    await_state(&mut broker.client(), &group, "PreparingRebalance", 2);
    assert_eq!(first.commit(&topic, 5), codes::NONE);
    assert_eq!(committed(&mut broker.client(), &group, &topic, 0).0, 5);
    first.join();
    second.finish_join(join);
    assert_eq!(state(&mut broker.client(), &group), "CompletingRebalance");
    assert_eq!(first.commit(&topic, 6), codes::REBALANCE_IN_PROGRESS);
    assert_eq!(committed(&mut broker.client(), &group, &topic, 0).0, 5);
    assert_eq!(first.heartbeat(), codes::NONE, "who has joined and waits for the assignment beats on");
}

#[test]
fn members_that_do_not_sync_are_removed_at_the_rebalance_timeout() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &unique("group"));
    member.rebalance_ms = 1000;
    member.session_ms = 60_000;
    assert_eq!(member.join().error_code, codes::NONE);
    eventually("the group is empty", SOON, || (state(&mut broker.client(), &member.group) == "Empty").then_some(()));
    assert_eq!(member.sync(&[]).error_code, codes::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_follower_waits_for_the_leaders_assignment() {
    let broker = Broker::shared();
    let name = unique("group");
    let mut members = [Member::new(broker, &name), Member::new(broker, &name)];
    let leader = protocol_tests::group::join_all(&mut members).leader.to_string();
    let follower = usize::from(members[0].member_id == leader);
    let waiting = members[follower].send_sync(&[]);
    assert!(members[follower].client.read_frame(Duration::from_millis(300)).is_err(), "the leader has not spoken");
    let id = members[follower].member_id.clone();
    members[1 - follower].sync(&[(&id, "yours")]);
    let answer = members[follower].finish_sync(waiting);
    assert_eq!((answer.error_code, answer.assignment), (codes::NONE, Bytes::from_static(b"yours")));
}

#[test]
fn a_waiting_sync_is_told_of_the_next_rebalance() {
    let broker = Broker::shared();
    let name = unique("group");
    let mut members = [Member::new(broker, &name), Member::new(broker, &name)];
    let leader = protocol_tests::group::join_all(&mut members).leader.to_string();
    let follower = usize::from(members[0].member_id == leader);
    let waiting = members[follower].send_sync(&[]);
    let mut third = Member::new(broker, &name);
    third.send_join();
    assert_eq!(members[follower].finish_sync(waiting).error_code, codes::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_static_leader_that_restarts_is_told_to_skip_the_assignment() {
    let broker = Broker::shared();
    let name = unique("group");
    let mut members = [Member::with_instance(broker, &name, "one"), Member::with_instance(broker, &name, "two")];
    stabilise(&mut members);
    let mut again = Member::with_instance(broker, &name, "one");
    let request = again.join_request();
    let id = again.client.send(9, &request);
    let answer = again.client.receive::<JoinGroupRequest>(9, id, Duration::from_secs(20));
    assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, members[0].generation));
    assert_eq!((answer.leader == answer.member_id, answer.skip_assignment, answer.members.len()), (true, true, 2));
}

#[test]
fn a_static_member_that_changes_its_protocols_makes_the_group_rebalance() {
    let broker = Broker::shared();
    let mut member = Member::with_instance(broker, &unique("group"), "one");
    member.become_stable();
    let mut again = Member::with_instance(broker, &member.group, "one");
    again.protocols.insert(0, ("sticky".into(), Bytes::from_static(b"other")));
    let answer = again.join();
    assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, member.generation + 1));
    assert_eq!(answer.protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn a_group_whose_last_member_left_keeps_its_offsets_and_starts_again() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &unique("group"));
    member.become_stable();
    let topic = fresh_topic(&mut member.client, &[]);
    assert_eq!(member.commit(&topic, 5), codes::NONE);
    assert_eq!(member.leave(), codes::NONE);
    assert_eq!(committed(&mut broker.client(), &member.group, &topic, 0).0, 5);
    let mut next = Member::new(broker, &member.group);
    let answer = next.join();
    assert_eq!(answer.error_code, codes::NONE);
    assert!(answer.generation_id > member.generation, "{} after {}", answer.generation_id, member.generation);
}

#[test]
fn an_empty_group_takes_commits_from_outside_any_generation() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &unique("group"));
    member.become_stable();
    let topic = fresh_topic(&mut member.client, &[]);
    member.leave();
    let answer = member.client.call(8, &commit_request(&member.group, &topic, 0, 9));
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::NONE);
    assert_eq!(committed(&mut member.client, &member.group, &topic, 0).0, 9);
}

#[test]
fn bl_077_a_pending_member_does_not_keep_the_group() {
    let broker = Broker::shared();
    let mut real = Member::new(broker, &unique("group"));
    real.session_ms = 1000;
    real.become_stable();
    let mut pending = Member::new(broker, &real.group);
    pending.session_ms = 1500;
    assert_eq!(pending.client.call(7, &pending.join_request()).error_code, codes::MEMBER_ID_REQUIRED);
    eventually("the group is empty", SOON, || (state(&mut broker.client(), &real.group) == "Empty").then_some(()));
}

#[test]
fn bl_077_a_pending_member_joins_at_once_when_the_last_member_is_gone() {
    let broker = Broker::shared();
    let mut real = Member::new(broker, &unique("group"));
    (real.session_ms, real.rebalance_ms) = (1000, 60_000);
    real.become_stable();
    let mut pending = Member::new(broker, &real.group);
    (pending.session_ms, pending.rebalance_ms) = (60_000, 60_000);
    let answer = pending.client.call(7, &pending.join_request());
    assert_eq!(answer.error_code, codes::MEMBER_ID_REQUIRED);
    pending.member_id = answer.member_id.to_string();
    eventually("the group is empty", SOON, || (state(&mut broker.client(), &real.group) == "Empty").then_some(()));
    let start = Instant::now();
    let answer = pending.join();
    assert_eq!((answer.error_code, answer.members.len()), (codes::NONE, 1));
    assert!(start.elapsed() < Duration::from_secs(20), "it waits for nobody");
}

#[test]
fn a_pending_member_that_expired_is_unknown() {
    let broker = Broker::shared();
    let mut pending = Member::new(broker, &unique("group"));
    pending.session_ms = 600;
    let answer = pending.client.call(7, &pending.join_request());
    pending.member_id = answer.member_id.to_string();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(pending.client.call(7, &pending.join_request()).error_code, codes::UNKNOWN_MEMBER_ID);
}
