//! Classic groups: JoinGroup (11), SyncGroup (14), Heartbeat (12), LeaveGroup (13). Uses the harness.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest};
use protocol_tests::group::{Member, await_state, join_all, stabilise, state, sync_all};
use protocol_tests::ops::*;
use protocol_tests::{Broker, codes, eventually, unique};

fn group() -> String {
    unique("group")
}

#[test]
fn every_version_of_join_group_lets_a_member_in() {
    let broker = Broker::shared();
    for version in 0..=9 {
        let mut member = Member::new(broker, &group());
        let mut request = member.join_request();
        if version < 5 {
            request.group_instance_id = None;
        }
        if version < 1 {
            request.rebalance_timeout_ms = -1;
        }
        let mut answer = member.client.call(version, &request);
        if version >= 4 {
            assert_eq!((answer.error_code, answer.generation_id), (codes::MEMBER_ID_REQUIRED, -1), "version {version}");
            request.member_id = answer.member_id.clone();
            answer = member.client.call(version, &request);
        }
        assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, 1), "version {version}");
        assert_eq!(answer.protocol_name.as_deref(), Some("range"));
        assert!(version < 7 || answer.protocol_type.as_deref() == Some("consumer"));
        assert_eq!((&answer.leader, answer.members.len()), (&answer.member_id, 1));
        assert_eq!(answer.members[0].metadata, Bytes::from_static(b"metadata"));
        assert!(answer.member_id.starts_with("protocol-tests-"), "client id, dash, uuid: {}", answer.member_id);
    }
}

#[test]
fn every_version_of_sync_heartbeat_and_leave_serves_a_member() {
    let broker = Broker::shared();
    for version in 0..=5 {
        let mut member = Member::new(broker, &group());
        member.join();
        let mut sync = SyncGroupRequest::default()
            .with_group_id(group_id(&member.group))
            .with_generation_id(1)
            .with_member_id(s(&member.member_id))
            .with_group_instance_id(None);
        if version >= 5 {
            sync = sync.with_protocol_type(Some(s("consumer"))).with_protocol_name(Some(s("range")));
        }
        let answer = member.client.call(version, &sync);
        assert_eq!((answer.error_code, answer.assignment.len()), (codes::NONE, 0), "version {version}");
        let beat = HeartbeatRequest::default()
            .with_group_id(group_id(&member.group))
            .with_generation_id(1)
            .with_member_id(s(&member.member_id))
            .with_group_instance_id(None);
        assert_eq!(member.client.call(version.min(4), &beat).error_code, codes::NONE, "version {version}");
        let mut leave = LeaveGroupRequest::default().with_group_id(group_id(&member.group));
        if version < 3 {
            leave = leave.with_member_id(s(&member.member_id));
        } else {
            let me = MemberIdentity::default().with_member_id(s(&member.member_id)).with_group_instance_id(None);
            leave = leave.with_members(vec![me]);
        }
        let answer = member.client.call(version, &leave);
        assert_eq!(answer.error_code, codes::NONE, "version {version}");
        assert!(version < 3 || answer.members[0].error_code == codes::NONE);
        assert_eq!(state(&mut member.client, &member.group), "Empty");
    }
}

#[test]
fn bl_011_errors_of_the_group_apis_decode_at_every_version() {
    let mut client = Broker::shared().client();
    for version in 0..=9 {
        let join = JoinGroupRequest::default()
            .with_group_id(group_id("some-group"))
            .with_session_timeout_ms(1)
            .with_group_instance_id(None)
            .with_protocol_type(s("consumer"));
        assert_eq!(client.call(version, &join).error_code, codes::INVALID_SESSION_TIMEOUT, "join {version}");
    }
    for version in 0..=5 {
        let mut sync = SyncGroupRequest::default().with_group_id(group_id("no-such-group")).with_member_id(s("m"));
        sync.group_instance_id = None;
        sync.protocol_type = None;
        sync.protocol_name = None;
        let code = if version >= 5 { codes::INCONSISTENT_GROUP_PROTOCOL } else { codes::UNKNOWN_MEMBER_ID };
        assert_eq!(client.call(version, &sync).error_code, code, "sync {version}");
        let mut leave = LeaveGroupRequest::default().with_group_id(group_id("no-such-group"));
        if version < 3 {
            leave = leave.with_member_id(s("m"));
        } else {
            leave =
                leave.with_members(vec![MemberIdentity::default().with_member_id(s("m")).with_group_instance_id(None)]);
        }
        let answer = client.call(version, &leave);
        let code = if version < 3 { answer.error_code } else { answer.members[0].error_code };
        assert_eq!(code, codes::UNKNOWN_MEMBER_ID, "leave {version}");
    }
    for version in 0..=4 {
        let beat = HeartbeatRequest::default()
            .with_group_id(group_id("no-such-group"))
            .with_member_id(s("m"))
            .with_group_instance_id(None);
        assert_eq!(client.call(version, &beat).error_code, codes::UNKNOWN_MEMBER_ID, "heartbeat {version}");
    }
}

