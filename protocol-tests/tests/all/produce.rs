//! Produce (key 0): versions, acknowledgements, what is refused and that nothing of it is appended. Uses the harness.

use std::time::Duration;

use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{MetadataRequest, ProduceRequest};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Compression, Record, codes};
use uuid::Uuid;

use crate::support::by_topic_id;

/// Sends a batch that must be refused and checks that the log did not grow.
fn refused(client: &mut Client, topic: &str, bytes: Vec<u8>) -> PartitionProduceResponse {
    let before = end_offset(client, topic);
    let answer = produce(client, topic, 0, bytes);
    assert_eq!(end_offset(client, topic), before, "something was appended: {answer:?}");
    assert_eq!(answer.base_offset, -1);
    answer
}

fn refusal(client: &mut Client, topic: &str, batch: &Batch) -> i16 {
    refused(client, topic, batch.bytes()).error_code
}

#[test]
fn every_version_by_name_appends_and_gives_the_base_offset() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for (expected, version) in (3..=12).enumerate() {
        let answer = client.call(version, &produce_request(&topic, 0, 1, Batch::of(&["v"]).bytes()));
        let part = &answer.responses[0].partition_responses[0];
        assert_eq!((part.error_code, part.base_offset), (codes::NONE, expected as i64), "version {version}");
        assert_eq!(part.log_append_time_ms, -1);
        assert!(version < 5 || part.log_start_offset == 0);
    }
}

#[test]
fn version_13_names_topics_by_id() {
    let mut client = Broker::shared().client();
    let topic = protocol_tests::unique("topic");
    let id = create_topic(&mut client, &topic, 1, &[]);
    let request = |id| by_topic_id(produce_request("", 0, -1, Batch::of(&["v"]).bytes()), id);
    let answer = client.call(13, &request(id));
    assert_eq!(answer.responses[0].topic_id, id);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, codes::NONE);
    let answer = client.call(13, &request(Uuid::from_u128(77)));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, codes::UNKNOWN_TOPIC_ID);
}

#[test]
fn bl_011_an_unknown_topic_is_refused_at_every_version() {
    let mut client = Broker::shared().client();
    for version in 3..=12 {
        let answer = client.call(version, &produce_request("no-such-topic", 0, -1, Batch::of(&["v"]).bytes()));
        let part = &answer.responses[0].partition_responses[0];
        assert_eq!((part.error_code, part.base_offset), (codes::UNKNOWN_TOPIC_OR_PARTITION, -1), "version {version}");
    }
}

#[test]
fn an_unknown_partition_of_a_known_topic_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for partition in [1, 1000, -1] {
        let answer = produce(&mut client, &topic, partition, Batch::of(&["v"]).bytes());
        assert_eq!(answer.error_code, codes::UNKNOWN_TOPIC_OR_PARTITION, "partition {partition}");
    }
}

#[test]
fn versions_0_to_2_close_the_connection() {
    for version in 0..3 {
        let mut client = Broker::shared().client();
        let mut body = vec![0, 1, 0, 0, 0x75, 0x30];
        body.extend(0i32.to_be_bytes());
        client.send_body(0, version, 1, &body);
        assert!(client.is_closed_within(Duration::from_secs(10)), "version {version}");
    }
}

#[test]
fn acks_other_than_0_1_and_all_are_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for acks in [2, -2, 7] {
        let answer = client.call(9, &produce_request(&topic, 0, acks, Batch::of(&["v"]).bytes()));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, codes::INVALID_REQUIRED_ACKS);
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
}

#[test]
fn acks_0_appends_and_is_not_answered() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    client.send(9, &produce_request(&topic, 0, 0, Batch::of(&["v"]).bytes()));
    assert_eq!(metadata(&mut client, &[&topic]).topics[0].error_code, codes::NONE);
    protocol_tests::eventually("the append", SOON, || (end_offset(&mut client, &topic) == 1).then_some(()));
}

