//! DescribeGroups (15), ListGroups (16), DeleteGroups (42). Uses the harness.

use bytes::Bytes;
use kafka_protocol::messages::{DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest, ListGroupsResponse};
use protocol_tests::group::{Member, commit, stabilise};
use protocol_tests::ops::*;
use protocol_tests::primitive::{Reader, Writer};
use protocol_tests::{Broker, Client, codes, unique};

fn list(client: &mut Client, version: i16, states: &[&str], types: &[&str]) -> ListGroupsResponse {
    let mut request = ListGroupsRequest::default();
    if version >= 4 {
        request = request.with_states_filter(states.iter().map(|x| s(x)).collect());
    }
    if version >= 5 {
        request = request.with_types_filter(types.iter().map(|x| s(x)).collect());
    }
    let answer = client.call(version, &request);
    assert_eq!(answer.error_code, codes::NONE);
    answer
}

fn names(answer: &ListGroupsResponse) -> Vec<String> {
    answer.groups.iter().map(|g| g.group_id.to_string()).collect()
}

/// A stable group and one that only holds offsets.
fn two_groups(broker: &Broker) -> (Member, String) {
    let mut stable = Member::new(broker, &unique("stable"));
    stable.session_ms = 60_000;
    stable.become_stable();
    let offsets_only = unique("offsets-only");
    let topic = fresh_topic(&mut stable.client, &[]);
    commit(&mut stable.client, &offsets_only, &topic, 0, 1);
    (stable, offsets_only)
}

#[test]
fn bl_082_every_version_of_list_groups_lists_live_and_offsets_only_groups() {
    let broker = Broker::shared();
    let (mut stable, offsets_only) = two_groups(broker);
    for version in 0..=5 {
        let answer = list(&mut stable.client, version, &[], &[]);
        let find = |name: &str| answer.groups.iter().find(|g| g.group_id.as_str() == name).expect("it is listed");
        let (one, two) = (find(&stable.group), find(&offsets_only));
        assert_eq!((one.protocol_type.as_str(), two.protocol_type.as_str()), ("consumer", ""));
        assert!(version < 4 || (one.group_state.as_str(), two.group_state.as_str()) == ("Stable", "Empty"));
        assert!(version < 5 || one.group_type.as_str() == "classic");
    }
}

#[test]
fn bl_080_list_groups_filters_by_state_and_type() {
    let broker = Broker::shared();
    let (mut stable, empty) = two_groups(broker);
    let name = stable.group.clone();
    let cases: [(&[&str], &[&str], bool, bool); 8] = [
        (&["Stable"], &[], true, false),
        (&["Empty"], &[], false, true),
        (&["stable"], &[], true, false),
        (&["Stable", "Empty"], &[], true, true),
        (&["Dead"], &[], false, false),
        (&[], &["classic"], true, true),
        (&[], &["Classic"], true, true),
        (&[], &["consumer"], false, false),
    ];
    for (states, types, wants_stable, wants_empty) in cases {
        for version in if types.is_empty() { 4..=5 } else { 5..=5 } {
            let got = names(&list(&mut stable.client, version, states, types));
            let listed = (got.contains(&name), got.contains(&empty));
            assert_eq!(listed, (wants_stable, wants_empty), "v{version} {states:?} {types:?}");
        }
    }
}

#[test]
fn every_version_of_describe_groups_tells_members_and_state() {
    let broker = Broker::shared();
    let name = unique("group");
    let mut members = [Member::with_instance(broker, &name, "one"), Member::new(broker, &name)];
    stabilise(&mut members);
    for version in 0..=6 {
        let mut request = DescribeGroupsRequest::default().with_groups(vec![group_id(&name)]);
        if version >= 3 {
            request = request.with_include_authorized_operations(true);
        }
        let answer = members[0].client.call(version, &request);
        let got = &answer.groups[0];
        assert_eq!((got.error_code, got.group_state.as_str()), (codes::NONE, "Stable"), "version {version}");
        assert_eq!((got.protocol_type.as_str(), got.protocol_data.as_str()), ("consumer", "range"));
        assert_eq!(got.members.len(), 2);
        let one = got.members.iter().find(|m| m.member_id.as_str() == members[0].member_id).expect("the first member");
        assert_eq!((one.client_id.as_str(), one.client_host.as_str()), ("protocol-tests", "/127.0.0.1"));
        assert_eq!(one.member_assignment, Bytes::from_static(b"a0"));
        assert_eq!(one.member_metadata, Bytes::from_static(b"metadata"));
        assert!(version < 4 || one.group_instance_id.as_deref() == Some("one"));
        // READ 3, DELETE 6, DESCRIBE 8, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11
        assert!(version < 3 || got.authorized_operations == 0b1101_0100_1000, "{:b}", got.authorized_operations);
    }
}

