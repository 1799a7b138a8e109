//! Holds the messages to bytes that Kafka 4.4's own classes wrote (golden.txt: message, version, bytes), and to what
//! crate kafka-protocol writes at the versions it knows.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use uuid::Uuid;

use super::delete_groups::DeletableGroupResult;
use super::field::{Field, FieldError, Layout};
use super::offset_commit::{self, RequestPartition, RequestTopic};
use super::offset_fetch::{
    self, RequestGroup, ResponseGroup, ResponsePartition, ResponseTopic, WireRequest, WireTopic,
};
use super::*;

const GOLDEN: &str = include_str!("golden.txt");

fn golden(name: &str) -> impl Iterator<Item = (i16, Bytes)> {
    GOLDEN.lines().filter_map(move |line| {
        let (version, hex) = line.strip_prefix(name)?.trim_start().split_once(' ')?;
        Some((version.parse().unwrap(), self::hex(hex)))
    })
}

fn hex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect::<Vec<_>>().into()
}

fn decode<T: Decodable>(mut bytes: Bytes, version: i16) -> T {
    let value = T::decode(&mut bytes, version).unwrap();
    assert!(bytes.is_empty(), "{} bytes left at version {version}", bytes.len());
    value
}

fn encode<T: Encodable>(value: &T, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    value.encode(&mut bytes, version).unwrap();
    assert_eq!(value.compute_size(version).unwrap(), bytes.len(), "size at version {version}");
    bytes.freeze()
}

/// Reads what Kafka wrote at every version, writes it again, and lets the crate do the same up to `crate_max`.
fn holds<T, C>(name: &str, versions: i16, crate_max: i16)
where
    T: Decodable + Encodable,
    C: Decodable + Encodable,
{
    let mut seen = 0i16;
    for (version, bytes) in golden(name) {
        seen += 1;
        assert_eq!(encode(&decode::<T>(bytes.clone(), version), version), bytes, "{name} version {version}");
        if version <= crate_max {
            assert_eq!(encode(&decode::<C>(bytes.clone(), version), version), bytes, "{name} version {version}");
        }
        for cut in 0..bytes.len() {
            assert!(T::decode(&mut bytes.slice(..cut), version).is_err(), "{name} version {version} cut at {cut}");
        }
    }
    assert_eq!(seen, versions, "{name}");
    assert!(T::decode(&mut Bytes::from_static(&[0; 100]), 99).is_err());
}

#[test]
fn every_version_is_read_and_written_as_kafka_does() {
    holds::<ApiVersionsRequest, messages::ApiVersionsRequest>("ApiVersionsRequest", 6, 4);
    holds::<OffsetCommitRequest, messages::OffsetCommitRequest>("OffsetCommitRequest", 9, 9);
    holds::<WireRequest, messages::OffsetFetchRequest>("OffsetFetchRequest", 10, 9);
    holds::<DescribeLogDirsResponse, messages::DescribeLogDirsResponse>("DescribeLogDirsResponse", 5, 4);
    holds::<DeleteGroupsResponse, messages::DeleteGroupsResponse>("DeleteGroupsResponse", 4, 2);
}

fn newest<T: Decodable>(name: &str) -> T {
    let (version, bytes) = golden(name).last().unwrap();
    decode(bytes, version)
}

const ID: Uuid = Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);

#[test]
fn the_fields_mean_what_kafka_meant() {
    let commit: OffsetCommitRequest = newest("OffsetCommitRequest");
    assert_eq!((&commit.group_id[..], commit.generation_id_or_member_epoch), ("group", 7));
    assert_eq!((&commit.member_id[..], commit.group_instance_id.as_deref()), ("member", Some("instance")));
    let partition = |partition_index, committed_offset, committed_leader_epoch, metadata: Option<&'static str>| {
        let committed_metadata = metadata.map(StrBytes::from_static_str);
        RequestPartition { partition_index, committed_offset, committed_leader_epoch, committed_metadata }
    };
    let partitions = vec![partition(3, 1_234_567_890_123, 5, Some("meta")), partition(4, 0, -1, None)];
    assert_eq!(commit.topics, [RequestTopic { topic_id: ID, partitions, ..Default::default() }]);

    let fetch: OffsetFetchRequest = newest("OffsetFetchRequest");
    assert!(fetch.require_stable);
    let topics = vec![offset_fetch::RequestTopic { name: StrBytes::default(), topic_id: ID, partitions: vec![0, 5] }];
    let text = StrBytes::from_static_str;
    let (group_id, member_id) = (text("group"), Some(text("member")));
    let group = RequestGroup { group_id, member_id, member_epoch: 8, topics: Some(topics) };
    let all = RequestGroup { group_id: text("all"), member_id: None, member_epoch: -1, topics: None };
    assert_eq!(fetch.groups, [group, all]);

    let deleted: DeleteGroupsResponse = newest("DeleteGroupsResponse");
    let group_id = text("group");
    let error_message = Some(text("not empty"));
    assert_eq!(deleted.results[0], DeletableGroupResult { group_id, error_code: 68, error_message });

    let dirs: DescribeLogDirsResponse = newest("DescribeLogDirsResponse");
    assert!(dirs.results[0].is_cordoned && dirs.results[0].topics[0].partitions[0].is_future_key);
    assert_eq!((dirs.results[0].total_bytes, dirs.results[0].usable_bytes), (1 << 40, 1 << 39));
}

