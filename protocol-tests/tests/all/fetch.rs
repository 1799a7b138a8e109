//! Fetch (key 1) without sessions: versions, offsets, limits, long polls, errors. Uses the harness.

use std::time::{Duration, Instant};

use kafka_protocol::messages::FetchRequest;
use protocol_tests::batch::parse;
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Record, codes, unique};
use uuid::Uuid;

use crate::support::fetch_by_topic_id;

/// Far longer than any answer takes; who answers within `WOKEN` did not wait for it.
const MAX_WAIT_MS: i32 = 20_000;
const WOKEN: Duration = Duration::from_secs(8);

fn big(size: usize) -> Batch {
    Batch::new(vec![Record::value(vec![b'x'; size])])
}

fn sizes(client: &mut Client, request: &FetchRequest) -> Vec<usize> {
    let answer = client.call(12, request);
    let parts = answer.responses.iter().flat_map(|t| &t.partitions);
    parts.map(|p| p.records.as_ref().map_or(0, |r| r.len())).collect()
}

#[test]
fn every_version_reads_the_records_and_the_watermarks() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    append(&mut client, &topic, &Batch::of(&["a", "b"]));
    for version in 4..=18 {
        let mut request = fetch_request(&[(&topic, 0, 0)]);
        if version >= 13 {
            request = fetch_by_topic_id(request, id);
        }
        let answer = client.call(version, &request);
        let part = &answer.responses[0].partitions[0];
        assert_eq!((answer.error_code, part.error_code), (codes::NONE, codes::NONE), "version {version}");
        assert_eq!((part.high_watermark, part.last_stable_offset), (2, 2), "version {version}");
        assert!(version < 5 || part.log_start_offset == 0);
        assert_eq!(parse(&record_bytes(part))[0].records.len(), 2, "version {version}");
        assert_eq!(part.preferred_read_replica.0, -1);
    }
}

#[test]
fn bl_011_errors_decode_at_every_version() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    for version in 4..=18 {
        let by_id = version >= 13;
        let wanted = [("no-such-topic", 0, 0, 3), (topic.as_str(), 7, 0, 3), (topic.as_str(), 0, 1, 1)];
        for (name, partition, offset, code) in wanted {
            let mut request = fetch_request(&[(name, partition, offset)]);
            let mut expected = code;
            if by_id {
                let known = name == topic;
                request = fetch_by_topic_id(request, if known { id } else { Uuid::from_u128(4711) });
                expected = if known { code } else { codes::UNKNOWN_TOPIC_ID };
            }
            let answer = client.call(version, &request);
            let part = &answer.responses[0].partitions[0];
            assert_eq!(part.error_code, expected, "version {version} {name} {partition} {offset}");
            assert!(record_bytes(part).is_empty());
        }
    }
}

#[test]
fn bl_037_an_empty_partition_is_answered_after_max_wait() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let start = Instant::now();
    let answer = client.call(12, &fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(400).with_min_bytes(1));
    assert_eq!(answer.responses[0].partitions[0].error_code, codes::NONE);
    assert!(start.elapsed() >= Duration::from_millis(390), "it waits for max_wait");
    assert!(start.elapsed() < WOKEN);
}

#[test]
fn bl_037_every_version_is_answered_within_max_wait_also_when_min_bytes_never_come() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    append(&mut client, &topic, &Batch::of(&["v"]));
    for version in 4..=18 {
        for (offset, n) in [(0, 1), (1, 0)] {
            let mut request = fetch_request(&[(&topic, 0, offset)]).with_max_wait_ms(150).with_min_bytes(i32::MAX);
            if version >= 13 {
                request = fetch_by_topic_id(request, id);
            }
            let start = Instant::now();
            let answer = client.call(version, &request);
            assert!(start.elapsed() >= Duration::from_millis(140) && start.elapsed() < WOKEN, "version {version}");
            let part = &answer.responses[0].partitions[0];
            assert_eq!((part.error_code, parse(&record_bytes(part)).len()), (codes::NONE, n), "version {version}");
        }
    }
}

#[test]
fn bl_037_fetches_that_wait_together_are_all_answered() {
    let broker = Broker::shared();
    let topic = fresh_topic(&mut broker.client(), &[]);
    let request = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(500).with_min_bytes(1);
    let mut waiting: Vec<(Client, i32)> = (0..100)
        .map(|_| {
            let mut client = broker.client();
            let id = client.send(12, &request);
            (client, id)
        })
        .collect();
    for (client, id) in &mut waiting {
        assert_eq!(client.receive::<FetchRequest>(12, *id, WOKEN).responses[0].partitions[0].error_code, codes::NONE);
    }
}

