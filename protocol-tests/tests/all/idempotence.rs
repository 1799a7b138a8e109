//! Idempotent producers: InitProducerId (key 22) and the sequence rules of Produce (KIP-98, KIP-360). Uses the harness.

use std::time::Duration;

use kafka_protocol::messages::{InitProducerIdRequest, ProduceRequest, ProducerId, TransactionalId};
use protocol_tests::ops::*;
use protocol_tests::{Batch, Broker, Client, Compression, codes, eventually};

fn send(client: &mut Client, topic: &str, producer: (i64, i16), sequence: i32, n: usize) -> (i16, i64) {
    let values = vec!["v"; n];
    let batch = Batch::of(&values).producer(producer.0, producer.1, sequence);
    let answer = produce(client, topic, 0, batch.bytes());
    (answer.error_code, answer.base_offset)
}

#[test]
fn every_version_of_init_producer_id_gives_a_new_id_with_epoch_0() {
    let mut client = Broker::shared().client();
    let mut seen = std::collections::BTreeSet::new();
    for version in 0..=5 {
        let answer = client.call(
            version,
            &InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(1000),
        );
        assert_eq!((answer.error_code, answer.producer_epoch), (codes::NONE, 0), "version {version}");
        assert!(answer.producer_id.0 >= 0 && seen.insert(answer.producer_id.0), "version {version}");
    }
}

#[test]
fn an_idempotent_producer_that_bumps_its_epoch_gets_a_new_id() {
    let mut client = Broker::shared().client();
    let (id, epoch) = producer_id(&mut client);
    let again = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_producer_id(ProducerId(id))
        .with_producer_epoch(epoch);
    let answer = client.call(4, &again);
    assert_eq!((answer.error_code, answer.producer_epoch), (codes::NONE, 0));
    assert_ne!(answer.producer_id.0, id);
}

#[test]
fn an_empty_transactional_id_is_an_invalid_request() {
    let mut client = Broker::shared().client();
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(s(""))))
        .with_transaction_timeout_ms(1000);
    assert_eq!(client.call(4, &request).error_code, codes::INVALID_REQUEST);
}

#[test]
fn bl_017_the_next_sequence_is_the_base_plus_the_record_count() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    let mut sequence = 0;
    for n in [1, 5, 3, 10, 1, 1, 7] {
        assert_eq!(send(&mut client, &topic, p, sequence, n), (codes::NONE, i64::from(sequence)));
        sequence += n as i32;
    }
    for wrong in [sequence + 1, sequence + 100] {
        assert_eq!(send(&mut client, &topic, p, wrong, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    }
    assert_eq!(end_offset(&mut client, &topic), i64::from(sequence));
}

#[test]
fn bl_016_each_of_the_last_five_batches_is_known_again() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    for sequence in 0..6 {
        assert_eq!(send(&mut client, &topic, p, sequence, 1), (codes::NONE, i64::from(sequence)));
    }
    for sequence in (1..6).rev() {
        assert_eq!(
            send(&mut client, &topic, p, sequence, 1),
            (codes::NONE, i64::from(sequence)),
            "duplicate {sequence}"
        );
    }
    assert_eq!(send(&mut client, &topic, p, 0, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(end_offset(&mut client, &topic), 6);
    assert_eq!(send(&mut client, &topic, p, 6, 1), (codes::NONE, 6));
}

#[test]
fn bl_016_a_duplicate_is_answered_with_the_first_append_time() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("message.timestamp.type", "LogAppendTime")]);
    let (id, epoch) = producer_id(&mut client);
    let batch = Batch::of(&["v"]).producer(id, epoch, 0).bytes();
    let first = produce(&mut client, &topic, 0, batch.clone());
    let second = produce(&mut client, &topic, 0, batch);
    assert_eq!(first.error_code, codes::NONE);
    assert_eq!((second.error_code, second.base_offset), (codes::NONE, first.base_offset));
    assert_eq!(second.log_append_time_ms, first.log_append_time_ms);
}

#[test]
fn a_batch_that_overlaps_a_duplicate_only_in_part_is_out_of_order() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, p, 0, 4).0, codes::NONE);
    assert_eq!(send(&mut client, &topic, p, 0, 2).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(send(&mut client, &topic, p, 2, 4).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
}

#[test]
fn bl_013_sequence_wraps_to_zero() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, p, i32::MAX - 1, 2), (codes::NONE, 0));
    assert_eq!(send(&mut client, &topic, p, 1, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER, "0 comes first");
    assert_eq!(send(&mut client, &topic, p, 0, 1), (codes::NONE, 2));
    assert_eq!(send(&mut client, &topic, p, 1, 1), (codes::NONE, 3));
    assert_eq!(send(&mut client, &topic, p, i32::MAX - 1, 2), (codes::NONE, 0), "a duplicate from before the wrap");
    assert_eq!(send(&mut client, &topic, p, 0, 1), (codes::NONE, 2), "a duplicate from after it");
    assert_eq!(end_offset(&mut client, &topic), 4);
}

#[test]
fn bl_013_a_batch_may_straddle_the_wrap() {
    let mut client = Broker::shared().client();
    for codec in [Compression::None, Compression::Lz4] {
        let topic = fresh_topic(&mut client, &[]);
        let (id, epoch) = producer_id(&mut client);
        let batch = Batch::of(&["a", "b", "c", "d"]).compressed(codec).producer(id, epoch, i32::MAX - 1);
        append(&mut client, &topic, &batch);
        assert_eq!(send(&mut client, &topic, (id, epoch), 2, 1), (codes::NONE, 4));
        assert_eq!(produce(&mut client, &topic, 0, batch.bytes()).base_offset, 0, "the duplicate");
    }
}

