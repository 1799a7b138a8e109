//! ApiVersions (key 18): what is advertised, and how unknown versions are answered. Uses the harness.

use std::collections::BTreeMap;

use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use protocol_tests::client::decode;
use protocol_tests::ops::s;
use protocol_tests::primitive::{Reader, Writer};
use protocol_tests::{Broker, Client, Target, codes};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

fn ask(client: &mut Client, version: i16) -> ApiVersionsResponse {
    let mut request = ApiVersionsRequest::default();
    if version >= 3 {
        request = request.with_client_software_name(s("protocol-tests")).with_client_software_version(s("1"));
    }
    client.call(version, &request)
}

fn ranges(answer: &ApiVersionsResponse) -> BTreeMap<i16, (i16, i16)> {
    answer.api_keys.iter().map(|k| (k.api_key, (k.min_version, k.max_version))).collect()
}

#[test]
fn every_version_from_0_to_4_gives_the_same_table() {
    let mut client = Broker::shared().client();
    let table = ranges(&ask(&mut client, 0));
    for version in 1..=4 {
        let answer = ask(&mut client, version);
        assert_eq!((answer.error_code, ranges(&answer)), (codes::NONE, table.clone()), "version {version}");
    }
}

#[test]
fn the_ranges_of_this_brokers_apis_are_those_of_kafka_4_4() {
    let wanted = [
        (0, 0, 13),
        (1, 4, 18),
        (2, 1, 11),
        (3, 0, 13),
        (8, 2, 10),
        (9, 1, 10),
        (10, 0, 6),
        (11, 0, 9),
        (12, 0, 4),
        (13, 0, 5),
        (14, 0, 5),
        (15, 0, 6),
        (16, 0, 5),
        (18, 0, 5),
        (19, 2, 7),
        (20, 1, 6),
        (21, 0, 2),
        (22, 0, 5),
        (23, 2, 4),
        (32, 1, 4),
        (33, 0, 2),
        (35, 1, 5),
        (37, 0, 3),
        (42, 0, 3),
        (44, 0, 1),
        (47, 0, 0),
        (60, 0, 2),
        (61, 0, 0),
        (74, 0, 1),
        (75, 0, 0),
    ];
    let table = ranges(&ask(&mut Broker::shared().client(), 3));
    let missing: Vec<_> = wanted.iter().filter(|(k, min, max)| table.get(k) != Some(&(*min, *max))).collect();
    assert!(missing.is_empty(), "key, min, max: {missing:?}; advertised: {table:?}");
}

#[test]
fn bl_001_an_unknown_version_is_answered_in_v0_on_the_same_socket() {
    let mut client = Broker::shared().client();
    let own = ranges(&ask(&mut client, 0))[&18];
    for version in [6, 99, i16::MAX, -1] {
        let id = client.send_body(18, version, 2, &Writer::new().compact_string("x").compact_string("1").no_tags().0);
        let frame = client.read_frame(LIMIT).expect("an answer");
        let answer = decode::<ApiVersionsRequest>(frame, 0, id);
        assert_eq!(answer.error_code, codes::UNSUPPORTED_VERSION);
        assert_eq!(ranges(&answer), BTreeMap::from([(18, own)]));
    }
    assert_eq!(ask(&mut client, 4).error_code, codes::NONE);
}

#[test]
fn bl_001_version_5_names_cluster_and_node() {
    let mut client = Broker::shared().client();
    let body = Writer::new().compact_string("x").compact_string("1").compact_null().i32(-1).no_tags();
    let answer = client.call_flexible(18, 5, &body.0);
    let mut reader = Reader(&answer);
    assert_eq!(reader.i16(), codes::NONE);
    let rows = (0..reader.compact_count()).map(|_| {
        let row = (reader.i16(), (reader.i16(), reader.i16()));
        reader.tags();
        row
    });
    let table: BTreeMap<i16, (i16, i16)> = rows.collect();
    assert_eq!(table, ranges(&ask(&mut client, 4)));
    assert_eq!(reader.i32(), 0, "throttle time");
    reader.tags();
    reader.end();
}

#[test]
fn bl_001_a_client_name_that_cannot_be_is_an_invalid_request_and_no_reason_to_close() {
    let mut client = Broker::shared().client();
    for version in [3, 4] {
        for (name, number) in [("", "1"), ("-x", "1"), ("x y", "1"), ("x", ""), ("x", "1/2")] {
            let request = ApiVersionsRequest::default()
                .with_client_software_name(s(name))
                .with_client_software_version(s(number));
            assert_eq!(client.call(version, &request).error_code, codes::INVALID_REQUEST, "{name:?} {number:?}");
        }
        assert_eq!(ask(&mut client, version).error_code, codes::NONE);
    }
}

#[test]
fn bl_002_produce_is_advertised_from_version_0() {
    assert_eq!(ranges(&ask(&mut Broker::shared().client(), 0))[&0].0, 0);
}

#[test]
fn bl_004_features_with_minimum_0_are_left_out_before_version_4() {
    let mut client = Broker::shared().client();
    let old = ask(&mut client, 3);
    assert!(old.supported_features.iter().all(|f| f.min_version > 0), "{:?}", old.supported_features);
    let new = ask(&mut client, 4);
    assert!(
        new.supported_features.iter().any(|f| f.name.as_str() == "metadata.version"),
        "{:?}",
        new.supported_features
    );
    if Target::current() == Target::Kafka {
        assert!(new.supported_features.iter().any(|f| f.min_version == 0));
    }
}
