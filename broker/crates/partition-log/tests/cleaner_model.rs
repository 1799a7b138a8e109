//! Compaction against a plain model: random appends, rolls and cleanings leave what a list with a rule leaves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use base::Offset;
use common::cleaning::*;
use partition_log::{AppendOrigin, Log};
use proptest::prelude::*;
use record_batch::{BatchBuilder, Codec, RecordData};

const DELETE_RETENTION_MS: i64 = 50;

#[derive(Debug, Clone)]
enum Op {
    /// Keys and whether each has a value.
    Append {
        records: Vec<(u8, bool)>,
        codec: u8,
        timestamp: i64,
    },
    Roll,
    Reopen {
        clean: bool,
    },
    Clean {
        wait_ms: i64,
        from_start: bool,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let append = (prop::collection::vec((0..7u8, prop::bool::weighted(0.8)), 1..6), 0..5u8, 1..99i64);
    let append = append.prop_map(|(records, codec, timestamp)| Op::Append { records, codec, timestamp });
    let clean = (0..60i64, any::<bool>()).prop_map(|(wait_ms, from_start)| Op::Clean { wait_ms, from_start });
    let reopen = any::<bool>().prop_map(|clean| Op::Reopen { clean });
    prop::collection::vec(prop_oneof![8 => append, 3 => Just(Op::Roll), 2 => clean, 1 => reopen], 1..60)
}

fn codec(number: u8) -> Codec {
    match number {
        0 => Codec::Uncompressed,
        1 => Codec::Gzip { level: 1 },
        2 => Codec::Snappy,
        3 => Codec::Lz4 { level: 1 },
        _ => Codec::Zstd { level: 1 },
    }
}

/// What a cleaning is to leave, kept as plainly as can be.
#[derive(Default)]
struct Model {
    /// Each record with the base offset of its batch.
    records: Vec<(Found, Offset)>,
    /// Delete horizon of each batch that has one.
    horizons: BTreeMap<Offset, i64>,
}

impl Model {
    fn clean(&mut self, end: Offset, now_ms: i64) {
        let mut last = BTreeMap::new();
        for ((offset, _, key, _), _) in self.records.iter().filter(|record| record.0.0 < end) {
            last.insert(key.clone(), *offset);
        }
        let horizons = &self.horizons;
        self.records.retain(|((offset, _, key, value), batch)| {
            let waits = horizons.get(batch).is_none_or(|horizon| now_ms < *horizon);
            *offset >= end || (last.get(key) == Some(offset) && (value.is_some() || waits))
        });
        for ((offset, _, _, value), batch) in &self.records {
            if *offset < end && value.is_none() {
                self.horizons.entry(*batch).or_insert(now_ms + DELETE_RETENTION_MS);
            }
        }
    }

    fn found(&self) -> Vec<Found> {
        self.records.iter().map(|(found, _)| found.clone()).collect()
    }
}

fn append(log: &mut Log, model: &mut Model, records: &[(u8, bool)], number: u8, timestamp: i64) {
    let base = log.log_end_offset();
    let mut builder = BatchBuilder::new(0).compression(codec(number));
    for (at, (key, has_value)) in records.iter().enumerate() {
        let offset = base + at as i64;
        let (key, value) = (format!("key {key}"), format!("value at {offset}"));
        let record = RecordData::new(timestamp).key(key.as_bytes());
        builder.append(&if *has_value { record.value(value.as_bytes()) } else { record });
        model.records.push(((offset, timestamp, key, has_value.then_some(value)), base));
    }
    append_as(log, builder.build().unwrap(), AppendOrigin::Client).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cleaned_log_holds_what_the_model_holds(ops in ops()) {
        let (place, _) = compacted();
        let place = place.with(|config| {
            config.segment_bytes = 1500;
            config.delete_retention_ms = DELETE_RETENTION_MS;
        });
        let mut log = place.log();
        let (mut model, mut now_ms, mut checkpoint) = (Model::default(), 1000, 0);
        for op in ops {
            match op {
                Op::Append { records, codec, timestamp } => append(&mut log, &mut model, &records, codec, timestamp),
                Op::Roll => log.roll(now_ms).unwrap(),
                Op::Reopen { clean: true } => log = place.reopen_clean(log),
                Op::Reopen { clean: false } => {
                    log.flush().unwrap();
                    log.abandon();
                    log = place.log();
                }
                Op::Clean { wait_ms, from_start } => {
                    now_ms += wait_ms;
                    let from = if from_start { 0 } else { checkpoint };
                    let report = clean_with(&mut log, from, &options(now_ms)).unwrap();
                    if report.segments_read > 0 {
                        checkpoint = report.end_offset;
                        model.clean(checkpoint, now_ms);
                        prop_assert_eq!(found(&log.reader()), model.found());
                        clean_with(&mut log, 0, &options(now_ms)).unwrap();
                    }
                }
            }
            log.set_high_watermark(log.log_end_offset());
            prop_assert_eq!(found(&log.reader()), model.found());
        }
        // Below the dirty end every key is there once at most, and the last batch reaches the end of the log.
        let below: Vec<String> =
            found(&log.reader()).into_iter().filter(|record| record.0 < checkpoint).map(|record| record.2).collect();
        prop_assert_eq!(below.iter().collect::<BTreeSet<_>>().len(), below.len());
        if let Some(last) = headers(&log.reader()).last() {
            prop_assert_eq!(last.next_offset(), log.log_end_offset());
        }
    }
}
