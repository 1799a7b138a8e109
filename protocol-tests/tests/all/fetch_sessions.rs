//! Incremental fetch sessions (KIP-227) and topic ids in them (KIP-516). Uses the harness.

use kafka_protocol::messages::fetch_request::ForgottenTopic;
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, codes, unique};
use uuid::Uuid;

use crate::support::fetch_by_topic_id;

const VERSION: i16 = 12;

/// A request within a session.
fn within(session: i32, epoch: i32, wanted: &[(&str, i32, i64)]) -> FetchRequest {
    fetch_request(wanted).with_session_id(session).with_session_epoch(epoch)
}

fn partitions(answer: &FetchResponse) -> Vec<(String, i32)> {
    let of = |t: &kafka_protocol::messages::fetch_response::FetchableTopicResponse| {
        let name = t.topic.to_string();
        t.partitions.iter().map(|p| (name.clone(), p.partition_index)).collect::<Vec<_>>()
    };
    answer.responses.iter().flat_map(of).collect()
}

fn open(client: &mut Client, topic: &str, n: i32) -> i32 {
    let wanted: Vec<(&str, i32, i64)> = (0..n).map(|p| (topic, p, 0)).collect();
    let answer = client.call(VERSION, &within(0, 0, &wanted));
    assert_eq!((answer.error_code, partitions(&answer).len()), (codes::NONE, n as usize));
    assert!(answer.session_id > 0);
    answer.session_id
}

fn two_partitions(client: &mut Client) -> String {
    let topic = unique("topic");
    create_topic(client, &topic, 2, &[]);
    topic
}

#[test]
fn bl_040_a_session_sends_only_what_changed() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let session = open(&mut client, &topic, 2);
    let answer = client.call(VERSION, &within(session, 1, &[]));
    assert_eq!((answer.error_code, answer.session_id, partitions(&answer)), (codes::NONE, session, vec![]));
    produce(&mut client, &topic, 1, Batch::of(&["v"]).bytes());
    let answer = client.call(VERSION, &within(session, 2, &[]));
    assert_eq!(partitions(&answer), [(topic.clone(), 1)]);
    // The session remembers what it sent, not what the consumer read: the same records come until the offset moves.
    let answer = client.call(VERSION, &within(session, 3, &[]));
    assert_eq!(partitions(&answer), [(topic.clone(), 1)]);
    let answer = client.call(VERSION, &within(session, 4, &[(&topic, 1, 1)]));
    assert_eq!(partitions(&answer), []);
}

#[test]
fn bl_040_a_session_tells_of_a_log_start_that_moved() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    produce(&mut client, &topic, 0, Batch::of(&["a", "b", "c"]).bytes());
    let answer = client.call(VERSION, &within(0, 0, &[(&topic, 0, 3), (&topic, 1, 0)]));
    let session = answer.session_id;
    assert_eq!(partitions(&client.call(VERSION, &within(session, 1, &[]))), []);
    assert_eq!(delete_records(&mut client, &topic, 0, 2).error_code, codes::NONE);
    let answer = client.call(VERSION, &within(session, 2, &[]));
    assert_eq!(partitions(&answer), [(topic.clone(), 0)]);
    assert_eq!(answer.responses[0].partitions[0].log_start_offset, 2);
    assert_eq!(partitions(&client.call(VERSION, &within(session, 3, &[]))), []);
}

#[test]
fn bl_040_a_wrong_epoch_or_session_is_named() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    for version in 7..=12 {
        let session = open(&mut client, &topic, 2);
        for epoch in [7, 2, i32::MAX] {
            let answer = client.call(version, &within(session, epoch, &[]));
            assert_eq!((answer.error_code, partitions(&answer)), (codes::INVALID_FETCH_SESSION_EPOCH, vec![]));
        }
        let answer = client.call(version, &within(424_242, 1, &[]));
        assert_eq!((answer.error_code, answer.session_id), (codes::FETCH_SESSION_ID_NOT_FOUND, 0));
        let answer = client.call(version, &within(session, 1, &[]));
        assert_eq!(answer.error_code, codes::NONE, "the wrong epoch did not end the session");
    }
}

