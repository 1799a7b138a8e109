//! Bytes that are no request, and requests that lie: the connection is closed, others notice nothing. Uses the harness.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kafka_protocol::messages::MetadataRequest;
use protocol_tests::client::{encode, request_frame};
use protocol_tests::ops::*;
use protocol_tests::primitive::Writer;
use protocol_tests::{Batch, Broker, ReadError, codes};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use crate::every_api::{Sample, lying_count, samples};

const LIMIT: Duration = Duration::from_secs(10);

/// Sends bytes on a connection of their own; the broker must close it without an answer.
fn is_closed_on(bytes: &[u8]) -> bool {
    let mut client = Broker::shared().client();
    client.write(bytes);
    client.is_closed_within(LIMIT)
}

/// Runs `attack` while another connection works on, and checks that this one is served all the time and nothing is appended.
fn others_notice_nothing(attack: impl FnOnce()) {
    let broker = Broker::shared();
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["before"]));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let witness = scope.spawn(|| {
            let mut other = broker.client();
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                assert_eq!(metadata(&mut other, &[&topic]).topics[0].error_code, codes::NONE);
                assert!(start.elapsed() < LIMIT, "another client waited {:?}", start.elapsed());
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // Also when the attack fails its own checks the witness must end, or the test would hang.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attack));
        done.store(true, Ordering::Relaxed);
        witness.join().expect("the other client was served");
        outcome.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
    });
    assert_eq!(end_offset(&mut client, &topic), 1);
    assert_eq!(append(&mut client, &topic, &Batch::of(&["after"])), 1);
}

fn metadata_frame() -> Vec<u8> {
    let body = encode(0, &MetadataRequest::default().with_topics(Some(vec![])));
    request_frame(3, 0, 1, Some("client"), 1, &body)
}

