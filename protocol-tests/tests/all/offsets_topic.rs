//! `__consumer_offsets` as a topic that tools read: which partition, which keys, which values. Uses the harness.

use protocol_tests::group::{Member, commit};
use protocol_tests::ops::*;
use protocol_tests::primitive::Reader;
use protocol_tests::{Broker, Client, unique};

/// The absolute value of Java's `String.hashCode`, modulo the partitions: where a group's records are (Kafka: Utils.abs).
fn partition_of(group: &str, partitions: i32) -> i32 {
    let hash = group.bytes().fold(0i32, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b)));
    hash.checked_abs().unwrap_or(0) % partitions
}

fn text(reader: &mut Reader<'_>) -> String {
    let size = reader.i16();
    String::from_utf8(reader.raw(size as usize)).unwrap()
}

#[test]
fn bl_070_commits_are_kafkas_records_in_the_groups_partition() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    // Names whose hashes are positive and negative.
    for group in [unique("group"), unique("polygenelubricants"), format!("zzzzzz-{}", unique("group"))] {
        is_in_its_partition(&mut client, &group, &topic);
    }
}

fn is_in_its_partition(client: &mut Client, group: &str, topic: &str) {
    commit(client, group, topic, 0, 42);
    let records = read_all(client, "__consumer_offsets", partition_of(group, 4));
    let found = records.iter().rev().find_map(|(_, record)| {
        let key = record.key.as_deref()?;
        let mut reader = Reader(key);
        (reader.i16() <= 1 && text(&mut reader) == group)
            .then(|| (text(&mut reader), reader.i32(), record.value.clone()))
    });
    let (name, partition, value) = found.expect("the commit is in the partition of the group's hash");
    assert_eq!((name.as_str(), partition), (topic, 0));
    let value = value.expect("a commit has a value");
    let mut reader = Reader(&value);
    let version = reader.i16();
    assert_eq!((reader.i64(), reader.i32()), (42, -1), "offset, leader epoch");
    match version {
        3 => assert_eq!(text(&mut reader), ""),
        4 => assert_eq!(reader.compact_string().as_deref(), Some("")),
        other => panic!("version {other}"),
    }
    assert!((reader.i64() - protocol_tests::batch::now_ms()).abs() < 60_000);
    if version == 4 {
        reader.tags();
    }
    reader.end();
}

#[test]
fn bl_070_a_classic_groups_state_is_kafkas_record() {
    let mut member = Member::new(Broker::shared(), &unique("group"));
    member.become_stable();
    let group = member.group.clone();
    let records = read_all(&mut member.client, "__consumer_offsets", partition_of(&group, 4));
    let value = records.iter().rev().find_map(|(_, record)| {
        let mut reader = Reader(record.key.as_deref()?);
        (reader.i16() == 2 && text(&mut reader) == group).then(|| record.value.clone())
    });
    let value = value.flatten().expect("the group's metadata is in its partition");
    let mut reader = Reader(&value);
    let version = reader.i16();
    assert!((3..=4).contains(&version), "version {version}");
    if version == 3 {
        assert_eq!((text(&mut reader).as_str(), reader.i32(), text(&mut reader).as_str()), ("consumer", 1, "range"));
        assert_eq!(text(&mut reader), member.member_id);
    }
}