#[test]
fn bl_040_epoch_minus_one_closes_the_session() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let session = open(&mut client, &topic, 2);
    let answer = client.call(VERSION, &within(session, -1, &[(&topic, 0, 0)]));
    assert_eq!((answer.error_code, answer.session_id), (codes::NONE, 0));
    assert_eq!(partitions(&answer), [(topic.clone(), 0)]);
    assert_eq!(client.call(VERSION, &within(session, 1, &[])).error_code, codes::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn bl_040_epoch_0_with_an_old_id_opens_a_new_session() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let old = open(&mut client, &topic, 2);
    let answer = client.call(VERSION, &within(old, 0, &[(&topic, 0, 0)]));
    assert_eq!(answer.error_code, codes::NONE);
    assert!(answer.session_id > 0 && answer.session_id != old);
    assert_eq!(client.call(VERSION, &within(old, 1, &[])).error_code, codes::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn bl_040_a_full_cache_answers_without_a_session() {
    let broker = Broker::start(&[("max.incremental.fetch.session.cache.slots", "2")]);
    let mut client = broker.client();
    let topic = two_partitions(&mut client);
    let ids: Vec<i32> = (0..12).map(|_| client.call(VERSION, &within(0, 0, &[(&topic, 0, 0)])).session_id).collect();
    assert!(ids.contains(&0), "{ids:?}");
}

#[test]
fn bl_041_a_forgotten_partition_never_comes_back() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let session = open(&mut client, &topic, 2);
    let forgotten = ForgottenTopic::default().with_topic(topic_name(&topic)).with_partitions(vec![1]);
    let request = within(session, 1, &[]).with_forgotten_topics_data(vec![forgotten]);
    assert_eq!(client.call(VERSION, &request).error_code, codes::NONE);
    for partition in [0, 1] {
        produce(&mut client, &topic, partition, Batch::of(&["v"]).bytes());
    }
    for epoch in 2..5 {
        assert_eq!(partitions(&client.call(VERSION, &within(session, epoch, &[]))), [(topic.clone(), 0)]);
    }
}

#[test]
fn a_partition_added_later_belongs_to_the_session() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let session = open(&mut client, &topic, 1);
    let answer = client.call(VERSION, &within(session, 1, &[(&topic, 1, 0)]));
    assert_eq!(partitions(&answer), [(topic.clone(), 1)]);
    produce(&mut client, &topic, 1, Batch::of(&["v"]).bytes());
    assert_eq!(partitions(&client.call(VERSION, &within(session, 2, &[]))), [(topic.clone(), 1)]);
}

#[test]
fn an_error_is_sent_again_until_it_is_gone() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let session = open(&mut client, &topic, 2);
    for epoch in 1..3 {
        let wanted: &[(&str, i32, i64)] = if epoch == 1 { &[(&topic, 0, 55)] } else { &[] };
        let answer = client.call(VERSION, &within(session, epoch, wanted));
        assert_eq!(partitions(&answer), [(topic.clone(), 0)], "epoch {epoch}");
        assert_eq!(answer.responses[0].partitions[0].error_code, codes::OFFSET_OUT_OF_RANGE);
    }
    let answer = client.call(VERSION, &within(session, 3, &[(&topic, 0, 0)]));
    assert_eq!((answer.error_code, partitions(&answer)), (codes::NONE, vec![(topic.clone(), 0)]));
    assert_eq!(answer.responses[0].partitions[0].error_code, codes::NONE);
}

#[test]
fn versions_before_7_know_no_sessions() {
    let mut client = Broker::shared().client();
    let topic = two_partitions(&mut client);
    let answer = client.call(6, &fetch_request(&[(&topic, 0, 0)]));
    assert_eq!((answer.session_id, partitions(&answer).len()), (0, 1));
}

