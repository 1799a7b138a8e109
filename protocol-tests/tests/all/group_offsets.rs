//! OffsetCommit (8), OffsetFetch (9), OffsetDelete (47), expiry of offsets. Uses the harness.

use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{ListGroupsRequest, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest};
use protocol_tests::group::{Member, commit, commit_request, committed, subscription};
use protocol_tests::ops::*;
use protocol_tests::primitive::{Reader, Writer};
use protocol_tests::{Broker, Client, codes, eventually, unique};
use uuid::Uuid;

/// One partition of an OffsetFetch answer: topic, partition, offset, epoch, metadata, code.
type Offset = (String, i32, i64, i32, Option<String>, i16);

/// OffsetFetch of one group at any version from 1 to 9; `None` asks for all. Gives the group's code and the offsets.
fn fetch_offsets(
    client: &mut Client,
    version: i16,
    group: &str,
    wanted: Option<&[(&str, &[i32])]>,
) -> (i16, Vec<Offset>) {
    if version < 8 {
        let topic = |(t, p): &(&str, &[i32])| {
            OffsetFetchRequestTopic::default().with_name(topic_name(t)).with_partition_indexes(p.to_vec())
        };
        let topics = wanted.map(|w| w.iter().map(topic).collect());
        let answer =
            client.call(version, &OffsetFetchRequest::default().with_group_id(group_id(group)).with_topics(topics));
        let of = |t: &kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseTopic| -> Vec<Offset> {
            let row = |p: &kafka_protocol::messages::offset_fetch_response::OffsetFetchResponsePartition| {
                let text = p.metadata.as_ref().map(|m| m.to_string());
                (
                    t.name.to_string(),
                    p.partition_index,
                    p.committed_offset,
                    p.committed_leader_epoch,
                    text,
                    p.error_code,
                )
            };
            t.partitions.iter().map(row).collect()
        };
        return (answer.error_code, answer.topics.iter().flat_map(of).collect());
    }
    let topic = |(t, p): &(&str, &[i32])| {
        OffsetFetchRequestTopics::default().with_name(topic_name(t)).with_partition_indexes(p.to_vec())
    };
    let topics = wanted.map(|w| w.iter().map(topic).collect());
    let one =
        OffsetFetchRequestGroup::default().with_group_id(group_id(group)).with_member_id(None).with_topics(topics);
    let answer = client.call(version, &OffsetFetchRequest::default().with_groups(vec![one]));
    let of = |t: &kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseTopics| -> Vec<Offset> {
        let row = |p: &kafka_protocol::messages::offset_fetch_response::OffsetFetchResponsePartitions| {
            let text = p.metadata.as_ref().map(|m| m.to_string());
            (t.name.to_string(), p.partition_index, p.committed_offset, p.committed_leader_epoch, text, p.error_code)
        };
        t.partitions.iter().map(row).collect()
    };
    assert_eq!((answer.groups.len(), answer.groups[0].group_id.as_str()), (1, group));
    (answer.groups[0].error_code, answer.groups[0].topics.iter().flat_map(of).collect())
}

#[test]
fn bl_083_a_group_that_never_committed_has_an_entry_per_partition() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let group = unique("group");
    for version in 1..=9 {
        let (code, got) = fetch_offsets(&mut client, version, &group, Some(&[(&topic, &[0, 1])]));
        let row = |p: i32| (topic.clone(), p, -1, -1, Some(String::new()), codes::NONE);
        assert_eq!((code, got), (codes::NONE, vec![row(0), row(1)]), "version {version}");
        let (code, got) = fetch_offsets(&mut client, version, &group, Some(&[("no-such-topic", &[5])]));
        let row = ("no-such-topic".to_owned(), 5, -1, -1, Some(String::new()), codes::NONE);
        assert_eq!((code, got), (codes::NONE, vec![row]), "version {version}");
        if version >= 2 {
            assert_eq!(fetch_offsets(&mut client, version, &group, None), (codes::NONE, vec![]), "version {version}");
        }
    }
}

#[test]
fn every_version_of_offset_commit_is_read_by_every_version_of_offset_fetch() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in 2..=9 {
        let group = unique("group");
        let mut request = commit_request(&group, &topic, 0, 7).with_group_instance_id(None);
        let part = &mut request.topics[0].partitions[0];
        part.committed_metadata = Some(s("note"));
        if version >= 6 {
            part.committed_leader_epoch = 3;
        }
        let answer = client.call(version, &request);
        let part = &answer.topics[0].partitions[0];
        assert_eq!((part.partition_index, part.error_code), (0, codes::NONE), "version {version}");
        for read in 1..=9 {
            let (code, got) = fetch_offsets(&mut client, read, &group, Some(&[(&topic, &[0])]));
            let epoch = if version >= 6 && read >= 5 { 3 } else { -1 };
            assert_eq!(
                (code, got),
                (0, vec![(topic.clone(), 0, 7, epoch, Some("note".into()), 0)]),
                "{version} {read}"
            );
        }
        assert_eq!(fetch_offsets(&mut client, 8, &group, None).1.len(), 1);
    }
}

