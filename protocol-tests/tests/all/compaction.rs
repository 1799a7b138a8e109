//! Compaction as clients see it: which record of a key is left and at which offset, what becomes of tombstones, what may
//! be read where records are gone. Uses the harness.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use protocol_tests::batch::{Fetched, now_ms};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Compression, Record, codes, eventually};

const SOON: Duration = Duration::from_secs(30);
const TOPIC: i8 = 2;
const HORIZON: i16 = 1 << 6;

/// A topic whose segments close with each second of its records' time, so that the test says when.
fn compacted(client: &mut Client, more: &[(&str, &str)]) -> (String, i64) {
    let common: &[(&str, &str)] = &[
        ("cleanup.policy", "compact"),
        ("segment.ms", "500"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("delete.retention.ms", "3600000"),
    ];
    let changed = |name: &str| more.iter().any(|(other, _)| *other == name);
    let kept = common.iter().filter(|(name, _)| !changed(name)).chain(more).copied();
    (fresh_topic(client, &kept.collect::<Vec<_>>()), now_ms() - 600_000)
}

fn record(time: i64, key: &str, value: Option<&str>) -> Record {
    let value = value.map(|value| value.as_bytes().to_vec());
    Record { value, ..Record::value("").key(key).at(time) }
}

/// Appends one batch of keys with values.
fn put(client: &mut Client, topic: &str, time: i64, pairs: &[(&str, &str)]) -> i64 {
    let records = pairs.iter().map(|(key, value)| record(time, key, Some(value))).collect();
    append(client, topic, &Batch::new(records))
}

/// Offset, key and value of what is left.
fn left(client: &mut Client, topic: &str) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let records = read_all(client, topic, 0);
    records.into_iter().map(|(offset, r)| (offset, text(r.key.unwrap()), r.value.map(text))).collect()
}

fn await_left(client: &mut Client, topic: &str, wanted: &[(i64, &str, Option<&str>)]) {
    let owned =
        |(offset, key, value): &(i64, &str, Option<&str>)| (*offset, (*key).to_owned(), value.map(str::to_owned));
    let wanted: Vec<_> = wanted.iter().map(owned).collect();
    let mut last = Vec::new();
    let start = std::time::Instant::now();
    while start.elapsed() < SOON {
        last = left(client, topic);
        if last == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(last, wanted, "after {SOON:?}");
}

/// The batches of the whole log.
fn whole(client: &mut Client, topic: &str) -> Vec<Fetched> {
    let mut all: Vec<Fetched> = Vec::new();
    let end = end_offset(client, topic);
    let mut next = list_offset(client, topic, 0, -2).offset;
    while next < end {
        let got = batches(client, topic, 0, next);
        next = got.last().map(|b| b.base_offset + i64::from(b.last_offset_delta) + 1).expect("something to read");
        all.extend(got);
    }
    all
}

#[test]
fn of_each_key_the_last_record_stays_at_its_offset_and_the_active_segment_is_left_alone() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[]);
    put(&mut client, &topic, time, &[("a", "1"), ("b", "1"), ("a", "2")]);
    put(&mut client, &topic, time + 1000, &[("c", "1"), ("b", "2")]);
    put(&mut client, &topic, time + 2000, &[("a", "3"), ("d", "1"), ("d", "2")]);
    let kept = [(2, "a", Some("2")), (3, "c", Some("1")), (4, "b", Some("2"))];
    let active = [(5, "a", Some("3")), (6, "d", Some("1")), (7, "d", Some("2"))];
    await_left(&mut client, &topic, &[kept, active].concat());
    assert_eq!(end_offset(&mut client, &topic), 8);
}

#[test]
fn bl_047_a_fetch_where_records_are_gone_gets_the_next_batch_and_batches_keep_their_range() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[]);
    put(&mut client, &topic, time, &[("a", "1"), ("keep", "1"), ("b", "1")]);
    for at in 3..10 {
        put(&mut client, &topic, time, &[("a", &at.to_string())]);
    }
    put(&mut client, &topic, time + 1000, &[("a", "last"), ("b", "last")]);
    put(&mut client, &topic, time + 2000, &[("end", "1")]);
    await_left(
        &mut client,
        &topic,
        &[(1, "keep", Some("1")), (10, "a", Some("last")), (11, "b", Some("last")), (12, "end", Some("1"))],
    );
    let first = &whole(&mut client, &topic)[0];
    assert_eq!((first.base_offset, first.last_offset_delta, first.records.len()), (0, 2, 1));
    for offset in 0..13 {
        let got = batches(&mut client, &topic, 0, offset);
        let (batch, end) = (&got[0], |b: &Fetched| b.base_offset + i64::from(b.last_offset_delta));
        assert!(end(batch) >= offset, "fetch at {offset} got the batch that ends at {}", end(batch));
        let next = got.iter().flat_map(|b| &b.records).map(|(at, _)| *at).find(|at| *at >= offset);
        let wanted = [1, 10, 11, 12].into_iter().find(|at| *at >= offset);
        assert_eq!(next, wanted, "first record from {offset} on");
    }
    assert_eq!(fetch(&mut client, &topic, 0, 14).error_code, codes::OFFSET_OUT_OF_RANGE);
}

