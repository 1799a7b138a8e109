//! ListOffsets (key 2): look-up by time and the special timestamps. Uses the harness.

use kafka_protocol::messages::ListOffsetsRequest;
use protocol_tests::client::{decode, encode};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Compression, Record, codes};
use std::time::Duration;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

fn at(times: &[i64]) -> Batch {
    Batch::new(times.iter().map(|t| Record::value("v").at(*t)).collect())
}

fn find(client: &mut Client, topic: &str, timestamp: i64) -> (i64, i64) {
    let answer = list_offset(client, topic, 0, timestamp);
    assert_eq!(answer.error_code, codes::NONE);
    (answer.offset, answer.timestamp)
}

#[test]
fn every_version_answers_at_its_own_layout() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    append(&mut client, &topic, &at(&[10, 20, 30]));
    for version in 1..=10 {
        for (asked, offset, timestamp) in [(LATEST, 3, -1), (EARLIEST, 0, -1), (15, 1, 20), (31, -1, -1)] {
            let answer = client.call(version, &list_offsets_request(&topic, 0, asked));
            let part = &answer.topics[0].partitions[0];
            assert_eq!(
                (part.error_code, part.offset, part.timestamp),
                (codes::NONE, offset, timestamp),
                "v{version} {asked}"
            );
        }
        for (name, partition) in [("no-such-topic", 0), (topic.as_str(), 5)] {
            let answer = client.call(version, &list_offsets_request(name, partition, LATEST));
            let part = &answer.topics[0].partitions[0];
            assert_eq!((part.error_code, part.offset), (codes::UNKNOWN_TOPIC_OR_PARTITION, -1), "v{version}");
        }
    }
}

/// Version 11 has version 10's layout and one special timestamp more (KIP-1023).
#[test]
fn version_11_knows_the_earliest_pending_upload() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 2);
    for (asked, offset) in [(LATEST, 2), (EARLIEST, 0), (EARLIEST_PENDING_UPLOAD, -1)] {
        let body = encode(10, &list_offsets_request(&topic, 0, asked));
        let id = client.send_body(2, 11, 2, &body);
        let frame = client.read_frame(Duration::from_secs(10)).expect("an answer");
        let answer = decode::<ListOffsetsRequest>(frame, 10, id);
        let part = &answer.topics[0].partitions[0];
        assert_eq!((part.error_code, part.offset), (codes::NONE, offset), "{asked}");
    }
}

#[test]
fn local_and_tiered_offsets_of_a_log_without_tiers() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 5);
    delete_records(&mut client, &topic, 0, 2);
    let ask = |client: &mut Client, version: i16, asked: i64| {
        let answer = client.call(version, &list_offsets_request(&topic, 0, asked));
        (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].offset)
    };
    assert_eq!(ask(&mut client, 8, EARLIEST_LOCAL), (codes::NONE, 2));
    assert_eq!(ask(&mut client, 9, LATEST_TIERED), (codes::NONE, -1));
    for (version, asked) in [(7, EARLIEST_LOCAL), (8, LATEST_TIERED), (10, EARLIEST_PENDING_UPLOAD), (10, -7)] {
        assert_eq!(ask(&mut client, version, asked), (codes::UNSUPPORTED_VERSION, -1), "v{version} {asked}");
    }
}

#[test]
fn bl_055_max_timestamp_needs_version_7() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    assert_eq!(find(&mut client, &topic, MAX_TIMESTAMP), (-1, -1), "an empty partition");
    append(&mut client, &topic, &at(&[10, 40]));
    append(&mut client, &topic, &at(&[30]));
    for version in 1..=10 {
        let answer = client.call(version, &list_offsets_request(&topic, 0, MAX_TIMESTAMP));
        let part = &answer.topics[0].partitions[0];
        let wanted = if version < 7 { (codes::UNSUPPORTED_VERSION, -1, -1) } else { (codes::NONE, 1, 40) };
        assert_eq!((part.error_code, part.offset, part.timestamp), wanted, "version {version}");
    }
}

#[test]
fn bl_056_max_timestamp_names_the_record_and_not_the_batch() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL {
        let topic = timeless_topic(&mut client, &[]);
        append(&mut client, &topic, &at(&[1, 2]));
        append(&mut client, &topic, &at(&[5, 9, 7]).compressed(codec));
        assert_eq!(find(&mut client, &topic, MAX_TIMESTAMP), (3, 9), "{codec:?}");
        append(&mut client, &topic, &at(&[9, 9]).compressed(codec));
        assert_eq!(find(&mut client, &topic, MAX_TIMESTAMP), (3, 9), "the earliest of equal ones, {codec:?}");
    }
}

#[test]
fn bl_056_with_log_append_time_the_first_record_of_the_batch_is_named() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL {
        let topic = fresh_topic(&mut client, &[("message.timestamp.type", "LogAppendTime")]);
        let answer = produce(&mut client, &topic, 0, at(&[5, 9, 7]).compressed(codec).bytes());
        let stamped = answer.log_append_time_ms;
        assert_eq!(find(&mut client, &topic, MAX_TIMESTAMP), (0, stamped), "{codec:?}");
        assert_eq!(find(&mut client, &topic, stamped), (0, stamped), "{codec:?}");
        assert_eq!(find(&mut client, &topic, stamped + 1), (-1, -1), "{codec:?}");
    }
}