#[test]
fn a_group_that_does_not_exist_is_dead_or_not_found() {
    let mut client = Broker::shared().client();
    for version in 0..=6 {
        let answer =
            client.call(version, &DescribeGroupsRequest::default().with_groups(vec![group_id("no-such-group")]));
        let got = &answer.groups[0];
        let code = if version >= 6 { codes::GROUP_ID_NOT_FOUND } else { codes::NONE };
        assert_eq!(
            (got.error_code, got.group_state.as_str(), got.members.len()),
            (code, "Dead", 0),
            "version {version}"
        );
        assert_eq!(got.authorized_operations, i32::MIN);
        assert!(version < 6 || got.error_message.is_some());
    }
}

#[test]
fn bl_091_only_groups_without_members_are_deleted() {
    let broker = Broker::shared();
    for version in 0..=2 {
        let (mut stable, offsets_only) = two_groups(broker);
        let mut left = Member::new(broker, &unique("left"));
        left.become_stable();
        left.leave();
        let wanted = [
            (stable.group.as_str(), codes::NON_EMPTY_GROUP),
            (offsets_only.as_str(), codes::NONE),
            (left.group.as_str(), codes::NONE),
            ("no-such-group", codes::GROUP_ID_NOT_FOUND),
        ];
        let request =
            DeleteGroupsRequest::default().with_groups_names(wanted.iter().map(|(g, _)| group_id(g)).collect());
        let answer = stable.client.call(version, &request);
        for (group, code) in wanted {
            let result = answer.results.iter().find(|r| r.group_id.as_str() == group).expect("a result for each");
            assert_eq!(result.error_code, code, "{group} version {version}");
        }
        let got = names(&list(&mut stable.client, 5, &[], &[]));
        assert!(!got.contains(&offsets_only) && !got.contains(&left.group) && got.contains(&stable.group));
    }
}

#[test]
fn version_3_of_delete_groups_has_room_for_a_message() {
    let mut client = Broker::shared().client();
    let body = Writer::new().compact_count(1).compact_string("no-such-group").no_tags();
    let answer = client.call_flexible(42, 3, &body.0);
    let mut reader = Reader(&answer);
    assert_eq!((reader.i32(), reader.compact_count()), (0, 1));
    assert_eq!(reader.compact_string().as_deref(), Some("no-such-group"));
    assert_eq!(reader.i16(), codes::GROUP_ID_NOT_FOUND);
    reader.compact_string();
    assert_eq!((reader.tags().len(), reader.tags().len()), (0, 0));
    reader.end();
}

#[test]
fn an_empty_group_id_is_not_found() {
    let mut client = Broker::shared().client();
    let answer = client.call(2, &DeleteGroupsRequest::default().with_groups_names(vec![group_id("")]));
    assert_eq!(answer.results[0].error_code, codes::GROUP_ID_NOT_FOUND);
}

#[test]
fn bl_073_operations_on_a_group_are_told_when_asked() {
    let broker = Broker::shared();
    let (mut stable, offsets_only) = two_groups(broker);
    let groups = vec![group_id(&stable.group), group_id(&offsets_only)];
    for version in 3..=6 {
        for asked in [false, true] {
            let request =
                DescribeGroupsRequest::default().with_groups(groups.clone()).with_include_authorized_operations(asked);
            for group in stable.client.call(version, &request).groups {
                assert_eq!(group.error_code, codes::NONE);
                assert_eq!(group.authorized_operations != i32::MIN, asked, "version {version}");
            }
        }
    }
}
