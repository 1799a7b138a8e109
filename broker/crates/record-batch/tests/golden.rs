//! Holds this crate to bytes and answers of Apache Kafka; see golden/README.md for what the files are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail where it stands")]

use bytes::Bytes;
use record_batch::validate::RecordFaultKind;
use record_batch::{
    BatchHeader, BatchRef, Codec, Compression, NO_TIMESTAMP, RecordReader, Refusal, Rules, TargetCompression,
    TimestampType, ValidateError, validate,
};

const BATCHES: &str = include_str!("golden/batches.txt");
const VALIDATOR: &str = include_str!("golden/validator.txt");
const LIMIT: usize = 1 << 24;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn batch(name: &str) -> Vec<u8> {
    let line = BATCHES.lines().find(|line| line.split(' ').next() == Some(name));
    unhex(line.unwrap_or_else(|| panic!("no batch {name}")).split(' ').nth(1).unwrap())
}

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn codec(name: &str) -> Compression {
    CODECS.into_iter().find(|codec| codec.name() == name).unwrap()
}

/// Key, value, timestamp, offset, sequence and headers of every record, as text.
fn dump(bytes: &[u8]) -> Vec<String> {
    let batch = BatchRef::parse(bytes).unwrap();
    batch.verify_crc().unwrap();
    let mut reader = RecordReader::open(&batch, LIMIT).unwrap();
    let mut out = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let headers: Vec<_> = record.headers.map(|h| (text(h.key), h.value.map(text))).collect();
        out.push(format!(
            "{:?} {:?} {} {} {} {headers:?}",
            record.key.map(text),
            record.value.map(text),
            record.timestamp,
            record.offset,
            record.sequence
        ));
    }
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn kafkas_batches_are_read_whatever_their_codec() {
    for codec in CODECS {
        let name = codec.name();
        let records = dump(&batch(&format!("plain-{name}")));
        assert_eq!(records.len(), 5, "{name}");
        assert_eq!(
            records[3],
            r#"Some("key-3") Some("value-3-xxxxxxxxxxxxxxxxxxxx") 1003 3 -1 [("a", Some("1")), ("b", None), ("a", Some(""))]"#
        );
        assert_eq!(records[4], r#"Some("key-4") Some("value-4-xxxxxxxxxxxxxxxxxxxx") 1004 4 -1 []"#);
    }
}

#[test]
fn bl_013_sequences_wrap_in_kafkas_own_batches() {
    for codec in CODECS {
        let bytes = batch(&format!("producer-{}", codec.name()));
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!((header.producer_id, header.producer_epoch, header.last_sequence()), (77, 3, 1));
        assert!(header.is_transactional() && !header.is_control());
        assert_eq!((header.base_offset, header.partition_leader_epoch), (42, 9));
        let sequences: Vec<_> = dump(&bytes).iter().map(|r| r.split(' ').nth(4).unwrap().to_owned()).collect();
        assert_eq!(sequences, ["2147483646", "2147483647", "0", "1"]);
    }
}

#[test]
fn bl_034_null_and_empty_stay_apart_in_kafkas_own_batches() {
    for codec in CODECS {
        let records = dump(&batch(&format!("nulls-{}", codec.name())));
        assert_eq!(records[0], "None None -1 0 -1 []");
        assert_eq!(records[1], r#"Some("") Some("") 5 1 -1 []"#);
        assert_eq!(records[2], r#"Some("k") None 4 2 -1 []"#);
    }
}

#[test]
fn the_time_of_append_holds_for_every_record() {
    for codec in CODECS {
        let bytes = batch(&format!("append-time-{}", codec.name()));
        assert_eq!(BatchHeader::parse(&bytes).unwrap().timestamp_type(), TimestampType::LogAppendTime);
        assert!(dump(&bytes).iter().all(|record| record.contains(" 555 ")));
    }
}

#[test]
fn batches_of_many_blocks_are_read_to_their_end() {
    for codec in CODECS.into_iter().skip(1) {
        let records = dump(&batch(&format!("large-{}", codec.name())));
        assert_eq!(records.len(), 40);
        assert!(records[39].contains(r#"Some("k39")"#) && records[39].contains(" 2039 39 -1"));
    }
}

#[test]
fn a_commit_marker_is_read() {
    use record_batch::control::{ControlRecordType, end_txn_marker_value, parse_end_txn_marker};
    let bytes = batch("control-none");
    let batch = BatchRef::parse(&bytes).unwrap();
    assert!(batch.header().is_control());
    let record = batch.plain_records().unwrap().next().unwrap().unwrap();
    assert_eq!(ControlRecordType::parse_key(record.key.unwrap()), Some(ControlRecordType::Commit));
    assert_eq!(record.key.unwrap(), ControlRecordType::Commit.key());
    assert_eq!(parse_end_txn_marker(record.value.unwrap()), Some(3));
    assert_eq!(record.value.unwrap(), end_txn_marker_value(3));
}

#[test]
fn a_rebuilt_batch_has_the_bytes_kafka_would_write() {
    use record_batch::{BatchBuilder, RecordData};
    for name in ["plain-none", "producer-none", "nulls-none"] {
        let golden = batch(name);
        let source = BatchRef::parse(&golden).unwrap();
        let header = source.header();
        let mut builder = BatchBuilder::new(header.base_offset)
            .partition_leader_epoch(header.partition_leader_epoch)
            .producer(header.producer_id, header.producer_epoch, header.base_sequence);
        if header.is_transactional() {
            builder = builder.transactional();
        }
        for record in source.plain_records().unwrap() {
            let record = record.unwrap();
            let headers: Vec<_> = record.headers.map(|h| (h.key, h.value)).collect();
            let (key, value, timestamp) = (record.key, record.value, record.timestamp);
            builder.append(&RecordData { timestamp, key, value, headers: &headers });
        }
        assert_eq!(builder.build().unwrap(), golden, "{name}");
    }
}

struct Case {
    name: String,
    rules: Rules,
    now: i64,
    input: Vec<u8>,
    answer: String,
}

fn cases() -> Vec<Case> {
    let lines: Vec<_> = VALIDATOR.lines().collect();
    lines.chunks(3).map(|lines| case(lines[0], lines[1], lines[2])).collect()
}

fn case(settings: &str, input: &str, answer: &str) -> Case {
    let (name, settings) = settings.split_once(' ').unwrap();
    let get = |key: &str| {
        let found = settings.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("{name} has no {key}"))
    };
    let number = |key: &str| get(key).parse::<i64>().unwrap();
    let rules = Rules {
        max_message_bytes: number("maxbytes") as usize,
        max_decompressed_message_bytes: number("maxbody") as usize,
        timestamp_type: match get("type") {
            "CreateTime" => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: number("before"),
        timestamp_after_max_ms: number("after"),
        compacted: get("compact") == "true",
        compression: match get("target") {
            "producer" => TargetCompression::Producer,
            name => TargetCompression::Codec(Codec::with_default_level(codec(name))),
        },
        zstd_allowed: number("version") >= 7,
    };
    let input = unhex(input.trim_start().strip_prefix("in").unwrap().trim());
    Case { name: name.to_owned(), rules, now: number("now"), input, answer: answer.trim().to_owned() }
}

fn code(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::CorruptMessage => "CORRUPT_MESSAGE",
        Refusal::InvalidRecord => "INVALID_RECORD",
        Refusal::InvalidTimestamp => "INVALID_TIMESTAMP",
        Refusal::MessageTooLarge => "MESSAGE_TOO_LARGE",
        Refusal::UnsupportedCompressionType => "UNSUPPORTED_COMPRESSION_TYPE",
        Refusal::UnknownServerError => "UNKNOWN_SERVER_ERROR",
    }
}

/// Cases in which we differ from Kafka on purpose, and what we answer.
fn own_answer(case: &Case) -> Option<&'static str> {
    let compressed = !case.name.ends_with("-none");
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| case.name.starts_with(prefix));
    let passes = case.rules.compression == TargetCompression::Producer;
    // Kafka appends these uncompressed, and trips over itself when they are compressed; nobody could consume them.
    if passes && starts(&["offset-gap-", "offset-order", "offset-same", "payload-twice-count-twice"]) {
        return Some("INVALID_RECORD");
    }
    // Likewise where source and target are the same codec by configuration.
    if case.name == "offset-gap-to-zstd-zstd" {
        return Some("INVALID_RECORD");
    }
    // Kafka does not look at the declared length of a compressed record.
    if compressed && starts(&["record-shorter-than-fields"]) {
        return Some("INVALID_RECORD");
    }
    // A number without an end is not the server's fault.
    if starts(&["record-varint-long-none"]) {
        return Some("INVALID_RECORD");
    }
    None
}

fn check(case: &Case) -> Result<(), String> {
    let outcome = validate(Bytes::from(case.input.clone()), &case.rules, case.now);
    let words: Vec<_> = case.answer.split(' ').collect();
    if let Some(own) = own_answer(case) {
        let got = outcome.map(|_| ()).map_err(|error| code(error.refusal()));
        return if got == Err(own) { Ok(()) } else { Err(format!("expected {own}, got {got:?}")) };
    }
    match (words[0], outcome) {
        ("ok", Ok(valid)) => {
            let rebuilt = words[3] == "rebuilt";
            if rebuilt != valid.is_rebuilt() {
                return Err(format!("rebuilt: {}", valid.is_rebuilt()));
            }
            if valid.header().max_timestamp.to_string() != words[1] {
                return Err(format!("max timestamp {}", valid.header().max_timestamp));
            }
            let ours = valid.assign(100, 7);
            same_batch(&ours, &unhex(words[4]), rebuilt)
        }
        ("error", Err(error)) if code(error.refusal()) == words[1] => Ok(()),
        ("records", Err(error)) if code(error.refusal()) == words[1] => same_faults(&error, &words[2..]),
        (_, outcome) => Err(format!("got {:?}", outcome.map(|_| ()))),
    }
}

fn same_batch(ours: &[u8], kafkas: &[u8], rebuilt: bool) -> Result<(), String> {
    let compressed = BatchHeader::parse(kafkas).unwrap().compression() != Ok(Compression::None);
    if ours == kafkas {
        return Ok(());
    }
    if !rebuilt || !compressed {
        return Err("other bytes".to_owned());
    }
    let parts = |bytes: &[u8]| {
        let header = BatchHeader::parse(bytes).unwrap();
        (BatchHeader { crc: 0, batch_length: 0, ..header }, dump(bytes))
    };
    if parts(ours) == parts(kafkas) { Ok(()) } else { Err("other header or records".to_owned()) }
}

fn same_faults(error: &ValidateError, kafkas: &[&str]) -> Result<(), String> {
    let ValidateError::Records(faults) = error else {
        return Err(format!("no record faults but {error}"));
    };
    let ours: Vec<_> = faults
        .faults
        .iter()
        .map(|fault| {
            let kind = match fault.kind {
                RecordFaultKind::NoKey => "Compacted_topic",
                RecordFaultKind::Timestamp { .. } => "Timestamp_",
                RecordFaultKind::AppendTimeFromProducer => "Invalid_timestamp_type",
            };
            format!("{}:{kind}", fault.batch_index)
        })
        .collect();
    let same =
        ours.len() == kafkas.len() && ours.iter().zip(kafkas).all(|(ours, kafkas)| kafkas.starts_with(&ours[..]));
    if same { Ok(()) } else { Err(format!("faults {ours:?}")) }
}

#[test]
fn bl_013_019_020_023_026_028_029_032_034_answers_are_kafkas() {
    let cases = cases();
    assert!(cases.len() > 350, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(what) = check(case) {
            let answer: String = case.answer.chars().take(100).collect();
            wrong.push(format!("{}: {what}\n    Kafka: {answer}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_batch_without_timestamps_has_none() {
    let case = cases().into_iter().find(|case| case.name == "no-timestamps-none").unwrap();
    let valid = validate(Bytes::from(case.input), &case.rules, case.now).unwrap();
    assert_eq!(valid.header().max_timestamp, NO_TIMESTAMP);
}