#[test]
fn bl_050_a_tombstone_gets_its_horizon_with_the_first_cleaning_and_goes_with_the_next_after_it() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[("delete.retention.ms", "1500")]);
    put(&mut client, &topic, time, &[("a", "1"), ("b", "1")]);
    append(&mut client, &topic, &Batch::new(vec![record(time + 7, "a", None), record(time + 7, "c", Some("1"))]));
    let before = now_ms();
    put(&mut client, &topic, time + 1000, &[("x", "1")]);
    await_left(&mut client, &topic, &[(1, "b", Some("1")), (2, "a", None), (3, "c", Some("1")), (4, "x", Some("1"))]);
    let batch = whole(&mut client, &topic).into_iter().find(|b| b.base_offset == 2).unwrap();
    assert_eq!(batch.attributes & HORIZON, HORIZON);
    let horizon = batch.base_timestamp;
    assert!((before + 1500..=now_ms() + 1500).contains(&horizon), "{horizon} is not 1.5 s after the cleaning");
    assert!(batch.records.iter().all(|(_, r)| r.timestamp == time + 7), "records keep their time");
    while now_ms() <= horizon {
        std::thread::sleep(Duration::from_millis(50));
    }
    put(&mut client, &topic, time + 2000, &[("x", "2")]);
    put(&mut client, &topic, time + 3000, &[("x", "3")]);
    await_left(
        &mut client,
        &topic,
        &[(1, "b", Some("1")), (3, "c", Some("1")), (5, "x", Some("2")), (6, "x", Some("3"))],
    );
}

#[test]
fn bl_052_a_batch_larger_than_what_is_allowed_now_is_cleaned_and_stays_readable() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[]);
    let large = "x".repeat(900_000);
    put(&mut client, &topic, time, &[("a", "1")]);
    put(&mut client, &topic, time, &[("large", &large)]);
    assert_eq!(alter_configs(&mut client, TOPIC, &topic, &[("max.message.bytes", 0, Some("1000"))]).0, codes::NONE);
    put(&mut client, &topic, time + 1000, &[("a", "2")]);
    put(&mut client, &topic, time + 2000, &[("a", "3")]);
    await_left(&mut client, &topic, &[(1, "large", Some(&large)), (2, "a", Some("2")), (3, "a", Some("3"))]);
}

#[test]
fn bl_053_after_the_largest_lag_an_old_value_goes_though_little_is_dirty() {
    let mut client = Broker::shared().client();
    let lag = [("max.compaction.lag.ms", "1000"), ("min.cleanable.dirty.ratio", "0.99"), ("segment.ms", "3600000")];
    let (topic, _) = compacted(&mut client, &lag);
    put(&mut client, &topic, now_ms(), &[("a", "1"), ("b", "1")]);
    put(&mut client, &topic, now_ms(), &[("a", "2")]);
    // Apache Kafka closes a segment when something is appended after the lag, so that both get an append.
    eventually("the old value goes", SOON, || {
        put(&mut client, &topic, now_ms(), &[("tick", "1")]);
        let left = left(&mut client, &topic);
        std::thread::sleep(Duration::from_millis(200));
        (!left.contains(&(0, "a".to_owned(), Some("1".to_owned()))) && left.iter().any(|(at, ..)| *at == 1))
            .then_some(())
    });
}

#[test]
fn bl_032_headers_times_and_codecs_survive_compaction() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[]);
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let mut wanted = Vec::new();
    for (at, codec) in codecs.into_iter().enumerate() {
        let kept = record(time + 3, &format!("kept-{at}"), Some("v"))
            .header("a", Some(b"1"))
            .header("b", None)
            .header("a", Some(b"3"))
            .header("", Some(b""));
        let records = vec![record(time, "over", Some("old")), kept.clone(), record(time + 1, "over", Some("older"))];
        append(&mut client, &topic, &Batch::new(records).compressed(codec));
        wanted.push((codec, kept));
    }
    put(&mut client, &topic, time + 1000, &[("over", "new")]);
    put(&mut client, &topic, time + 2000, &[("end", "1")]);
    eventually("the log is clean", SOON, || (left(&mut client, &topic).len() == codecs.len() + 2).then_some(()));
    for (batch, (codec, kept)) in whole(&mut client, &topic).iter().zip(wanted) {
        let records: Vec<&Record> = batch.records.iter().map(|(_, r)| r).collect();
        assert_eq!((Compression::of(batch.attributes), records), (codec, vec![&kept]));
        assert_eq!(batch.last_offset_delta, 2);
    }
}

