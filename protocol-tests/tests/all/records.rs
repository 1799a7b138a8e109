//! What happens to the bytes of records: headers, nulls, codecs, recompression, timestamps. Uses the harness.

use protocol_tests::batch::now_ms;
use protocol_tests::ops::*;
use protocol_tests::snappy::{XERIAL_MAGIC, compress_raw};
use protocol_tests::{Batch, Broker, Client, Compression, Record, codes};

fn values(client: &mut Client, topic: &str) -> Vec<Record> {
    read_all(client, topic, 0).into_iter().map(|(_, r)| r).collect()
}

#[test]
fn bl_002_a_compressed_batch_is_stored_as_it_came() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for (i, codec) in Compression::ALL.into_iter().enumerate() {
        let batch = Batch::of(&["one", "two"]).compressed(codec);
        append(&mut client, &topic, &batch);
        let got = batches(&mut client, &topic, 0, 2 * i as i64);
        assert_eq!(got[0].attributes & 7, codec as i16);
        assert_eq!(got[0].payload, batch.bytes()[protocol_tests::batch::HEADER..], "{codec:?}");
    }
}

#[test]
fn bl_032_headers_keep_order_and_duplicates() {
    let mut client = Broker::shared().client();
    let record = Record::value("v")
        .key("k")
        .header("a", Some(b"1"))
        .header("b", Some(b"2"))
        .header("a", Some(b"3"))
        .header("", None);
    for to in ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] {
        let topic = fresh_topic(&mut client, &[("compression.type", to)]);
        for from in Compression::ALL {
            append(&mut client, &topic, &Batch::new(vec![record.clone()]).compressed(from));
        }
        assert_eq!(values(&mut client, &topic), vec![record.clone(); 5], "{to}");
    }
}

#[test]
fn bl_034_null_and_empty_stay_apart() {
    let mut client = Broker::shared().client();
    let at = now_ms();
    let records = vec![
        Record { timestamp: at, key: None, value: None, headers: vec![] },
        Record { timestamp: at, key: Some(vec![]), value: Some(vec![]), headers: vec![] },
        Record { timestamp: at, key: Some(vec![1]), value: None, headers: vec![("h".into(), Some(vec![]))] },
    ];
    for codec in ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] {
        let topic = fresh_topic(&mut client, &[("compression.type", codec)]);
        append(&mut client, &topic, &Batch::new(records.clone()));
        append(&mut client, &topic, &Batch::new(records.clone()).compressed(Compression::Zstd));
        assert_eq!(values(&mut client, &topic), [records.clone(), records.clone()].concat(), "{codec}");
    }
}

#[test]
fn bl_023_the_size_limit_is_on_the_batch_as_sent_and_again_after_recompression() {
    let mut client = Broker::shared().client();
    let limit = ("max.message.bytes", "100000");
    let plain = Batch::new(vec![Record::value(vec![b'x'; 100_000])]);
    let gzip = plain.clone().compressed(Compression::Gzip);
    let topic = fresh_topic(&mut client, &[limit]);
    append(&mut client, &topic, &gzip);
    assert_eq!(produce(&mut client, &topic, 0, plain.bytes()).error_code, codes::MESSAGE_TOO_LARGE);
    let topic = fresh_topic(&mut client, &[limit, ("compression.type", "uncompressed")]);
    assert_eq!(produce(&mut client, &topic, 0, gzip.bytes()).error_code, codes::MESSAGE_TOO_LARGE);
    assert_eq!(end_offset(&mut client, &topic), 0);
}

#[test]
fn bl_023_the_limit_counts_the_whole_batch_with_its_header() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL {
        let batch = Batch::new(vec![Record::value(vec![b'x'; 3000])]).compressed(codec);
        for (limit, code) in [(batch.bytes().len(), codes::NONE), (batch.bytes().len() - 1, codes::MESSAGE_TOO_LARGE)] {
            let topic = fresh_topic(&mut client, &[("max.message.bytes", &limit.to_string())]);
            assert_eq!(produce(&mut client, &topic, 0, batch.bytes()).error_code, code, "{codec:?} {limit}");
        }
    }
}

