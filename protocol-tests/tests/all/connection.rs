//! Connections: order of answers, limits, idle ones. Uses the harness.

use std::time::Duration;

use kafka_protocol::messages::{ApiVersionsRequest, FetchRequest, MetadataRequest, ProduceRequest};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, codes, eventually};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn bl_007_answers_leave_in_the_order_of_the_requests() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let patient = fetch_request(&[(&topic, 0, 0)]).with_max_wait_ms(1500).with_min_bytes(10_000_000);
    let append = |acks| produce_request(&topic, 0, acks, Batch::of(&["v"]).bytes());
    let fetch = client.send(12, &patient);
    let metadata = client.send(12, &MetadataRequest::default().with_topics(Some(vec![])));
    let versions = client.send(0, &ApiVersionsRequest::default());
    client.send(9, &append(0));
    let first = client.send(9, &append(1));
    let second = client.send(9, &append(-1));
    client.receive::<FetchRequest>(12, fetch, LIMIT);
    client.receive::<MetadataRequest>(12, metadata, LIMIT);
    client.receive::<ApiVersionsRequest>(0, versions, LIMIT);
    for (id, offset) in [(first, 1), (second, 2)] {
        let answer = client.receive::<ProduceRequest>(9, id, LIMIT);
        let part = &answer.responses[0].partition_responses[0];
        assert_eq!((part.error_code, part.base_offset), (codes::NONE, offset));
    }
}

#[test]
fn bl_007_many_pipelined_appends_keep_their_order() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let ids: Vec<i32> = (0..200)
        .map(|i| client.send(9, &produce_request(&topic, 0, 1, Batch::of(&[&i.to_string()]).bytes())))
        .collect();
    for (i, id) in ids.into_iter().enumerate() {
        let answer = client.receive::<ProduceRequest>(9, id, LIMIT);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, i as i64);
    }
    let values: Vec<String> = read_all(&mut client, &topic, 0)
        .into_iter()
        .map(|(_, r)| String::from_utf8(r.value.unwrap()).unwrap())
        .collect();
    assert_eq!(values, (0..200).map(|i| i.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_frame_may_come_byte_by_byte_and_several_at_once() {
    let mut client = Broker::shared().client();
    let body = protocol_tests::client::encode(0, &ApiVersionsRequest::default());
    let frame = |id| protocol_tests::client::request_frame(18, 0, id, Some("slow"), 1, &body);
    for byte in frame(7) {
        client.write(&[byte]);
    }
    client.receive::<ApiVersionsRequest>(0, 7, LIMIT);
    client.write(&[frame(8), frame(9), frame(10)].concat());
    for id in [8, 9, 10] {
        client.receive::<ApiVersionsRequest>(0, id, LIMIT);
    }
}

fn answers(client: &mut Client) -> bool {
    client.send(0, &ApiVersionsRequest::default());
    client.read_frame(Duration::from_secs(5)).is_ok()
}

#[test]
fn bl_010_connections_per_address_are_limited_and_the_limit_can_be_raised() {
    let broker = Broker::start(&[]);
    let mut admin = broker.client();
    let limit = |admin: &mut Client, n: &str| {
        let change = [("max.connections.per.ip", 0, Some(n))];
        assert_eq!(alter_configs(admin, BROKER, "1", &change).0, codes::NONE);
    };
    limit(&mut admin, "3");
    let mut held = vec![broker.client()];
    // Connections of the start may still be counted for a moment; the limit may take a moment to hold.
    eventually("the limit holds", LIMIT, || {
        let mut more = [broker.client(), broker.client(), broker.client()];
        let good = more.iter_mut().map(answers).filter(|ok| *ok).count();
        (good == 1).then_some(())
    });
    assert!(answers(&mut held[0]) && answers(&mut admin), "the ones within the limit stay");
    limit(&mut admin, "10");
    eventually("the limit is raised", LIMIT, || {
        let mut more = [broker.client(), broker.client(), broker.client()];
        more.iter_mut().all(answers).then_some(())
    });
    held.clear();
}

#[test]
fn an_idle_connection_is_closed_after_connections_max_idle_ms() {
    let broker = Broker::start(&[("connections.max.idle.ms", "1500")]);
    let mut idle = broker.client();
    assert!(answers(&mut idle));
    let mut busy = broker.client();
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(250));
        assert!(answers(&mut busy), "who speaks stays");
    }
    assert!(idle.is_closed_within(LIMIT));
}

#[test]
fn a_frame_over_socket_request_max_bytes_closes_the_connection() {
    let broker = Broker::start(&[("socket.request.max.bytes", "100000")]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&[&"x".repeat(90_000)]));
    client.send(9, &produce_request(&topic, 0, -1, Batch::of(&[&"x".repeat(100_000)]).bytes()));
    assert!(client.is_closed_within(LIMIT));
    assert_eq!(end_offset(&mut broker.client(), &topic), 1);
}