#[test]
fn an_idempotent_producer_goes_on_after_its_records_were_compacted_away() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[]);
    let (id, epoch) = producer_id(&mut client);
    let batch = |sequence: i32, time: i64| {
        Batch::new(vec![record(time, "k", Some(&sequence.to_string()))]).producer(id, epoch, sequence)
    };
    for sequence in 0..3 {
        append(&mut client, &topic, &batch(sequence, time));
    }
    put(&mut client, &topic, time + 1000, &[("k", "other")]);
    put(&mut client, &topic, time + 2000, &[("end", "1")]);
    await_left(&mut client, &topic, &[(3, "k", Some("other")), (4, "end", Some("1"))]);
    let empty = whole(&mut client, &topic).into_iter().find(|b| b.producer.0 == id).expect("the last batch stays");
    assert_eq!((empty.base_offset, empty.producer, empty.records.len()), (2, (id, epoch, 2), 0));
    assert_eq!(append(&mut client, &topic, &batch(2, time)), 2, "a retry is known");
    assert_eq!(append(&mut client, &topic, &batch(3, time + 2000)), 5);
}

#[test]
fn a_policy_takes_effect_at_run_time_and_compaction_with_deletion_does_both() {
    let mut client = Broker::shared().client();
    let (topic, time) = compacted(&mut client, &[("cleanup.policy", "delete"), ("retention.ms", "-1")]);
    put(&mut client, &topic, time, &[("a", "1"), ("b", "1")]);
    put(&mut client, &topic, time + 1000, &[("a", "2")]);
    put(&mut client, &topic, time + 2000, &[("a", "3")]);
    let untouched = [(0, "a", Some("1")), (1, "b", Some("1")), (2, "a", Some("2")), (3, "a", Some("3"))];
    await_left(&mut client, &topic, &untouched);
    assert_eq!(alter_configs(&mut client, TOPIC, &topic, &[("cleanup.policy", 0, Some("compact"))]).0, codes::NONE);
    await_left(&mut client, &topic, &[(1, "b", Some("1")), (2, "a", Some("2")), (3, "a", Some("3"))]);
    let both = [("cleanup.policy", 0, Some("compact,delete")), ("retention.ms", 0, Some("300000"))];
    assert_eq!(alter_configs(&mut client, TOPIC, &topic, &both).0, codes::NONE);
    eventually("old segments go", SOON, || (left(&mut client, &topic).is_empty()).then_some(()));
    assert_eq!(list_offset(&mut client, &topic, 0, -2).offset, 4);
}

#[test]
fn what_delete_records_cuts_off_is_cleaned_from_the_new_start_on() {
    let mut client = Broker::shared().client();
    let (only, _) = compacted(&mut client, &[]);
    assert_eq!(delete_records(&mut client, &only, 0, 0).error_code, codes::POLICY_VIOLATION);
    let both = [("cleanup.policy", "compact,delete"), ("retention.ms", "-1")];
    let (topic, time) = compacted(&mut client, &both);
    put(&mut client, &topic, time, &[("a", "1")]);
    put(&mut client, &topic, time, &[("b", "1")]);
    put(&mut client, &topic, time, &[("b", "2")]);
    assert_eq!(delete_records(&mut client, &topic, 0, 1).error_code, codes::NONE);
    put(&mut client, &topic, time + 1000, &[("a", "2")]);
    put(&mut client, &topic, time + 2000, &[("end", "1")]);
    await_left(&mut client, &topic, &[(2, "b", Some("2")), (3, "a", Some("2")), (4, "end", Some("1"))]);
    assert_eq!(list_offset(&mut client, &topic, 0, -2).offset, 1);
}

/// The entries of `cleaner-offset-checkpoint`, as Kafka's tools and a later start read them.
fn checkpoint(broker: &Broker) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(broker.dir.join("data/cleaner-offset-checkpoint")).unwrap_or_default();
    let entries = text.lines().skip(2).map(|line| line.split(' ').collect::<Vec<_>>());
    entries.map(|words| (words[0].to_owned(), words[2].parse().unwrap())).collect()
}

#[test]
fn the_checkpoint_says_how_far_a_log_is_clean_until_its_topic_is_deleted_and_a_restart_keeps_all() {
    let mut broker = Broker::start(&[]);
    let mut client = broker.client();
    let (topic, time) = compacted(&mut client, &[]);
    let (kept, _) = compacted(&mut client, &[]);
    for topic in [&topic, &kept] {
        put(&mut client, topic, time, &[("a", "1"), ("b", "1"), ("a", "2")]);
        put(&mut client, topic, time + 1000, &[("b", "2")]);
        put(&mut client, topic, time + 2000, &[("b", "3")]);
    }
    for topic in [&topic, &kept] {
        eventually("the checkpoint", SOON, || (checkpoint(&broker).get(topic) == Some(&4)).then_some(()));
    }
    let request = kafka_protocol::messages::DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name(&topic)])
        .with_timeout_ms(20_000);
    client.call(1, &request);
    eventually("the entry goes", SOON, || (!checkpoint(&broker).contains_key(&topic)).then_some(()));
    broker.stop();
    assert_eq!(checkpoint(&broker).get(&kept), Some(&4));
    broker.restart();
    let mut client = broker.client();
    await_topic(&mut client, &kept, 1);
    await_left(&mut client, &kept, &[(2, "a", Some("2")), (3, "b", Some("2")), (4, "b", Some("3"))]);
}