#[test]
fn bl_037_empty_records_are_empty_bytes_and_not_null() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for version in 4..=12 {
        let answer = client.call(version, &fetch_request(&[(&topic, 0, 0)]));
        assert_eq!(answer.responses[0].partitions[0].records.as_deref(), Some(&[][..]), "version {version}");
    }
}

#[test]
fn a_waiting_fetch_is_woken_by_the_append() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    let mut waiting = broker.client();
    let request = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(MAX_WAIT_MS).with_min_bytes(1);
    let id = waiting.send(12, &request);
    std::thread::sleep(Duration::from_millis(200));
    append(&mut client, &topic, &Batch::of(&["wake"]));
    let answer = waiting.receive::<FetchRequest>(12, id, WOKEN);
    assert_eq!(parse(&record_bytes(&answer.responses[0].partitions[0]))[0].records.len(), 1);
}

#[test]
fn a_waiting_fetch_wants_min_bytes_over_all_its_partitions() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let (one, two) = (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    let mut waiting = broker.client();
    let request = fetch_request(&[(&one, 0, 0), (&two, 0, 0)]).with_max_wait_ms(MAX_WAIT_MS).with_min_bytes(3000);
    let id = waiting.send(12, &request);
    append(&mut client, &one, &big(2000));
    assert!(waiting.read_frame(Duration::from_millis(500)).is_err(), "2000 bytes are too few");
    append(&mut client, &two, &big(2000));
    let answer = waiting.receive::<FetchRequest>(12, id, WOKEN);
    assert_eq!(answer.responses.iter().filter(|t| !record_bytes(&t.partitions[0]).is_empty()).count(), 2);
}

#[test]
fn enough_bytes_are_answered_without_waiting() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &big(2000));
    let start = Instant::now();
    let request = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(MAX_WAIT_MS).with_min_bytes(1000);
    assert!(sizes(&mut client, &request)[0] > 2000);
    assert!(start.elapsed() < WOKEN);
}

#[test]
fn an_error_in_one_partition_is_answered_without_waiting() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let start = Instant::now();
    let request = fetch_request(&[(&topic, 0, 0), (&topic, 0, 99), ("no-such-topic", 0, 0)])
        .with_max_wait_ms(MAX_WAIT_MS)
        .with_min_bytes(1);
    client.call(12, &request);
    assert!(start.elapsed() < WOKEN);
}

#[test]
fn bl_035_the_first_batch_is_whole_though_over_both_limits() {
    let mut client = Broker::shared().client();
    let (empty, one, two) =
        (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    append(&mut client, &one, &big(500_000));
    append(&mut client, &two, &big(500_000));
    let mut request = fetch_request(&[(&empty, 0, 0), (&one, 0, 0), (&two, 0, 0)]).with_max_bytes(1);
    for topic in &mut request.topics {
        topic.partitions[0].partition_max_bytes = 1;
    }
    let got = sizes(&mut client, &request);
    assert_eq!(got[0], 0);
    assert!(got[1] > 500_000 && got[2] <= 1, "{got:?}");
}

#[test]
fn partition_max_bytes_and_max_bytes_bound_what_comes() {
    let mut client = Broker::shared().client();
    let (one, two) = (fresh_topic(&mut client, &[]), fresh_topic(&mut client, &[]));
    for _ in 0..10 {
        append(&mut client, &one, &big(10_000));
        append(&mut client, &two, &big(10_000));
    }
    let mut request = fetch_request(&[(&one, 0, 0), (&two, 0, 0)]);
    request.topics[0].partitions[0].partition_max_bytes = 35_000;
    let got = sizes(&mut client, &request);
    assert!(got[0] > 20_000 && got[0] <= 35_000 && got[1] > 90_000, "{got:?}");
    let got = sizes(&mut client, &fetch_request(&[(&one, 0, 0), (&two, 0, 0)]).with_max_bytes(55_000));
    assert!(got.iter().sum::<usize>() <= 55_000 && got[0] > 40_000, "{got:?}");
}

#[test]
fn bl_038_an_offset_beyond_the_end_or_below_the_start_is_out_of_range() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 5);
    delete_records(&mut client, &topic, 0, 2);
    for (offset, code) in [(0, 1), (1, 1), (2, 0), (4, 0), (5, 0), (6, 1), (-1, 1), (i64::MAX, 1)] {
        let data = fetch(&mut client, &topic, 0, offset);
        assert_eq!(data.error_code, code, "offset {offset}");
        if code == codes::NONE {
            assert_eq!((data.high_watermark, data.log_start_offset), (5, 2));
        } else {
            assert_eq!(data.high_watermark, -1, "offset {offset}");
        }
    }
}

