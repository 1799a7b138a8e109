//! Producers and consumers at the same time: what one writes, the others see once and in order. Uses the harness.

use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use protocol_tests::batch::parse;
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Compression, Record, codes, unique};

fn number(record: &Record) -> u64 {
    let value = record.value.as_deref().expect("a value");
    u64::from_be_bytes(value[..8].try_into().expect("eight bytes"))
}

/// Reads from offset 0 with long polls until `n` records have come.
fn tail(client: &mut Client, topic: &str, n: usize) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    while records.len() < n {
        let request = fetch_request(&[(topic, 0, records.len() as i64)]).with_max_wait_ms(5000).with_min_bytes(1);
        let id = client.send(12, &request);
        let answer = client.receive::<FetchRequest>(12, id, Duration::from_secs(30));
        let part = &answer.responses[0].partitions[0];
        assert_eq!(part.error_code, codes::NONE);
        for (offset, record) in parse(&record_bytes(part)).into_iter().flat_map(|b| b.records) {
            // A batch that was read in part comes again as a whole.
            if offset >= records.len() as i64 {
                assert_eq!(offset, records.len() as i64, "no gap");
                records.push(record);
            }
        }
    }
    records
}

#[test]
fn readers_at_the_tail_see_every_record_once_and_in_order() {
    let broker = Broker::shared();
    let topic = fresh_topic(&mut broker.client(), &[("segment.bytes", "1048576")]);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(|| tail(&mut broker.client(), &topic, 600))).collect();
        let mut client = broker.client();
        for i in 0..200u64 {
            let record = |k: u64| Record::value([&(i * 3 + k).to_be_bytes()[..], &[b'x'; 3000]].concat());
            let codec = Compression::ALL[(i % 5) as usize];
            append(&mut client, &topic, &Batch::new((0..3).map(record).collect()).compressed(codec));
        }
        for reader in readers {
            let got: Vec<u64> = reader.join().expect("the reader is served").iter().map(number).collect();
            assert_eq!(got, (0..600).collect::<Vec<_>>());
        }
    });
}

#[test]
fn appends_of_several_producers_get_offsets_of_their_own() {
    let broker = Broker::shared();
    let topic = fresh_topic(&mut broker.client(), &[]);
    let mut offsets: Vec<i64> = std::thread::scope(|scope| {
        let writer = || {
            let mut client = broker.client();
            (0..50).map(|_| append(&mut client, &topic, &Batch::of(&["a", "b"]))).collect::<Vec<_>>()
        };
        let writers: Vec<_> = (0..6).map(|_| scope.spawn(writer)).collect();
        writers.into_iter().flat_map(|w| w.join().expect("the writer is served")).collect()
    });
    offsets.sort_unstable();
    assert_eq!(offsets, (0..300).map(|i| i * 2).collect::<Vec<_>>());
    assert_eq!(end_offset(&mut broker.client(), &topic), 600);
}

#[test]
fn many_partitions_are_written_and_read_in_one_request() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    create_topic(&mut client, &topic, 60, &[]);
    let mut request = produce_request(&topic, 0, -1, Batch::of(&["0"]).bytes());
    for partition in 1..60 {
        let other = produce_request(&topic, partition, -1, Batch::of(&[&partition.to_string()]).bytes());
        request.topic_data[0].partition_data.extend(other.topic_data[0].partition_data.clone());
    }
    let answer = client.call(9, &request);
    assert!(answer.responses[0].partition_responses.iter().all(|p| (p.error_code, p.base_offset) == (codes::NONE, 0)));
    let wanted: Vec<(&str, i32, i64)> = (0..60).map(|p| (topic.as_str(), p, 0)).collect();
    let answer = client.call(12, &fetch_request(&wanted));
    for part in &answer.responses[0].partitions {
        let value = parse(&record_bytes(part))[0].records[0].1.value.clone().unwrap();
        assert_eq!(value, part.partition_index.to_string().as_bytes());
    }
}

#[test]
fn a_min_insync_replicas_above_the_replication_factor_counts_as_the_factor() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("min.insync.replicas", "2")]);
    for acks in [-1, 1] {
        let answer = client.call(9, &produce_request(&topic, 0, acks, Batch::of(&["v"]).bytes()));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, codes::NONE, "acks {acks}");
    }
}

#[test]
fn bl_026_a_megabyte_of_records_in_either_snappy_framing() {
    let mut client = Broker::shared().client();
    let records: Vec<Record> =
        (0..300u64).map(|i| Record::value([&i.to_be_bytes()[..], &[i as u8; 5000]].concat())).collect();
    for config in [("compression.type", "lz4"), ("message.timestamp.type", "LogAppendTime")] {
        let topic = fresh_topic(&mut client, &[config]);
        let framed = Batch::new(records.clone()).compressed(Compression::Snappy);
        let raw = framed.clone().with(|b| b.payload = Some(protocol_tests::snappy::compress_raw(&b.plain_records())));
        for batch in [framed, raw] {
            append(&mut client, &topic, &batch);
        }
        let got: Vec<u64> = read_all(&mut client, &topic, 0).iter().map(|(_, r)| number(r)).collect();
        assert_eq!(got, (0..300).chain(0..300).collect::<Vec<_>>(), "{config:?}");
    }
}