#[test]
fn requests_that_no_group_can_take() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, "");
    assert_eq!(member.client.call(7, &member.join_request()).error_code, codes::INVALID_GROUP_ID);
    let mut member = Member::new(broker, &group());
    for session_ms in [1, 10_000_000, -1] {
        member.session_ms = session_ms;
        assert_eq!(member.client.call(7, &member.join_request()).error_code, codes::INVALID_SESSION_TIMEOUT);
    }
    let mut member = Member::new(broker, &group());
    member.member_id = "never-given".into();
    assert_eq!(member.client.call(7, &member.join_request()).error_code, codes::UNKNOWN_MEMBER_ID);
    let mut member = Member::new(broker, &group());
    member.protocols.clear();
    assert_eq!(member.client.call(7, &member.join_request()).error_code, codes::INCONSISTENT_GROUP_PROTOCOL);
    let mut member = Member::new(broker, &group());
    member.protocol_type.clear();
    assert_eq!(member.client.call(7, &member.join_request()).error_code, codes::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_group_keeps_to_one_protocol_type_and_a_common_protocol() {
    let broker = Broker::shared();
    let mut first = Member::new(broker, &group());
    first.become_stable();
    let mut other = Member::new(broker, &first.group);
    other.protocol_type = "connect".into();
    assert_eq!(other.client.call(7, &other.join_request()).error_code, codes::INCONSISTENT_GROUP_PROTOCOL);
    let mut other = Member::new(broker, &first.group);
    other.protocols = vec![("sticky".into(), Bytes::new())];
    assert_eq!(other.client.call(7, &other.join_request()).error_code, codes::INCONSISTENT_GROUP_PROTOCOL);
    assert_eq!(first.heartbeat(), codes::NONE);
}

#[test]
fn any_protocol_type_is_served() {
    let mut member = Member::new(Broker::shared(), &group());
    member.protocol_type = "connect".into();
    member.protocols = vec![("sessioned".into(), Bytes::from_static(b"\xff\x00")), ("compatible".into(), Bytes::new())];
    let answer = member.join();
    assert_eq!(
        (answer.protocol_type.as_deref(), answer.protocol_name.as_deref()),
        (Some("connect"), Some("sessioned"))
    );
    let me = member.member_id.clone();
    assert_eq!(member.sync(&[(&me, "task")]).assignment, Bytes::from_static(b"task"));
}

#[test]
fn the_protocol_that_most_members_prefer_is_chosen() {
    let broker = Broker::shared();
    let name = group();
    let mut members: Vec<Member> = (0..3).map(|_| Member::new(broker, &name)).collect();
    for (i, member) in members.iter_mut().enumerate() {
        let order = if i == 0 { ["range", "sticky"] } else { ["sticky", "range"] };
        member.protocols = order.iter().map(|p| ((*p).to_owned(), Bytes::copy_from_slice(p.as_bytes()))).collect();
    }
    let last = join_all(&mut members);
    assert_eq!(last.members.len(), 3);
    assert_eq!(last.protocol_name.as_deref(), Some("sticky"));
    assert!(last.members.iter().all(|m| m.metadata == Bytes::from_static(b"sticky")));
}

#[test]
fn the_leader_assigns_and_each_member_gets_its_own() {
    let broker = Broker::shared();
    let name = group();
    let mut members: Vec<Member> = (0..3).map(|_| Member::new(broker, &name)).collect();
    stabilise(&mut members);
    assert_eq!(state(&mut broker.client(), &name), "Stable");
    // SyncGroup may be asked again in a stable group and gives the same.
    assert_eq!(members[1].sync(&[]).assignment, Bytes::from_static(b"a1"));
    assert!(members.iter_mut().all(|m| m.heartbeat() == codes::NONE));
}

#[test]
fn a_new_member_makes_the_others_rejoin() {
    let broker = Broker::shared();
    let mut first = Member::new(broker, &group());
    first.become_stable();
    let mut second = Member::new(broker, &first.group);
    let join = second.send_join();
    eventually("the rebalance is told", SOON, || (first.heartbeat() == codes::REBALANCE_IN_PROGRESS).then_some(()));
    assert_eq!(state(&mut first.client, &first.group.clone()), "PreparingRebalance");
    let answer = first.join();
    assert_eq!((answer.error_code, answer.generation_id, answer.members.len()), (codes::NONE, 2, 2));
    let other = second.finish_join(join);
    assert_eq!((other.generation_id, other.leader, other.members.len()), (2, answer.leader.clone(), 0));
    assert_eq!(state(&mut first.client, &first.group.clone()), "CompletingRebalance");
    let leader = answer.leader.to_string();
    sync_all(&mut [first, second], &leader);
}

#[test]
fn an_old_generation_is_illegal() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &group());
    member.become_stable();
    let topic = fresh_topic(&mut member.client, &[]);
    let generation = member.generation;
    for wrong in [generation - 1, generation + 1] {
        member.generation = wrong;
        assert_eq!(member.heartbeat(), codes::ILLEGAL_GENERATION);
        assert_eq!(member.sync(&[]).error_code, codes::ILLEGAL_GENERATION);
        assert_eq!(member.commit(&topic, 1), codes::ILLEGAL_GENERATION);
    }
}