#[test]
fn bl_088_a_commit_without_epoch_comes_back_without() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in 2..=9 {
        let group = unique("group");
        let request = commit_request(&group, &topic, 0, 5).with_group_instance_id(None);
        assert_eq!(client.call(version, &request).topics[0].partitions[0].error_code, codes::NONE);
        for read in 1..=9 {
            let (_, got) = fetch_offsets(&mut client, read, &group, Some(&[(&topic, &[0])]));
            assert_eq!((got[0].2, got[0].3), (5, -1), "commit v{version}, read v{read}");
        }
    }
}

#[test]
fn a_null_metadata_is_stored_as_empty() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let group = unique("group");
    let mut request = commit_request(&group, &topic, 0, 5);
    request.topics[0].partitions[0].committed_metadata = None;
    assert_eq!(client.call(8, &request).topics[0].partitions[0].error_code, codes::NONE);
    assert_eq!(fetch_offsets(&mut client, 8, &group, None).1[0].4, Some(String::new()));
}

#[test]
fn metadata_over_4096_bytes_is_too_large() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let group = unique("group");
    for (size, code) in [(4097, codes::OFFSET_METADATA_TOO_LARGE), (4096, codes::NONE)] {
        let mut request = commit_request(&group, &topic, 0, 5);
        request.topics[0].partitions[0].committed_metadata = Some(s(&"x".repeat(size)));
        assert_eq!(client.call(8, &request).topics[0].partitions[0].error_code, code, "{size}");
    }
}

#[test]
fn a_commit_for_an_unknown_topic_or_partition_is_refused_for_that_partition() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let group = unique("group");
    for (topic, partition) in [("no-such-topic", 0), (topic.as_str(), 9)] {
        let answer = client.call(8, &commit_request(&group, topic, partition, 1));
        assert_eq!(answer.topics[0].partitions[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    }
}

#[test]
fn who_is_no_member_cannot_commit_into_a_live_group() {
    let broker = Broker::shared();
    let mut member = Member::new(broker, &unique("group"));
    member.become_stable();
    let topic = fresh_topic(&mut member.client, &[]);
    let group = member.group.clone();
    let answer = member.client.call(8, &commit_request(&group, &topic, 0, 1));
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::UNKNOWN_MEMBER_ID);
    let stranger = commit_request(&group, &topic, 0, 1).with_member_id(s("x")).with_generation_id_or_member_epoch(1);
    assert_eq!(member.client.call(8, &stranger).topics[0].partitions[0].error_code, codes::UNKNOWN_MEMBER_ID);
    assert_eq!(member.commit(&topic, 4), codes::NONE);
    assert_eq!(committed(&mut member.client, &group, &topic, 0), (4, -1));
}

#[test]
fn a_generation_without_group_is_illegal() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for (version, code) in [(8, codes::ILLEGAL_GENERATION), (9, codes::GROUP_ID_NOT_FOUND)] {
        let request =
            commit_request(&unique("group"), &topic, 0, 1).with_member_id(s("x")).with_generation_id_or_member_epoch(3);
        assert_eq!(client.call(version, &request).topics[0].partitions[0].error_code, code, "version {version}");
    }
}

#[test]
fn several_groups_are_read_in_one_request() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (one, two) = (unique("group"), unique("group"));
    commit(&mut client, &one, &topic, 0, 1);
    commit(&mut client, &two, &topic, 0, 2);
    let ask = |g: &str| OffsetFetchRequestGroup::default().with_group_id(group_id(g)).with_topics(None);
    let answer = client
        .call(8, &OffsetFetchRequest::default().with_groups(vec![ask(&one), ask(&two)]).with_require_stable(true));
    let mut got: Vec<_> =
        answer.groups.iter().map(|g| (g.group_id.to_string(), g.topics[0].partitions[0].committed_offset)).collect();
    got.sort();
    assert_eq!(got, [(one, 1), (two, 2)]);
}

#[test]
fn version_10_of_commit_and_fetch_names_topics_by_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let group = unique("group");
    for (asked, code) in [(id, codes::NONE), (Uuid::from_u128(7), codes::UNKNOWN_TOPIC_ID)] {
        let body = Writer::new().compact_string(&group).i32(-1).compact_string("").compact_null();
        let body = body.compact_count(1).uuid(asked).compact_count(1).i32(0).i64(9).i32(2).compact_string("m");
        let answer = client.call_flexible(8, 10, &body.no_tags().no_tags().no_tags().0);
        let mut reader = Reader(&answer);
        assert_eq!((reader.i32(), reader.compact_count(), reader.uuid()), (0, 1, asked));
        assert_eq!((reader.compact_count(), reader.i32(), reader.i16()), (1, 0, code));
    }
    for (asked, code, offset) in [(id, codes::NONE, 9), (Uuid::from_u128(7), codes::UNKNOWN_TOPIC_ID, -1)] {
        let body = Writer::new().compact_count(1).compact_string(&group).compact_null().i32(-1);
        let body = body.compact_count(1).uuid(asked).compact_count(1).i32(0).no_tags().no_tags().i8(0).no_tags();
        let answer = client.call_flexible(9, 10, &body.0);
        let mut reader = Reader(&answer);
        assert_eq!((reader.i32(), reader.compact_count(), reader.compact_string()), (0, 1, Some(group.clone())));
        assert_eq!((reader.compact_count(), reader.uuid(), reader.compact_count()), (1, asked, 1));
        assert_eq!((reader.i32(), reader.i64()), (0, offset));
        let (epoch, text, got) = (reader.i32(), reader.compact_string(), reader.i16());
        assert_eq!(got, code);
        assert!(code != codes::NONE || (epoch, text.as_deref()) == (2, Some("m")));
    }
}

