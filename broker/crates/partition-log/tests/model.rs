//! The log against a list of records in memory, over random sequences of what an owner and readers do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use common::*;
use partition_log::{EpochEnd, Log};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append { batches: Vec<Vec<i64>>, next_epoch: bool, idempotent: bool },
    Duplicate,
    Truncate(usize),
    DeleteRecords(usize),
    Roll,
    Flush,
    Snapshot,
    Release,
    Close,
    Kill,
    RetainBytes(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let timestamps = prop::collection::vec(0i64..200, 1..5);
    let batches = prop::collection::vec(timestamps, 1..4);
    prop_oneof![
        8 => (batches, prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(batches, next_epoch, idempotent)| Step::Append { batches, next_epoch, idempotent }),
        1 => Just(Step::Duplicate),
        1 => (0usize..100).prop_map(Step::Truncate),
        1 => (0usize..100).prop_map(Step::DeleteRecords),
        1 => Just(Step::Roll),
        1 => Just(Step::Flush),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Release),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        1 => (0i64..4000).prop_map(Step::RetainBytes),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct Record {
    timestamp: i64,
    value: Vec<u8>,
    epoch: i32,
    batch: usize,
}

struct Model {
    place: Place,
    log: Log,
    /// By offset, from 0.
    records: Vec<Record>,
    start: usize,
    epoch: i32,
    /// Sequence number that the producer sends next, and its last batch with the offset that it got.
    sequence: i32,
    last: Option<(i32, Vec<i64>, usize)>,
    batches: usize,
}

const PRODUCER: i64 = 3;

impl Model {
    fn new() -> Self {
        let (place, _) = Place::simulated();
        let place = Place { open_max: 2, ..place }.with(|config| {
            config.segment_bytes = 700;
            config.index_interval_bytes = 150;
            config.retention_ms = -1;
        });
        let log = place.log();
        Model { place, log, records: Vec::new(), start: 0, epoch: 0, sequence: 0, last: None, batches: 0 }
    }

    fn append(&mut self, batches: &[Vec<i64>], idempotent: bool) {
        let mut requests: Vec<Vec<u8>> = Vec::new();
        for timestamps in batches {
            requests.push(match idempotent {
                true => batch_of(PRODUCER, 0, self.sequence, timestamps),
                false => batch(timestamps),
            });
            if idempotent {
                let offset = self.records.len();
                self.last = Some((self.sequence, timestamps.clone(), offset));
                self.sequence += timestamps.len() as i32;
            }
            self.batches += 1;
            for (at, timestamp) in timestamps.iter().enumerate() {
                let mut value = format!("value {at} at {timestamp}").into_bytes();
                value.resize(20, b'.');
                let (epoch, batch) = (self.epoch, self.batches);
                self.records.push(Record { timestamp: *timestamp, value, epoch, batch });
            }
        }
        for result in append_all(&mut self.log, self.epoch, 7, &mut requests) {
            assert!(!result.unwrap().duplicate);
        }
        self.log.set_high_watermark(self.log.log_end_offset());
    }

    fn truncate(&mut self, percent: usize) {
        let mut offset = self.start + (self.records.len() - self.start) * percent / 100;
        // At the beginning of a batch, as epochs have it.
        while offset > self.start
            && offset < self.records.len()
            && self.records[offset].batch == self.records[offset - 1].batch
        {
            offset -= 1;
        }
        if offset < self.records.len() && offset > self.start {
            self.log.truncate_to(offset as i64, 7).unwrap();
            self.records.truncate(offset);
            self.epoch += 1;
            // What the producer sent last may be gone: it begins another life here.
            self.restart_producer();
        }
    }

    fn restart_producer(&mut self) {
        self.last = None;
        let next = self.log.producers().next().map_or(0, |entry| entry.last_sequence() + 1);
        self.sequence = next;
    }

    fn reopen(&mut self, clean: bool) {
        let placeholder = Place::simulated().0.log();
        let log = std::mem::replace(&mut self.log, placeholder);
        self.log = if clean {
            self.place.reopen_clean(log)
        } else {
            let place = Place {
                recovery_point: log.recovery_point(),
                log_start_offset: log.log_start_offset(),
                high_watermark: log.high_watermark(),
                ..self.place.clone()
            };
            log.abandon();
            place.log()
        };
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Append { batches, next_epoch, idempotent } => {
                self.epoch += i32::from(*next_epoch);
                self.append(batches, *idempotent);
            }
            Step::Duplicate => {
                if let Some((sequence, timestamps, offset)) = &self.last {
                    let again =
                        append_all(&mut self.log, self.epoch, 7, &mut [batch_of(PRODUCER, 0, *sequence, timestamps)]);
                    let again = again.into_iter().next().unwrap().unwrap();
                    assert_eq!((again.first_offset, again.duplicate), (*offset as i64, true));
                }
            }
            Step::Truncate(percent) => self.truncate(*percent),
            Step::DeleteRecords(percent) => {
                let offset = self.start + (self.records.len() - self.start) * percent / 100;
                self.log.advance_log_start(offset as i64).unwrap();
                self.log.apply_retention(7).unwrap();
                self.start = offset.max(self.start);
            }
            Step::Roll => self.log.roll(7).unwrap(),
            Step::Flush => assert_eq!(self.log.flush().unwrap(), self.log.log_end_offset()),
            Step::Snapshot => self.log.take_snapshot().unwrap(),
            Step::Release => self.log.release_idle().unwrap(),
            Step::Close => self.reopen(true),
            Step::Kill => self.reopen(false),
            Step::RetainBytes(bytes) => {
                let mut config = self.log.config().as_ref().clone();
                config.retention_bytes = *bytes;
                self.log.set_config(std::sync::Arc::new(config));
                self.log.apply_retention(7).unwrap();
                assert!(self.log.log_start_offset() as usize >= self.start);
                assert!(self.log.size_bytes() as i64 >= (*bytes).min(self.log.size_bytes() as i64));
                self.start = self.log.log_start_offset() as usize;
                self.log.set_config(std::sync::Arc::new(self.place.config.clone()));
            }
        }
    }

    fn compare(&self) {
        let reader = self.log.reader();
        assert_eq!(
            (reader.log_start_offset(), reader.log_end_offset()),
            (self.start as i64, self.records.len() as i64)
        );
        let found: Vec<(i64, i64, Vec<u8>)> = records(&reader);
        let expected: Vec<(i64, i64, Vec<u8>)> = (self.start..self.records.len())
            .map(|offset| (offset as i64, self.records[offset].timestamp, self.records[offset].value.clone()))
            .collect();
        assert_eq!(found, expected);
        for asked in (0..210).step_by(13) {
            let first = (self.start..self.records.len()).find(|offset| self.records[*offset].timestamp >= asked);
            let found = reader.offset_for_timestamp(asked).unwrap().map(|found| found.offset as usize);
            assert_eq!(found, first, "at {asked}");
        }
        for offset in self.start..self.records.len() {
            let epoch = self.records[offset].epoch;
            assert_eq!(reader.epoch_of(offset as i64), Some(epoch));
            let end = self.records.iter().position(|record| record.epoch > epoch).unwrap_or(self.records.len());
            assert_eq!(reader.epoch_end_offset(epoch), Some(EpochEnd { epoch, end_offset: end as i64 }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_log_holds_what_the_model_holds(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
        }
        model.compare();
    }
}