#[test]
fn a_fetch_in_the_middle_of_a_batch_gives_the_whole_batch() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a", "b", "c"]));
    append(&mut client, &topic, &Batch::of(&["d"]));
    let got = batches(&mut client, &topic, 0, 1);
    assert_eq!(got.iter().map(|b| b.base_offset).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(batches(&mut client, &topic, 0, 3)[0].base_offset, 3);
}

#[test]
fn a_leader_epoch_from_the_future_is_unknown() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a"]));
    let now = metadata(&mut client, &[&topic]).topics[0].partitions[0].leader_epoch;
    let mut request = fetch_request(&[(&topic, 0, 0)]);
    for (epoch, code) in [(now, codes::NONE), (-1, codes::NONE), (now + 1, codes::UNKNOWN_LEADER_EPOCH)] {
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        assert_eq!(client.call(12, &request).responses[0].partitions[0].error_code, code, "epoch {epoch}");
    }
}

#[test]
fn read_committed_of_a_topic_without_transactions_is_like_read_uncommitted() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a", "b"]));
    for isolation in [0, 1] {
        let answer = client.call(12, &fetch_request(&[(&topic, 0, 0)]).with_isolation_level(isolation));
        let part = &answer.responses[0].partitions[0];
        assert_eq!((part.last_stable_offset, parse(&record_bytes(part)).len()), (2, 1));
        assert_eq!(part.aborted_transactions, (isolation == 1).then(Vec::new));
    }
}

#[test]
fn a_negative_limit_does_not_break_the_connection() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a"]));
    let request = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(-1).with_min_bytes(-1);
    assert_eq!(client.call(12, &request).error_code, codes::NONE);
}

#[test]
fn a_waiting_fetch_ends_when_its_topic_is_deleted() {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    let mut waiting = broker.client();
    let id = waiting.send(12, &fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(3000).with_min_bytes(1));
    crate::topics::delete(&mut client, &topic);
    let answer = waiting.receive::<FetchRequest>(12, id, Duration::from_secs(15));
    assert!(answer.responses.len() <= 1);
}

#[test]
fn nobody_waits_for_more_bytes_than_the_answer_may_hold() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 3);
    let start = Instant::now();
    let request = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(MAX_WAIT_MS);
    assert!(sizes(&mut client, &request.with_min_bytes(i32::MAX).with_max_bytes(80))[0] > 0);
    assert!(start.elapsed() < WOKEN, "max_bytes are there");
}

#[test]
fn a_partition_that_is_not_there_does_not_hurry_the_others() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let start = Instant::now();
    let request = fetch_request(&[(&topic, 7, 0), ("no-such-topic", 0, 0), (&topic, 0, 0)]).with_max_wait_ms(400);
    let answer = client.call(12, &request.with_min_bytes(1));
    assert!(start.elapsed() >= Duration::from_millis(390), "a client that has not heard of the deletion would spin");
    let parts = answer.responses.iter().flat_map(|t| t.partitions.iter().map(|p| (&*t.topic.0, p)));
    let mut codes: Vec<_> = parts.map(|(name, p)| (name == topic, p.partition_index, p.error_code)).collect();
    codes.sort_unstable();
    assert_eq!(codes, [(false, 0, 3), (true, 0, 0), (true, 7, 3)]);
    let start = Instant::now();
    let alone = fetch_request(&[(&topic, 7, 0)]).with_max_wait_ms(MAX_WAIT_MS).with_min_bytes(1);
    client.call(12, &alone);
    assert!(start.elapsed() < WOKEN, "there is nothing to wait for");
}

#[test]
fn a_partition_named_twice_is_read_once_as_it_was_named_last() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append_singles(&mut client, &topic, 3);
    let answer = client.call(12, &fetch_request(&[(&topic, 0, 0), (&topic, 0, 2)]));
    let parts: Vec<_> = answer.responses.iter().flat_map(|t| &t.partitions).collect();
    let offsets: Vec<i64> = parts.iter().flat_map(|p| parse(&record_bytes(p))).map(|b| b.base_offset).collect();
    assert_eq!((parts.len(), offsets), (1, vec![2]));
}