#[test]
fn headers_have_tags_from_the_first_flexible_version_on() {
    let versions = |header: fn(i16) -> i16| (0..=10).map(header).collect::<Vec<_>>();
    assert_eq!(versions(OffsetCommitRequest::header_version), versions(messages::OffsetCommitRequest::header_version));
    assert_eq!(versions(OffsetFetchRequest::header_version), versions(messages::OffsetFetchRequest::header_version));
    let ours = versions(DeleteGroupsResponse::header_version);
    assert_eq!(ours, versions(messages::DeleteGroupsResponse::header_version));
    let ours = versions(DescribeLogDirsResponse::header_version);
    assert_eq!(ours, versions(messages::DescribeLogDirsResponse::header_version));
}

#[test]
fn null_is_refused_at_versions_that_have_none() {
    let all = WireRequest { topics: None, ..Default::default() };
    assert_eq!(decode::<WireRequest>(encode(&all, 2), 2), all);
    assert!(all.encode(&mut BytesMut::new(), 1).is_err());
    assert!(OffsetFetchRequest::decode(&mut Bytes::from_static(&[0, 0, 0xff, 0xff, 0xff, 0xff]), 1).is_err());
}

#[test]
fn a_count_that_lies_costs_nothing() {
    let mut bytes = &[0, 0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3][..];
    let layout = Layout { version: 2, flexible: false };
    bytes = &bytes[2..];
    let error = Vec::<WireTopic>::read(&mut bytes, layout).unwrap_err();
    assert_eq!(error, FieldError::Length { length: 0x7fff_ffff, remaining: 3 });
    let mut bytes = &[0xff, 0xff, 0xff, 0xff, 0x0f, 1][..];
    let error = Option::<StrBytes>::read(&mut bytes, Layout { version: 9, flexible: true }).unwrap_err();
    assert_eq!(error, FieldError::Length { length: 0xffff_fffe, remaining: 1 });
}

#[test]
fn one_group_of_the_old_layout_is_a_list_of_one() {
    for (version, bytes) in golden("OffsetFetchRequest").filter(|(version, _)| *version < 8) {
        let request: OffsetFetchRequest = decode(bytes, version);
        let [group] = &request.groups[..] else { panic!("{} groups", request.groups.len()) };
        assert_eq!((&group.group_id[..], group.member_epoch, request.require_stable), ("group", -1, version == 7));
        let topics = group.topics.as_ref().unwrap();
        assert_eq!((&topics[0].name[..], &topics[0].partitions[..]), ("topic", &[0, 5][..]));
    }
}

#[test]
fn answers_about_offsets_are_written_at_every_version() {
    let text = StrBytes::from_static_str;
    let topic = offset_commit::ResponseTopic { name: text("t"), topic_id: ID, partitions: vec![(1, 12)] };
    let committed = OffsetCommitResponse { topics: vec![topic] };
    (2..=10).for_each(|version| drop(encode(&committed, version)));
    assert_eq!(encode(&committed, 9), hex("000000000202740200000001000c000000"));
    assert_eq!(encode(&committed, 10), hex("00000000020102030405060708090a0b0c0d0e0f100200000001000c000000"));

    let (committed_offset, committed_leader_epoch, metadata) = (42, 3, Some(text("x")));
    let partition =
        ResponsePartition { partition: 1, committed_offset, committed_leader_epoch, metadata, error_code: 88 };
    let topic = ResponseTopic { name: text("t"), topic_id: ID, partitions: vec![partition] };
    let group = ResponseGroup { group_id: text("g"), error_code: 16, topics: vec![topic] };
    let fetched = OffsetFetchResponse { groups: vec![group] };
    (1..=10).for_each(|version| drop(encode(&fetched, version)));
    let newest =
        "00000000020267020102030405060708090a0b0c0d0e0f100200000001000000000000002a0000000302780058000000100000";
    assert_eq!(encode(&fetched, 10), hex(newest));
}

message! {
    /// A message with tagged fields, as later APIs have them.
    Tagged: response, versions 0..=2, flexible 1 {
        /// In every version.
        plain: i32 [0..] = 0,
    }
    tagged {
        /// Known from version 1 on.
        0 => epoch: i64 [1..] = -1,
        /// Known from version 2 on.
        3 => names: Vec<StrBytes> [2..] = Vec::new(),
    }
}

#[test]
fn tagged_fields_are_written_only_when_they_say_something() {
    assert_eq!(encode(&Tagged::default(), 0), [0, 0, 0, 0][..]);
    assert_eq!(encode(&Tagged::default(), 2), [0, 0, 0, 0, 0][..]);
    let full = Tagged { plain: 1, epoch: 5, names: vec![StrBytes::from_static_str("ab")] };
    let bytes = encode(&full, 2);
    assert_eq!(bytes, [0, 0, 0, 1, 2, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 3, 4, 2, 3, b'a', b'b'][..]);
    assert_eq!(decode::<Tagged>(bytes.clone(), 2), full);
    assert_eq!(decode::<Tagged>(bytes, 1), Tagged { names: Vec::new(), ..full.clone() });
    assert_eq!(encode(&full, 1), [0, 0, 0, 1, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5][..]);
}