#[test]
fn acks_0_with_an_error_closes_the_connection() {
    let mut client = Broker::shared().client();
    client.send(9, &produce_request("no-such-topic", 0, 0, Batch::of(&["v"]).bytes()));
    assert!(client.is_closed_within(Duration::from_secs(10)));
}

#[test]
fn partitions_of_one_request_are_answered_each_for_itself() {
    let mut client = Broker::shared().client();
    let topic = protocol_tests::unique("topic");
    create_topic(&mut client, &topic, 3, &[]);
    let mut request = produce_request(&topic, 0, -1, Batch::of(&["a"]).bytes());
    let bad = Batch::of(&["b"]).with(|b| b.bad_crc = true);
    for (partition, bytes) in [(1, bad.bytes()), (2, Batch::of(&["c", "d"]).bytes()), (9, Batch::of(&["e"]).bytes())] {
        let other = produce_request(&topic, partition, -1, bytes);
        request.topic_data[0].partition_data.extend(other.topic_data[0].partition_data.clone());
    }
    let answer = client.call(9, &request);
    let mut got: Vec<_> =
        answer.responses[0].partition_responses.iter().map(|p| (p.index, p.error_code, p.base_offset)).collect();
    got.sort_unstable();
    let wanted = [
        (0, codes::NONE, 0),
        (1, codes::CORRUPT_MESSAGE, -1),
        (2, codes::NONE, 0),
        (9, codes::UNKNOWN_TOPIC_OR_PARTITION, -1),
    ];
    assert_eq!(got, wanted);
}

#[test]
fn a_batch_with_a_bad_crc_is_corrupt() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for codec in Compression::ALL {
        let batch = Batch::of(&["a", "b"]).compressed(codec).with(|b| b.bad_crc = true);
        assert_eq!(refusal(&mut client, &topic, &batch), codes::CORRUPT_MESSAGE, "{codec:?}");
    }
}

#[test]
fn bl_019_counts_that_disagree_are_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for codec in Compression::ALL {
        let three = Batch::of(&["a", "b", "c"]).compressed(codec);
        let lies: [fn(&mut Batch); 5] = [
            |b| b.last_offset_delta = Some(9),
            |b| b.last_offset_delta = Some(1),
            |b| b.record_count = Some(9),
            |b| (b.record_count, b.last_offset_delta) = (Some(4), Some(3)),
            |b| (b.record_count, b.last_offset_delta) = (Some(2), Some(1)),
        ];
        for (i, lie) in lies.into_iter().enumerate() {
            assert_eq!(
                refusal(&mut client, &topic, &three.clone().with(lie)),
                codes::INVALID_RECORD,
                "{codec:?} lie {i}"
            );
        }
    }
}

/// Kafka reads the offsets of compressed records only; those of plain ones it trusts, so no test can ask for more.
#[test]
fn offsets_within_a_compressed_batch_must_rise_by_one() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for codec in Compression::ALL.into_iter().skip(1) {
        for deltas in [[0, 2, 2], [0, 2, 1], [1, 2, 3], [0, 0, 2], [0, -1, 2]] {
            let batch = Batch::of(&["a", "b", "c"]).compressed(codec).with(|b| b.offset_deltas = Some(deltas.to_vec()));
            assert_ne!(refusal(&mut client, &topic, &batch), codes::NONE, "{codec:?} {deltas:?}");
        }
    }
}

#[test]
fn a_base_offset_other_than_0_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for base in [1, 1000, -1, i64::MAX] {
        let batch = Batch::of(&["a"]).with(|b| b.base_offset = base);
        assert_eq!(refusal(&mut client, &topic, &batch), codes::INVALID_RECORD, "{base}");
    }
}

#[test]
fn a_transactional_batch_without_transactional_id_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let batch = Batch::of(&["a"]).producer(1, 0, 0).with(|b| b.attributes = 0x10);
    assert_eq!(refusal(&mut client, &topic, &batch), codes::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
}

#[test]
fn a_codec_that_does_not_exist_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for codec in 5..8 {
        let batch = Batch::of(&["a"]).with(|b| b.attributes = codec);
        assert_ne!(refusal(&mut client, &topic, &batch), codes::NONE, "codec {codec}");
    }
}