#[test]
fn bl_025_recompressed_snappy_has_the_java_framing() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("compression.type", "snappy")]);
    // 50 records fill one block of 32 KiB only in part, 20,000 fill several.
    for n in [50, 20_000] {
        for codec in [Compression::None, Compression::Gzip, Compression::Lz4, Compression::Zstd] {
            let at = append(&mut client, &topic, &Batch::of(&vec!["some text"; n]).compressed(codec));
            let got = &batches(&mut client, &topic, 0, at)[0];
            assert_eq!(got.attributes & 7, Compression::Snappy as i16);
            assert_eq!(got.payload[..8], XERIAL_MAGIC);
            assert_eq!(got.payload[8..16], [0, 0, 0, 1, 0, 0, 0, 1]);
            assert_eq!(got.records.len(), n);
        }
    }
}

#[test]
fn bl_026_both_snappy_framings_are_read_by_the_broker() {
    let mut client = Broker::shared().client();
    let records: Vec<Record> = (0..40).map(|i| Record::value(vec![i as u8; 1000]).key(i.to_string())).collect();
    let readers =
        [("cleanup.policy", "compact"), ("message.timestamp.type", "LogAppendTime"), ("compression.type", "gzip")];
    for config in readers {
        let topic = fresh_topic(&mut client, &[config]);
        let framed = Batch::new(records.clone()).compressed(Compression::Snappy);
        let raw = framed.clone().with(|b| b.payload = Some(compress_raw(&b.plain_records())));
        append(&mut client, &topic, &framed);
        append(&mut client, &topic, &raw);
        assert_eq!(values(&mut client, &topic).len(), 80, "{config:?}");
    }
}

#[test]
fn the_broker_recompresses_to_the_topics_codec() {
    let mut client = Broker::shared().client();
    for (name, codec) in [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)] {
        let topic = fresh_topic(&mut client, &[("compression.type", name)]);
        for from in Compression::ALL {
            let at = append(&mut client, &topic, &Batch::of(&["a", "b", "c"]).compressed(from));
            let got = &batches(&mut client, &topic, 0, at)[0];
            assert_eq!((got.base_offset, got.attributes & 7, got.records.len()), (at, codec, 3), "{from:?} to {name}");
        }
    }
}

#[test]
fn bl_028_the_broker_computes_the_maximal_timestamp() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL {
        for lie in [-1, 150, 5000, i64::MAX] {
            let topic = timeless_topic(&mut client, &[]);
            let records = (100..200).map(|t| Record::value("v").at(t)).collect();
            let batch = Batch::new(records).compressed(codec).with(|b| b.max_timestamp = Some(lie));
            append(&mut client, &topic, &batch);
            assert_eq!(batches(&mut client, &topic, 0, 0)[0].max_timestamp, 199, "{codec:?} {lie}");
            let found = list_offset(&mut client, &topic, 0, 150);
            assert_eq!((found.offset, found.timestamp), (50, 150), "{codec:?} {lie}");
            let latest = list_offset(&mut client, &topic, 0, -3);
            assert_eq!((latest.offset, latest.timestamp), (99, 199), "{codec:?} {lie}");
        }
    }
}

