//! What holds for ours only: bounds on memory, which Apache Kafka does not keep, and metrics, whose names differ. Uses the harness.
//! On Apache Kafka these tests do nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchTopic;
use protocol_tests::client::request_frame;
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Record, Target, codes};

use crate::every_api::{Sample, lying_count, samples};

const MIB_IN_KIB: u64 = 1024;

/// The greatest resident size so far, in KiB (`VmHWM`).
fn peak_kib(broker: &Broker) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", broker.pid)).expect("the broker runs");
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).expect("Linux tells VmHWM");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn a_hundred_announced_frames_of_100_mib_cost_under_64_mib() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[]);
    let before = broker.resident_kib();
    let mut sockets: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(broker.address).unwrap()).collect();
    for socket in &mut sockets {
        socket.write_all(&(100 * 1024 * 1024i32).to_be_bytes()).unwrap();
        socket.write_all(&[0, 3, 0, 12]).unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(!metadata(&mut broker.client(), &[]).brokers.is_empty(), "others are served meanwhile");
    let after = peak_kib(&broker);
    assert!(after - before < 64 * MIB_IN_KIB, "{before} KiB before, {after} KiB at most");
}

/// How often a count may be multiplied in memory, at most.
const GROWTH_MAX: u64 = 8;

#[test]
fn counts_that_lie_cost_under_8_times_the_bytes_received() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[]);
    metadata(&mut broker.client(), &[]);
    let before = broker.resident_kib();
    for Sample { key, version, header_version, one, two, .. } in samples() {
        let mut client = broker.client();
        client.send_body(key, version, header_version, &lying_count(&one, &two, header_version, i32::MAX - 1));
        assert!(client.is_closed_within(Duration::from_secs(10)), "API {key} v{version}");
    }
    let grown = peak_kib(&broker).saturating_sub(before);
    assert!(grown < 16 * MIB_IN_KIB, "small frames cost {grown} KiB");
    // As many elements are announced as bytes follow. Read as a length the filler is a string of 126 or 32639 bytes, so
    // that the elements come to an end long before the count does.
    let size = 20 << 20;
    for Sample { name, key, version, header_version, one, two, .. } in samples() {
        let before = peak_kib(&broker);
        let mut body = lying_count(&one, &two, header_version, size);
        body.resize(body.len() + size as usize, 0x7f);
        let mut client = broker.client();
        client.send_body(key, version, header_version, &body);
        // Where the bytes happen to decode the answer is an answer; what it costs is what counts.
        let _ = client.read_frame(Duration::from_secs(20));
        let grown = peak_kib(&broker).saturating_sub(before);
        assert!(grown < GROWTH_MAX * 20 * MIB_IN_KIB, "{name} v{version} cost {grown} KiB for 20 MiB");
    }
}

#[test]
fn elements_of_one_or_two_bytes_stay_within_the_byte_budget_in_every_api() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[("queued.max.request.bytes", "134217728")]);
    metadata(&mut broker.client(), &[]);
    let before = broker.resident_kib();
    let size = 20 << 20;
    for Sample { name, key, version, header_version, one, two, .. } in samples() {
        // Null strings, empty strings, empty compact strings.
        for filler in [0xff, 0, 1] {
            let mut body = lying_count(&one, &two, header_version, size);
            body.resize(body.len() + size as usize, filler);
            let mut client = broker.client();
            client.send_body(key, version, header_version, &body);
            let _ = client.read_frame(Duration::from_secs(20));
            let grown = peak_kib(&broker).saturating_sub(before);
            assert!(grown < 256 * MIB_IN_KIB, "{name} v{version} filled with {filler}: {grown} KiB, budget 128 MiB");
        }
    }
}

#[test]
fn many_frames_of_tiny_elements_stay_within_the_byte_budget() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[("queued.max.request.bytes", "134217728")]);
    metadata(&mut broker.client(), &[]);
    let before = broker.resident_kib();
    // DeleteGroups of sixteen million groups with empty names, one byte each.
    let n: usize = 16 << 20;
    let mut body = protocol_tests::primitive::Writer::new().compact_count(n as u32).0;
    body.resize(body.len() + n, 1);
    body.push(0);
    let frame = request_frame(42, 2, 1, Some("tiny"), 2, &body);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = broker.client();
                client.write(&frame);
                // Closed, refused or answered: all are within the bound.
                let _ = client.read_frame(Duration::from_secs(40));
            });
        }
    });
    let grown = peak_kib(&broker).saturating_sub(before);
    assert!(grown < 384 * MIB_IN_KIB, "{grown} KiB with a budget of 128 MiB");
    assert!(!metadata(&mut broker.client(), &[]).brokers.is_empty());
}

