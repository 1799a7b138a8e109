//! Every version of every API on one connection: each is answered, in the layout of its version, also when it is an error.
//! Uses the harness.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Buf;
use kafka_protocol::messages::{ApiVersionsRequest, ListOffsetsRequest};
use protocol_tests::client::encode;
use protocol_tests::ops::*;
use protocol_tests::primitive::Writer;
use protocol_tests::{Broker, Client, Target};
use uuid::Uuid;

use crate::every_api::{Sample, every_version};

const LIMIT: Duration = Duration::from_secs(20);

/// Bodies of the versions that the typed messages lack: key, version, body. All have flexible headers.
fn by_hand() -> Vec<(i16, i16, Vec<u8>)> {
    let commit = Writer::new().compact_string("g").i32(-1).compact_string("").compact_null();
    let commit = commit.compact_count(1).uuid(Uuid::from_u128(7)).compact_count(1).i32(0).i64(9).i32(2);
    let commit = commit.compact_string("m").no_tags().no_tags().no_tags();
    let fetch = Writer::new().compact_count(1).compact_string("g").compact_null().i32(-1).compact_count(1);
    let fetch = fetch.uuid(Uuid::from_u128(7)).compact_count(1).i32(0).no_tags().no_tags().i8(0).no_tags();
    vec![
        (2, 11, encode::<ListOffsetsRequest>(10, &list_offsets_request("t", 0, -1))),
        (8, 10, commit.0),
        (9, 10, fetch.0),
        (18, 5, Writer::new().compact_string("x").compact_string("1").compact_null().i32(-1).no_tags().0),
        (35, 5, Writer::new().compact_null().no_tags().0),
        (42, 3, Writer::new().compact_count(1).compact_string("no-such-group").no_tags().0),
    ]
}

/// Sends a sample and gives the text of its answer.
fn answer(client: &mut Client, sample: &Sample) -> String {
    let Sample { name, key, version, header_version, two, read, .. } = sample;
    let id = client.send_body(*key, *version, *header_version, two);
    let frame = client.read_frame(LIMIT).unwrap_or_else(|e| panic!("no answer to {name} v{version}: {e:?}"));
    read(frame, *version, id)
}

#[test]
fn bl_005_every_advertised_version_is_answered_and_none_closes_the_connection() {
    let mut client = Broker::shared().client();
    let mut answered = BTreeSet::new();
    for sample in every_version() {
        answer(&mut client, &sample);
        answered.insert((sample.key, sample.version));
    }
    for (key, version, body) in by_hand() {
        let id = client.send_body(key, version, 2, &body);
        let mut frame = client.read_frame(LIMIT).unwrap_or_else(|e| panic!("no answer to API {key} v{version}: {e:?}"));
        assert_eq!(frame.get_i32(), id, "API {key} v{version}");
        answered.insert((key, version));
    }
    let table = client.call(0, &ApiVersionsRequest::default()).api_keys;
    let keys: BTreeSet<i16> = answered.iter().map(|(key, _)| *key).collect();
    for row in table {
        // Apache Kafka serves APIs that these tests do not speak; ours must serve none without a test here.
        if Target::current() == Target::Kafka && !keys.contains(&row.api_key) {
            continue;
        }
        // Produce is advertised from version 0 and served from 3 (KAFKA-18659).
        let first = if row.api_key == 0 { 3 } else { row.min_version };
        for version in first..=row.max_version {
            assert!(answered.contains(&(row.api_key, version)), "API {} v{version} is advertised only", row.api_key);
        }
    }
}

/// Versions whose answer has no code for what the sample asks.
fn has_no_error(sample: &Sample) -> bool {
    match sample.name {
        "FindCoordinator" | "OffsetFetch" | "ListGroups" | "ListConfigResources" | "DescribeLogDirs" => true,
        "DescribeGroups" => sample.version < 6,
        "ApiVersions" => sample.version < 3,
        "DescribeCluster" => sample.version < 1,
        _ => false,
    }
}

#[test]
fn bl_011_errors_of_every_api_are_written_in_the_layout_of_their_version() {
    let mut client = Broker::shared().client();
    for sample in every_version().into_iter().filter(|s| !has_no_error(s)) {
        let text = answer(&mut client, &sample);
        let codes = text.split("error_code: ").skip(1);
        assert!(codes.into_iter().any(|c| !c.starts_with('0')), "{} v{}: {text}", sample.name, sample.version);
    }
}