#[test]
fn bl_074_an_unknown_topic_id_is_named_per_partition() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    crate::topics::delete(&mut client, &topic);
    let new = crate::topics::create_again(&mut client, &topic);
    assert_ne!(new, id);
    for (asked, code) in
        [(id, codes::UNKNOWN_TOPIC_ID), (new, codes::NONE), (Uuid::from_u128(9), codes::UNKNOWN_TOPIC_ID)]
    {
        let answer = client.call(16, &fetch_by_topic_id(fetch_request(&[("", 0, 0)]), asked));
        assert_eq!(answer.responses[0].topic_id, asked);
        assert_eq!(answer.responses[0].partitions[0].error_code, code);
    }
}

#[test]
fn bl_074_a_session_by_id_does_not_go_on_by_name() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let answer = client.call(16, &fetch_by_topic_id(within(0, 0, &[(&topic, 0, 0)]), id));
    assert_eq!(answer.error_code, codes::NONE);
    let mixed = client.call(VERSION, &within(answer.session_id, 1, &[(&topic, 0, 0)]));
    assert_eq!(mixed.error_code, codes::FETCH_SESSION_TOPIC_ID_ERROR);
}

#[test]
fn a_session_by_topic_id_sends_what_changed() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let session = client.call(18, &fetch_by_topic_id(within(0, 0, &[(&topic, 0, 0)]), id)).session_id;
    assert!(session > 0);
    assert!(client.call(18, &within(session, 1, &[])).responses.is_empty());
    append(&mut client, &topic, &Batch::of(&["v"]));
    let answer = client.call(18, &within(session, 2, &[]));
    assert_eq!((answer.responses.len(), answer.responses[0].topic_id), (1, id));
}

#[test]
fn bl_041_a_partition_forgotten_by_topic_id_never_comes_back() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 2, &[]);
    let request = fetch_by_topic_id(within(0, 0, &[(&topic, 0, 0), (&topic, 1, 0)]), id);
    let session = client.call(18, &request).session_id;
    let forgotten = ForgottenTopic::default().with_topic_id(id).with_partitions(vec![1]);
    let request = within(session, 1, &[]).with_forgotten_topics_data(vec![forgotten]);
    assert_eq!(client.call(18, &request).error_code, codes::NONE);
    for partition in [0, 1] {
        produce(&mut client, &topic, partition, Batch::of(&["v"]).bytes());
    }
    for epoch in 2..5 {
        let answer = client.call(18, &within(session, epoch, &[]));
        let got: Vec<i32> = answer.responses.iter().flat_map(|t| &t.partitions).map(|p| p.partition_index).collect();
        assert_eq!(got, [0], "epoch {epoch}");
    }
}

#[test]
fn bl_074_a_session_by_name_does_not_go_on_by_id() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let session = open(&mut client, &topic, 1);
    let mixed = client.call(16, &fetch_by_topic_id(within(session, 1, &[("", 0, 0)]), id));
    assert_eq!(mixed.error_code, codes::FETCH_SESSION_TOPIC_ID_ERROR);
}

#[test]
fn bl_074_a_session_is_told_that_its_topic_is_gone_and_does_not_read_the_new_one() {
    let mut client = Broker::shared().client();
    let topic = unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let session = client.call(18, &fetch_by_topic_id(within(0, 0, &[(&topic, 0, 0)]), id)).session_id;
    let told = |client: &mut Client, epoch: i32| {
        let answer = client.call(18, &within(session, epoch, &[]));
        assert_eq!((answer.error_code, answer.responses[0].topic_id), (codes::NONE, id), "epoch {epoch}");
        let part = &answer.responses[0].partitions[0];
        assert!(record_bytes(part).is_empty(), "epoch {epoch}");
        part.error_code
    };
    crate::topics::delete(&mut client, &topic);
    // A session remembers the name that the id had, so this is not the code of an id that nobody ever knew.
    assert_eq!(told(&mut client, 1), codes::UNKNOWN_TOPIC_OR_PARTITION);
    crate::topics::create_again(&mut client, &topic);
    append(&mut client, &topic, &Batch::of(&["of the new topic"]));
    for epoch in 2..4 {
        assert_eq!(told(&mut client, epoch), codes::INCONSISTENT_TOPIC_ID);
    }
}