/// The body of one GET.
pub fn http_get(broker: &Broker, path: &str) -> String {
    let mut stream = TcpStream::connect(broker.http_address()).expect("the HTTP listener is up");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
    text
}

/// The series of a metric that counts all topics.
fn metric(text: &str, name: &str) -> f64 {
    let of = |line: &str| line.strip_prefix(name)?.strip_prefix(r#"{topic=""} "#)?.trim().parse::<f64>().ok();
    text.lines().find_map(of).unwrap_or(0.0)
}

#[test]
fn bl_151_metrics_tell_why_records_were_refused() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[]);
    let mut client = broker.client();
    let plain = fresh_topic(&mut client, &[]);
    let compact = fresh_topic(&mut client, &[("cleanup.policy", "compact")]);
    let names = [
        "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total",
        "kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total",
        "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total",
        "kafka_server_brokertopicmetrics_invalidmagicnumberrecords_total",
    ];
    let read = || names.map(|n| metric(&http_get(&broker, "/metrics"), n));
    let before = read();
    let bad = |topic: &str, batch: Batch| (topic.to_owned(), batch.bytes());
    let sends = [
        bad(&plain, Batch::of(&["a"]).with(|b| b.bad_crc = true)),
        bad(&compact, Batch::new(vec![Record::value("no key")])),
        bad(&plain, Batch::of(&["a", "b"]).with(|b| b.last_offset_delta = Some(7))),
        bad(&plain, Batch::of(&["a"]).with(|b| b.magic = 1)),
    ];
    for (topic, bytes) in sends {
        assert_ne!(produce(&mut client, &topic, 0, bytes).error_code, codes::NONE);
    }
    let after = read();
    for (i, name) in names.iter().enumerate() {
        assert!((after[i] - before[i] - 1.0).abs() < 0.01, "{name}: {} and then {}", before[i], after[i]);
    }
}

#[test]
fn health_and_readiness_are_told_over_http() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::shared();
    for path in ["/healthz", "/readyz", "/metrics"] {
        http_get(broker, path);
    }
}

#[test]
fn answers_that_nobody_reads_cost_under_512_mib_in_all() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    for _ in 0..50 {
        append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 1_000_000])]));
    }
    // Each answer holds 50 MB, far more than the buffers of a socket take.
    let mut request = fetch_request(&[(&topic, 0, 0)]);
    request.topics[0].partitions[0].partition_max_bytes = i32::MAX;
    let mut readers: Vec<_> = (0..30).map(|_| broker.client()).collect();
    let asked: Vec<i32> = readers.iter_mut().map(|reader| reader.send(12, &request)).collect();
    std::thread::sleep(Duration::from_secs(3));
    append(&mut client, &topic, &Batch::of(&["others are served meanwhile"]));
    let peak = peak_kib(&broker);
    assert!(peak < 512 * MIB_IN_KIB, "{peak} KiB");
    // Everybody gets on, and who comes when the memory is free again gets all.
    for (reader, asked) in readers.iter_mut().zip(asked) {
        let answer = reader.receive::<FetchRequest>(12, asked, Duration::from_secs(60));
        assert!(!record_bytes(&answer.responses[0].partitions[0]).is_empty());
    }
    drop(readers);
    let answer = client.call(12, &request);
    assert!(record_bytes(&answer.responses[0].partitions[0]).len() > 45_000_000);
}

#[test]
fn a_fetch_of_many_topics_costs_no_more_for_each_of_them() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[]);
    let topic = |n: i32| FetchTopic::default().with_topic(topic_name(&format!("topic-{n}")));
    let topics = (0..100_000).map(|n| topic(n).with_partitions(vec![fetch_partition(0, 0)])).collect();
    let mut client = broker.client();
    let asked = client.send(12, &fetch_request(&[]).with_topics(topics));
    let answer = client.receive::<FetchRequest>(12, asked, Duration::from_secs(20));
    assert_eq!(answer.responses.len(), 100_000);
}

#[test]
fn large_requests_that_come_slowly_do_not_keep_others_from_small_ones() {
    if !Target::is_ours() {
        return;
    }
    let broker = Broker::start(&[("queued.max.request.bytes", "134217728")]);
    let mut client = broker.client();
    assert!(!metadata(&mut client, &[]).brokers.is_empty());
    let mut sockets: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(broker.address).unwrap()).collect();
    let part = vec![b'x'; 1024 * 1024];
    for socket in &mut sockets {
        socket.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        socket.write_all(&(100 * 1024 * 1024i32).to_be_bytes()).unwrap();
        // Ends when the broker reads no more.
        for _ in 0..40 {
            if socket.write_all(&part).is_err() {
                break;
            }
        }
    }
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a", "b"]));
    assert_eq!(batches(&mut client, &topic, 0, 0).len(), 1);
}