#[test]
fn an_http_request_closes_the_connection() {
    others_notice_nothing(|| assert!(is_closed_on(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")));
}

#[test]
fn a_tls_hello_closes_the_connection() {
    let hello = [0x16, 3, 1, 0, 0xf1, 1, 0, 0, 0xed, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    others_notice_nothing(|| assert!(is_closed_on(&hello)));
}

#[test]
fn lengths_that_no_request_has_close_the_connection() {
    for length in [i32::MAX, 100 * 1024 * 1024 + 1, -1, i32::MIN] {
        assert!(is_closed_on(&length.to_be_bytes()), "length {length}");
    }
}

#[test]
fn an_empty_frame_closes_the_connection() {
    assert!(is_closed_on(&[0; 4]));
}

#[test]
fn random_bytes_do_no_harm() {
    others_notice_nothing(|| {
        let mut random = StdRng::seed_from_u64(4);
        for size in [1, 3, 7, 40, 1000, 100_000] {
            for framed in [false, true] {
                let mut bytes = vec![0; size];
                random.fill_bytes(&mut bytes);
                if framed {
                    bytes.splice(0..0, (size as i32).to_be_bytes());
                }
                let mut client = Broker::shared().client();
                client.write(&bytes);
                client.finish_sending();
                assert_eq!(client.read_frame(LIMIT), Err(ReadError::Closed), "{size} bytes, framed: {framed}");
            }
        }
    });
}

#[test]
fn a_frame_that_ends_early_is_not_served() {
    let topic = fresh_topic(&mut Broker::shared().client(), &[]);
    let body = encode(9, &produce_request(&topic, 0, -1, Batch::of(&["half"]).bytes()));
    let frame = request_frame(0, 9, 1, Some("client"), 2, &body);
    for cut in [2, 4, 10, frame.len() / 2, frame.len() - 1] {
        let mut client = Broker::shared().client();
        client.write(&frame[..cut]);
        client.finish_sending();
        assert_eq!(client.read_frame(LIMIT), Err(ReadError::Closed), "{cut} of {} bytes", frame.len());
    }
    assert_eq!(end_offset(&mut Broker::shared().client(), &topic), 0);
}

#[test]
fn a_client_id_length_that_lies_closes_the_connection() {
    for length in [1000, i16::MAX, -2, i16::MIN] {
        let body = Writer::new().i16(3).i16(0).i32(1).i16(length).raw(b"short").0;
        let frame = [&(body.len() as i32).to_be_bytes()[..], &body].concat();
        assert!(is_closed_on(&frame), "{length}");
    }
}

#[test]
fn a_header_that_ends_early_closes_the_connection() {
    for size in 1..8 {
        let frame = [&(size as i32).to_be_bytes()[..], &metadata_frame()[4..4 + size]].concat();
        assert!(is_closed_on(&frame), "{size} bytes of header");
    }
}

#[test]
fn an_unknown_api_closes_the_connection() {
    for key in [95, 999, i16::MAX, -1, 4, 5, 6, 7] {
        assert!(is_closed_on(&request_frame(key, 0, 1, Some("client"), 1, &[0; 20])), "API {key}");
    }
}

#[test]
fn a_version_out_of_range_closes_the_connection() {
    let body = encode(12, &MetadataRequest::default().with_topics(Some(vec![])));
    for (key, version) in [(3, 14), (3, -1), (3, i16::MAX), (1, 3), (1, 19), (8, 1), (9, 0), (19, 1), (20, 0), (32, 0)]
    {
        assert!(is_closed_on(&request_frame(key, version, 1, Some("client"), 2, &body)), "API {key} v{version}");
    }
}

#[test]
fn every_api_survives_a_count_that_lies() {
    others_notice_nothing(|| {
        for Sample { name, key, version, header_version, one, two, .. } in samples() {
            for count in [i32::MAX, 1 << 24, 1000] {
                let body = lying_count(&one, &two, header_version, count);
                let mut client = Broker::shared().client();
                client.send_body(key, version, header_version, &body);
                assert!(client.is_closed_within(LIMIT), "{name} v{version} with {count} elements");
            }
        }
    });
}

#[test]
fn every_api_survives_a_body_that_ends_early() {
    others_notice_nothing(|| {
        for Sample { name, key, version, header_version, two, .. } in samples() {
            for cut in [0, 1, two.len() / 2, two.len() - 1] {
                let mut client = Broker::shared().client();
                client.send_body(key, version, header_version, &two[..cut]);
                assert!(client.is_closed_within(LIMIT), "{name} v{version} cut to {cut} of {} bytes", two.len());
            }
        }
    });
}

/// Each byte of each body is made wrong once. What comes back is not judged: many of these requests are good ones.
#[test]
fn a_wrong_byte_anywhere_in_any_request_does_no_harm() {
    let broker = Broker::start(&[]);
    let mut witness = broker.client();
    create_topic(&mut witness, "t", 1, &[]);
    append_singles(&mut witness, "t", 3);
    for Sample { name, key, version, header_version, two, .. } in samples() {
        for at in 0..two.len() {
            for wrong in [0x7f, 0xff] {
                let mut body = two.clone();
                body[at] = wrong;
                let mut client = broker.client();
                client.send_body(key, version, header_version, &body);
                let _ = client.read_frame(Duration::from_millis(100));
            }
        }
        let start = Instant::now();
        assert!(!metadata(&mut witness, &["t"]).brokers.is_empty(), "after {name} v{version}");
        assert_eq!(end_offset(&mut witness, "t"), 3, "after {name} v{version}");
        assert!(start.elapsed() < LIMIT, "after {name} v{version} another client waited {:?}", start.elapsed());
    }
    assert_eq!(batches(&mut witness, "t", 0, 0).len(), 3);
    assert_eq!(append(&mut witness, "t", &Batch::of(&["after"])), 3);
}

#[test]
fn tagged_fields_nobody_knows_are_skipped() {
    let mut client = Broker::shared().client();
    let body = Writer::new().compact_count(0).i8(0).i8(0).uvarint(1).uvarint(77).uvarint(3).raw(b"abc").0;
    client.send_body(3, 12, 2, &body);
    assert!(client.read_frame(LIMIT).is_ok());
    let lie = Writer::new().compact_count(0).i8(0).i8(0).uvarint(1).uvarint(77).uvarint(1 << 30).raw(b"abc").0;
    client.send_body(3, 12, 2, &lie);
    assert!(client.is_closed_within(LIMIT));
}

#[test]
fn record_counts_and_lengths_that_lie_append_nothing() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let good = Batch::of(&["a", "b"]).bytes();
    for (at, lie) in [(8, i32::MAX), (8, 10), (8, -1), (57, i32::MAX), (57, -1), (57, 0), (23, i32::MAX), (23, -5)] {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&lie.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let answer = produce(&mut client, &topic, 0, bytes);
        assert_ne!(answer.error_code, codes::NONE, "{lie} at byte {at}");
        assert_eq!(end_offset(&mut client, &topic), 0, "{lie} at byte {at}");
    }
    append(&mut client, &topic, &Batch::of(&["good"]));
}

#[test]
fn a_header_count_of_a_record_that_lies_appends_nothing() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let mut record = vec![0u8, 0, 0, 1, 2, b'v'];
    protocol_tests::batch::varint(&mut record, i64::from(i32::MAX));
    let mut payload = Vec::new();
    protocol_tests::batch::varint(&mut payload, record.len() as i64);
    payload.extend(record);
    let batch = Batch::of(&["v"]).with(|b| b.payload = Some(payload));
    assert_eq!(produce(&mut client, &topic, 0, batch.bytes()).error_code, codes::INVALID_RECORD);
    assert_eq!(end_offset(&mut client, &topic), 0);
}