#[test]
fn bl_029_timestamps_far_in_the_future_are_refused() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    for ahead in [now_ms() + 2 * 3600 * 1000, now_ms() * 1000] {
        let batch = Batch::new(vec![Record::value("a"), Record::value("b").at(ahead)]);
        let answer = produce(&mut client, &topic, 0, batch.bytes());
        assert_eq!(answer.error_code, codes::INVALID_TIMESTAMP);
        assert_eq!(answer.record_errors.iter().map(|e| e.batch_index).collect::<Vec<_>>(), [1]);
        // What the header claims does not help, nor does a codec.
        let honest = Batch::new(vec![Record::value("a").at(ahead)]);
        for batch in [honest.clone().with(|b| b.max_timestamp = Some(1)), honest.compressed(Compression::Lz4)] {
            assert_eq!(produce(&mut client, &topic, 0, batch.bytes()).error_code, codes::INVALID_TIMESTAMP);
        }
    }
    assert_eq!(end_offset(&mut client, &topic), 0);
    append(&mut client, &topic, &Batch::new(vec![Record::value("old").at(1)]));
    let patient = fresh_topic(&mut client, &[("message.timestamp.after.max.ms", "9223372036854775807")]);
    append(&mut client, &patient, &Batch::new(vec![Record::value("a").at(now_ms() * 1000)]));
}

#[test]
fn before_max_ms_refuses_old_timestamps() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("message.timestamp.before.max.ms", "60000")]);
    let old = Batch::new(vec![Record::value("a").at(now_ms() - 120_000)]);
    assert_eq!(produce(&mut client, &topic, 0, old.bytes()).error_code, codes::INVALID_TIMESTAMP);
    append(&mut client, &topic, &Batch::of(&["b"]));
}

#[test]
fn log_append_time_stamps_the_batch_and_is_told_to_the_producer() {
    let mut client = Broker::shared().client();
    let topic = timeless_topic(&mut client, &[("message.timestamp.type", "LogAppendTime")]);
    for codec in [Compression::None, Compression::Gzip] {
        let before = now_ms();
        let batch = Batch::new(vec![Record::value("a").at(5), Record::value("b").at(6)]).compressed(codec);
        let answer = produce(&mut client, &topic, 0, batch.bytes());
        assert_eq!(answer.error_code, codes::NONE);
        assert!(answer.log_append_time_ms >= before && answer.log_append_time_ms <= now_ms());
        let got = &batches(&mut client, &topic, 0, answer.base_offset)[0];
        assert_eq!((got.attributes & 8, got.max_timestamp), (8, answer.log_append_time_ms));
    }
}

#[test]
fn the_timestamp_type_is_the_topics_whatever_the_producer_claims() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a"]).with(|b| b.attributes = 8));
    assert_eq!(batches(&mut client, &topic, 0, 0)[0].attributes & 8, 0);
}

#[test]
fn the_leader_epoch_is_written_into_each_batch() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    append(&mut client, &topic, &Batch::of(&["a"]));
    let epoch = metadata(&mut client, &[&topic]).topics[0].partitions[0].leader_epoch;
    assert_eq!(batches(&mut client, &topic, 0, 0)[0].leader_epoch, epoch);
}

#[test]
fn garbage_in_place_of_compressed_records_is_refused() {
    let mut client = Broker::shared().client();
    for codec in Compression::ALL.into_iter().skip(1) {
        let topic = fresh_topic(&mut client, &[]);
        let batch = Batch::of(&["a"]).compressed(codec).with(|b| b.payload = Some(vec![0xfe; 40]));
        let code = produce(&mut client, &topic, 0, batch.bytes()).error_code;
        assert_ne!(code, codes::NONE, "{codec:?}");
        assert_eq!(end_offset(&mut client, &topic), 0);
        append(&mut client, &topic, &Batch::of(&["b"]));
    }
}

#[test]
fn bl_152_the_old_message_format_setting_is_gone() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (code, message) = alter_configs(&mut client, TOPIC, &topic, &[("message.format.version", 0, Some("0.9.0"))]);
    assert_eq!(code, codes::INVALID_CONFIG);
    assert!(message.is_some());
    append(&mut client, &topic, &Batch::new(vec![Record::value("v").header("h", Some(b"x"))]));
    assert_eq!(values(&mut client, &topic)[0].headers.len(), 1);
}