fn delete(client: &mut Client, group: &str, topic: &str, partitions: &[i32]) -> OffsetDeleteResponse {
    let parts = partitions.iter().map(|p| OffsetDeleteRequestPartition::default().with_partition_index(*p)).collect();
    let topic = OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(parts);
    client.call(0, &OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic]))
}

#[test]
fn bl_091_offsets_of_a_topic_in_use_are_not_deleted() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let (used, free) = (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    let mut member = Member::new(broker, &unique("group"));
    member.protocols = vec![("range".into(), subscription(&[&used]))];
    member.become_stable();
    for topic in [&used, &free] {
        assert_eq!(member.commit(topic, 3), codes::NONE);
    }
    let group = member.group.clone();
    let answer = delete(&mut client, &group, &used, &[0]);
    assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (0, codes::GROUP_SUBSCRIBED_TO_TOPIC));
    let answer = delete(&mut client, &group, &free, &[0]);
    assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (codes::NONE, codes::NONE));
    assert_eq!(committed(&mut client, &group, &used, 0).0, 3);
    assert_eq!(committed(&mut client, &group, &free, 0).0, -1);
}

#[test]
fn offset_delete_names_groups_and_topics_that_do_not_exist() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    assert_eq!(delete(&mut client, "no-such-group", &topic, &[0]).error_code, codes::GROUP_ID_NOT_FOUND);
    let group = unique("group");
    commit(&mut client, &group, &topic, 0, 1);
    let answer = delete(&mut client, &group, "no-such-topic", &[0]);
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    let mut other = Member::new(Broker::shared(), &unique("group"));
    other.protocol_type = "connect".into();
    other.become_stable();
    assert_eq!(delete(&mut client, &other.group, &topic, &[0]).error_code, codes::NON_EMPTY_GROUP);
}

#[test]
fn offsets_go_with_their_topic() {
    let mut client = Broker::shared().client();
    let (gone, kept) = (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    let group = unique("group");
    commit(&mut client, &group, &gone, 0, 1);
    commit(&mut client, &group, &kept, 0, 2);
    crate::topics::delete(&mut client, &gone);
    eventually("the offset goes with the topic", SOON, || {
        (committed(&mut client, &group, &gone, 0).0 == -1).then_some(())
    });
    assert_eq!(committed(&mut client, &group, &kept, 0).0, 2);
}

/// The shortest retention is a minute, so this is the one slow test; it waits while others run.
#[test]
fn bl_086_offsets_of_dead_groups_expire_and_those_of_live_ones_stay() {
    let own = [("offsets.retention.minutes", "1"), ("offsets.retention.check.interval.ms", "1000")];
    let broker = Broker::start(&own);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    // Old versions say themselves how long the offset lives.
    let answer = client.call(4, &commit_request("brief", &topic, 0, 5).with_retention_time_ms(1500));
    assert_eq!(answer.topics[0].partitions[0].error_code, codes::NONE);
    commit(&mut client, "standalone", &topic, 0, 1);
    let mut left = Member::new(&broker, "left");
    left.become_stable();
    assert_eq!(left.commit(&topic, 2), codes::NONE);
    left.leave();
    let mut live = Member::new(&broker, "live");
    live.session_ms = 300_000;
    live.protocols = vec![("range".into(), subscription(&[&topic]))];
    live.become_stable();
    let unread = fresh_topic(&mut client, &[]);
    assert_eq!((live.commit(&topic, 3), live.commit(&unread, 4)), (codes::NONE, codes::NONE));
    eventually("the brief offset expires", SOON, || (committed(&mut client, "brief", &topic, 0).0 == -1).then_some(()));
    assert_eq!(committed(&mut client, "standalone", &topic, 0).0, 1);
    eventually("dead offsets expire", std::time::Duration::from_secs(100), || {
        let gone = |c: &mut Client, g: &str| committed(c, g, &topic, 0).0 == -1;
        (gone(&mut client, "standalone") && gone(&mut client, "left")).then_some(())
    });
    eventually("what the live group no longer reads expires", SOON, || {
        (committed(&mut client, "live", &unread, 0).0 == -1).then_some(())
    });
    assert_eq!(committed(&mut client, "live", &topic, 0).0, 3);
    eventually("groups without offsets and members go", SOON, || {
        let answer = client.call(4, &ListGroupsRequest::default());
        let names: Vec<&str> = answer.groups.iter().map(|g| g.group_id.as_str()).collect();
        (names == ["live"]).then_some(())
    });
}