#[test]
fn a_sync_that_names_another_protocol_is_refused() {
    let mut member = Member::new(Broker::shared(), &group());
    member.join();
    member.protocols[0].0 = "sticky".into();
    assert_eq!(member.sync(&[]).error_code, codes::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn the_leader_that_joins_again_with_the_same_protocols_rebalances_a_follower_does_not() {
    let broker = Broker::shared();
    let name = group();
    let mut members: Vec<Member> = (0..2).map(|_| Member::new(broker, &name)).collect();
    stabilise(&mut members);
    let generation = members[0].generation;
    let answer = members[1].join();
    assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, generation), "a follower that joins again");
    assert_eq!(answer.leader.as_str(), members[0].member_id);
    assert_eq!(members[0].heartbeat(), codes::NONE, "it changed nothing");
    members[0].send_join();
    assert!(
        members[0].client.read_frame(Duration::from_millis(300)).is_err(),
        "the leader's join waits for the follower"
    );
    assert_eq!(members[1].heartbeat(), codes::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_member_that_stops_beating_is_removed() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &group());
    member.session_ms = 1000;
    member.become_stable();
    eventually("the session ends", SOON, || (state(&mut broker.client(), &member.group) == "Empty").then_some(()));
    assert_eq!(member.heartbeat(), codes::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_member_that_does_not_rejoin_in_time_is_removed_at_the_rebalance_timeout() {
    let broker = Broker::shared();
    let mut idle = Member::new(broker, &group());
    idle.rebalance_ms = 1500;
    idle.become_stable();
    let mut second = Member::new(broker, &idle.group);
    second.rebalance_ms = 1500;
    let start = Instant::now();
    let answer = second.join();
    assert_eq!((answer.error_code, answer.members.len()), (codes::NONE, 1));
    assert!(start.elapsed() > Duration::from_millis(1000));
}

#[test]
fn bl_076_a_static_member_that_restarts_keeps_its_assignment() {
    let broker = Broker::shared();
    let name = group();
    let mut members = [Member::with_instance(broker, &name, "one"), Member::with_instance(broker, &name, "two")];
    stabilise(&mut members);
    let [mut one, mut two] = members;
    let mut again = Member::with_instance(broker, &name, "two");
    let answer = again.join();
    assert_eq!((answer.error_code, answer.generation_id), (codes::NONE, two.generation));
    assert_ne!(again.member_id, two.member_id);
    assert_eq!(again.sync(&[]).assignment, Bytes::from_static(b"a1"));
    assert_eq!(one.heartbeat(), codes::NONE, "no rebalance");
    assert_eq!(two.heartbeat(), codes::FENCED_INSTANCE_ID);
    assert_eq!(two.sync(&[]).error_code, codes::FENCED_INSTANCE_ID);
    let topic = fresh_topic(&mut two.client, &[]);
    assert_eq!(two.commit(&topic, 1), codes::FENCED_INSTANCE_ID);
    assert_eq!(two.join().error_code, codes::FENCED_INSTANCE_ID);
}

#[test]
fn bl_076_a_static_member_can_be_removed_by_its_instance_id() {
    let broker = Broker::shared();
    for version in 3..=5 {
        let mut member = Member::with_instance(broker, &group(), "one");
        member.become_stable();
        let cases = [
            ("other", "", codes::UNKNOWN_MEMBER_ID),
            ("one", "of-another-process", codes::FENCED_INSTANCE_ID),
            ("one", "", codes::NONE),
        ];
        for (instance, id, code) in cases {
            let who = MemberIdentity::default().with_member_id(s(id)).with_group_instance_id(Some(s(instance)));
            let request = LeaveGroupRequest::default().with_group_id(group_id(&member.group)).with_members(vec![who]);
            let answer = member.client.call(version, &request);
            assert_eq!((answer.error_code, answer.members[0].error_code), (codes::NONE, code), "{instance} {id}");
            assert_eq!(answer.members[0].group_instance_id.as_deref(), Some(instance));
        }
        assert_eq!(state(&mut broker.client(), &member.group), "Empty");
    }
}

#[test]
fn bl_079_a_member_that_leaves_does_not_hold_up_the_join() {
    let broker = Broker::shared();
    let name = group();
    let mut members: Vec<Member> = (0..3).map(|_| Member::new(broker, &name)).collect();
    for member in &mut members {
        member.rebalance_ms = 60_000;
        member.session_ms = 60_000;
    }
    stabilise(&mut members);
    let mut fourth = Member::new(broker, &name);
    fourth.rebalance_ms = 60_000;
    let waiting = fourth.send_join();
    await_state(&mut broker.client(), &name, "PreparingRebalance", 4);
    let mut leaver = members.pop().unwrap();
    let start = Instant::now();
    let ids: Vec<i32> = members.iter_mut().map(Member::send_join).collect();
    assert_eq!(leaver.leave(), codes::NONE);
    for (member, id) in members.iter_mut().zip(ids) {
        assert_eq!(member.finish_join(id).error_code, codes::NONE);
    }
    assert_eq!(fourth.finish_join(waiting).error_code, codes::NONE);
    assert!(start.elapsed() < Duration::from_secs(20), "it does not wait for the rebalance timeout");
}

#[test]
fn several_members_leave_in_one_request() {
    let broker = Broker::shared();
    let name = group();
    let mut members: Vec<Member> = (0..2).map(|_| Member::new(broker, &name)).collect();
    stabilise(&mut members);
    let mut who: Vec<MemberIdentity> = members
        .iter()
        .map(|m| MemberIdentity::default().with_member_id(s(&m.member_id)).with_group_instance_id(None))
        .collect();
    who.push(MemberIdentity::default().with_member_id(s("nobody")).with_group_instance_id(None));
    let request = LeaveGroupRequest::default().with_group_id(group_id(&name)).with_members(who);
    let answer = members[0].client.call(3, &request);
    let got: Vec<i16> = answer.members.iter().map(|m| m.error_code).collect();
    assert_eq!(got, [codes::NONE, codes::NONE, codes::UNKNOWN_MEMBER_ID]);
    assert_eq!(state(&mut broker.client(), &name), "Empty");
}

#[test]
fn group_max_size_turns_members_away() {
    let broker = Broker::start(&[("group.max.size", "1")]);
    let mut first = Member::new(&broker, "full");
    first.become_stable();
    let mut second = Member::new(&broker, "full");
    let answer = second.client.call(7, &second.join_request());
    let code = if answer.error_code == codes::MEMBER_ID_REQUIRED {
        second.member_id = answer.member_id.to_string();
        second.client.call(7, &second.join_request()).error_code
    } else {
        answer.error_code
    };
    assert_eq!(code, codes::GROUP_MAX_SIZE_REACHED);
    assert_eq!(first.heartbeat(), codes::NONE);
}