#[test]
fn bl_013_a_negative_sequence_with_a_producer_id_is_invalid() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    for sequence in [-5, -1, i32::MIN] {
        assert_eq!(send(&mut client, &topic, p, sequence, 1).0, codes::INVALID_RECORD);
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
}

#[test]
fn bl_014_a_producer_unknown_to_the_partition_may_start_anywhere() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, p, 17, 1), (codes::NONE, 0));
    assert_eq!(send(&mut client, &topic, p, 18, 1), (codes::NONE, 1));
    // An id that was never given out is one without state, too.
    assert_eq!(send(&mut client, &topic, (p.0 + 1_000_000_000, 3), 5, 1), (codes::NONE, 2));
}

#[test]
fn bl_014_after_expiry_any_sequence_is_accepted() {
    let own = [("producer.id.expiration.ms", "5000"), ("producer.id.expiration.check.interval.ms", "300")];
    let broker = Broker::start(&own);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, p, 0, 2).0, codes::NONE);
    assert_eq!(send(&mut client, &topic, p, 7, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    let mut sequence = 7;
    eventually("the producer id expires", SOON, || {
        std::thread::sleep(Duration::from_millis(1500));
        sequence += 1;
        (send(&mut client, &topic, p, sequence, 1).0 == codes::NONE).then_some(())
    });
}

#[test]
fn a_new_epoch_starts_at_0_and_fences_the_old_one() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (id, _) = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, (id, 0), 0, 3).0, codes::NONE);
    assert_eq!(send(&mut client, &topic, (id, 1), 3, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(send(&mut client, &topic, (id, 1), 0, 1), (codes::NONE, 3));
    assert_eq!(send(&mut client, &topic, (id, 0), 3, 1).0, codes::INVALID_PRODUCER_EPOCH);
    assert_eq!(end_offset(&mut client, &topic), 4);
}

#[test]
fn sequences_are_counted_per_partition() {
    let mut client = Broker::shared().client();
    let topic = protocol_tests::unique("topic");
    create_topic(&mut client, &topic, 2, &[]);
    let (id, epoch) = producer_id(&mut client);
    for partition in [0, 1] {
        for sequence in 0..3 {
            let batch = Batch::of(&["v"]).producer(id, epoch, sequence);
            let answer = produce(&mut client, &topic, partition, batch.bytes());
            assert_eq!((answer.error_code, answer.base_offset), (codes::NONE, i64::from(sequence)));
        }
    }
}

#[test]
fn bl_016_batches_of_any_size_and_codec_that_were_under_way_together_are_known_again() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (id, epoch) = producer_id(&mut client);
    let mut sequence = 0;
    let batches: Vec<(i64, Vec<u8>)> = [3, 1, 4, 1, 5]
        .into_iter()
        .zip(Compression::ALL)
        .map(|(n, codec)| {
            let batch = Batch::of(&vec!["v"; n]).compressed(codec).producer(id, epoch, sequence);
            let base = i64::from(sequence);
            sequence += n as i32;
            (base, batch.bytes())
        })
        .collect();
    // All five without waiting, and, as after a cut connection, all five once more.
    for round in 0..2 {
        let sent: Vec<i32> =
            batches.iter().map(|(_, bytes)| client.send(9, &produce_request(&topic, 0, -1, bytes.clone()))).collect();
        for (id, (base, _)) in sent.into_iter().zip(&batches) {
            let answer = client.receive::<ProduceRequest>(9, id, SOON);
            let part = &answer.responses[0].partition_responses[0];
            assert_eq!((part.error_code, part.base_offset), (codes::NONE, *base), "round {round}");
        }
    }
    assert_eq!(end_offset(&mut client, &topic), 14);
}

#[test]
fn bl_014_delete_records_does_not_make_a_producer_unknown() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let p = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, p, 0, 2), (codes::NONE, 0));
    assert_eq!(delete_records(&mut client, &topic, 0, -1).low_watermark, 2);
    assert_eq!(send(&mut client, &topic, p, 0, 2), (codes::NONE, 0), "the duplicate");
    assert_eq!(send(&mut client, &topic, p, 9, 1).0, codes::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(send(&mut client, &topic, p, 2, 1), (codes::NONE, 2));
}

/// The code for it on other APIs, PRODUCER_FENCED, is one that old producers do not know of Produce.
#[test]
fn bl_022_an_old_epoch_is_invalid_and_not_fenced_at_every_version() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (id, _) = producer_id(&mut client);
    assert_eq!(send(&mut client, &topic, (id, 5), 0, 1).0, codes::NONE);
    for version in 3..=12 {
        let bytes = Batch::of(&["v"]).producer(id, 4, 1).bytes();
        let answer = client.call(version, &produce_request(&topic, 0, -1, bytes));
        let part = &answer.responses[0].partition_responses[0];
        assert_eq!((part.error_code, part.base_offset), (codes::INVALID_PRODUCER_EPOCH, -1), "version {version}");
    }
    assert_eq!(end_offset(&mut client, &topic), 1);
}