#[test]
fn exactly_one_batch_of_magic_2_goes_to_a_partition() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let one = Batch::of(&["a"]);
    let two: Vec<u8> = [one.bytes(), one.bytes()].concat();
    assert_eq!(refused(&mut client, &topic, two).error_code, codes::INVALID_RECORD);
    assert_eq!(refused(&mut client, &topic, Vec::new()).error_code, codes::INVALID_RECORD);
    assert_eq!(refusal(&mut client, &topic, &one.clone().with(|b| b.magic = 1)), codes::INVALID_RECORD);
}

#[test]
fn a_batch_without_records_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    assert_eq!(refusal(&mut client, &topic, &Batch::of(&[])), codes::INVALID_RECORD);
}

#[test]
fn clients_may_not_write_control_batches() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    assert_eq!(refusal(&mut client, &topic, &Batch::of(&["a"]).with(|b| b.attributes = 0x20)), codes::INVALID_RECORD);
}

#[test]
fn a_record_whose_length_lies_is_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let lying = |codec: Compression, first: u8| {
        let mut plain = Batch::of(&["a", "b"]).plain_records();
        plain[0] = first;
        Batch::of(&["a", "b"]).compressed(codec).with(|b| b.payload = Some(codec.compress(&plain)))
    };
    for first in [0x7e, 0x02, 0x00, 0x01, 0xff] {
        assert_eq!(refusal(&mut client, &topic, &lying(Compression::None, first)), codes::INVALID_RECORD, "{first:x}");
    }
    for codec in Compression::ALL {
        assert_eq!(refusal(&mut client, &topic, &lying(codec, 0x01)), codes::INVALID_RECORD, "{codec:?}");
    }
}

#[test]
fn zstd_needs_version_7() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let request = produce_request(&topic, 0, -1, Batch::of(&["a"]).compressed(Compression::Zstd).bytes());
    for (version, code) in [(6, codes::UNSUPPORTED_COMPRESSION_TYPE), (7, codes::NONE)] {
        let answer = client.call::<ProduceRequest>(version, &request);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, code, "version {version}");
    }
}

#[test]
fn a_batch_over_max_message_bytes_is_too_large() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("max.message.bytes", "1000")]);
    let batch = Batch::new(vec![Record::value(vec![b'x'; 2000])]);
    assert_eq!(refusal(&mut client, &topic, &batch), codes::MESSAGE_TOO_LARGE);
    append(&mut client, &topic, &Batch::new(vec![Record::value(vec![b'x'; 500])]));
}

#[test]
fn bl_020_a_record_without_key_is_refused_by_a_compacted_topic() {
    let mut client = Broker::shared().client();
    for policy in ["compact", "compact,delete"] {
        let topic = fresh_topic(&mut client, &[("cleanup.policy", policy)]);
        for codec in Compression::ALL {
            let records = vec![Record::value("a").key("k"), Record::value("b"), Record::value("c").key("k")];
            let answer = refused(&mut client, &topic, Batch::new(records).compressed(codec).bytes());
            assert_eq!(answer.error_code, codes::INVALID_RECORD);
            assert_eq!(answer.record_errors.iter().map(|e| e.batch_index).collect::<Vec<_>>(), [1]);
            assert!(answer.record_errors[0].batch_index_error_message.is_some());
            assert!(answer.error_message.is_some_and(|m| !m.is_empty()));
        }
        append(&mut client, &topic, &Batch::new(vec![Record::value("a").key("k")]));
    }
}

#[test]
fn bl_008_a_null_or_empty_client_id_is_served() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for id in [None, Some("")] {
        client.client_id = id;
        append(&mut client, &topic, &Batch::of(&["v"]));
        // Headers without and with tagged fields.
        for version in [0, 13] {
            assert_eq!(client.call(version, &MetadataRequest::default().with_topics(Some(vec![]))).brokers.len(), 1);
        }
        assert!(!batches(&mut client, &topic, 0, 0).is_empty());
    }
}