#[test]
fn bl_058_a_time_between_records_finds_the_next_one() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    for t in [2, 4, 6, 8] {
        append(&mut client, &topic, &at(&[t]));
    }
    let wanted =
        [(0, (0, 2)), (2, (0, 2)), (3, (1, 4)), (4, (1, 4)), (5, (2, 6)), (7, (3, 8)), (8, (3, 8)), (9, (-1, -1))];
    for (asked, found) in wanted {
        assert_eq!(find(&mut client, &topic, asked), found, "{asked}");
    }
}

#[test]
fn bl_059_the_record_within_the_batch_is_found() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL {
        let topic = timeless_topic(&mut client, &[]);
        append(&mut client, &topic, &at(&(1000..2000).collect::<Vec<_>>()).compressed(codec));
        append(&mut client, &topic, &at(&(1500..2500).collect::<Vec<_>>()).compressed(codec));
        for (asked, found) in [(1700, (700, 1700)), (1999, (999, 1999)), (2000, (1500, 2000)), (2500, (-1, -1))] {
            assert_eq!(find(&mut client, &topic, asked), found, "{asked} {codec:?}");
        }
    }
}

#[test]
fn bl_059_the_search_goes_by_offset_when_times_are_out_of_order() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    for times in [[50, 10], [20, 90], [5, 60]] {
        append(&mut client, &topic, &at(&times));
    }
    for (asked, found) in [(1, (0, 50)), (15, (0, 50)), (51, (3, 90)), (90, (3, 90)), (91, (-1, -1))] {
        assert_eq!(find(&mut client, &topic, asked), found, "{asked}");
    }
}

#[test]
fn a_look_up_crosses_segments() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[("segment.bytes", "1048576"), ("index.interval.bytes", "1000")]);
    for i in 0..30 {
        let record = Record::value(vec![b'x'; 100_000]).at(1000 + i * 10);
        append(&mut client, &topic, &Batch::new(vec![record]));
    }
    for i in [0, 1, 9, 10, 11, 20, 29] {
        assert_eq!(find(&mut client, &topic, 1000 + i * 10), (i, 1000 + i * 10));
        assert_eq!(find(&mut client, &topic, 1000 + i * 10 - 1).0, i);
    }
    assert_eq!(find(&mut client, &topic, MAX_TIMESTAMP), (29, 1290));
}

#[test]
fn bl_061_isolation_makes_no_difference_without_transactions() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    append(&mut client, &topic, &at(&[10, 20]));
    for isolation in [0, 1] {
        for (asked, offset) in [(LATEST, 2), (EARLIEST, 0), (20, 1)] {
            let answer = client.call(7, &list_offsets_request(&topic, 0, asked).with_isolation_level(isolation));
            assert_eq!(answer.topics[0].partitions[0].offset, offset);
        }
    }
}

#[test]
fn bl_064_version_0_closes_and_a_partition_asked_twice_is_refused() {
    let broker = Broker::shared();
    let mut old = broker.client();
    old.send_body(2, 0, 1, &[0; 8]);
    assert!(old.is_closed_within(Duration::from_secs(10)));
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    let mut request = list_offsets_request(&topic, 0, LATEST);
    let again = list_offsets_request(&topic, 0, EARLIEST).topics[0].partitions[0].clone();
    request.topics[0].partitions.push(again);
    for version in 1..=10 {
        let answer = client.call(version, &request);
        let codes_of: Vec<i16> = answer.topics[0].partitions.iter().map(|p| p.error_code).collect();
        assert_eq!(codes_of, [codes::INVALID_REQUEST], "version {version}");
    }
}

#[test]
fn bl_065_the_earliest_offset_can_be_read() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["0", "1", "2", "3", "4"]));
    append(&mut client, &topic, &Batch::of(&["5"]));
    for start in [2, 5, 6] {
        assert_eq!(delete_records(&mut client, &topic, 0, start).low_watermark, start);
        assert_eq!(find(&mut client, &topic, EARLIEST).0, start);
        let data = fetch(&mut client, &topic, 0, start);
        assert_eq!((data.error_code, data.log_start_offset), (codes::NONE, start));
        let got = protocol_tests::batch::parse(&record_bytes(&data));
        assert_eq!(
            got.first().map(|b| b.base_offset),
            [(2, 0), (5, 5)].iter().find(|(s, _)| *s == start).map(|(_, b)| *b)
        );
    }
}

#[test]
fn bl_062_leader_epochs_are_told_and_checked() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[]);
    let epoch = metadata(&mut client, &[&topic]).topics[0].partitions[0].leader_epoch;
    let ask = |client: &mut Client, asked: i64| list_offset(client, &topic, 0, asked).leader_epoch;
    assert_eq!(
        (ask(&mut client, LATEST), ask(&mut client, EARLIEST), ask(&mut client, 10)),
        (epoch, epoch, -1),
        "empty"
    );
    append(&mut client, &topic, &at(&[10]));
    assert_eq!((ask(&mut client, 10), ask(&mut client, LATEST), ask(&mut client, EARLIEST)), (epoch, epoch, epoch));
    assert_eq!(ask(&mut client, 11), -1, "nothing found");
    let mut request = list_offsets_request(&topic, 0, LATEST);
    request.topics[0].partitions[0].current_leader_epoch = epoch + 1;
    assert_eq!(client.call(7, &request).topics[0].partitions[0].error_code, codes::UNKNOWN_LEADER_EPOCH);
}

#[test]
fn bl_097_a_topic_without_transactions_has_no_hidden_offsets() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 40);
    assert_eq!(find(&mut client, &topic, LATEST).0, 40);
}
