//! Appending and reading: offsets, groups of requests, segments, bounds, limits.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::*;
use partition_log::{
    Access, AppendError, AppendItem, AppendOrigin, AppendScratch, Bound, Disk, FileRange, ProducerError, ReadError,
    ReadRequest, RealDisk, Records,
};
use record_batch::{BatchBuilder, RecordData};

#[test]
fn offsets_and_epochs_are_written_into_the_batches() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    let results = append_all(&mut log, 3, 7, &mut [batch(&[10, 11]), batch(&[12]), batch(&[13, 14, 15])]);
    let offsets: Vec<(i64, i64)> =
        results.into_iter().map(|result| result.unwrap()).map(|a| (a.first_offset, a.last_offset)).collect();
    assert_eq!(offsets, [(0, 1), (2, 2), (3, 5)]);
    assert_eq!((log.log_end_offset(), log.latest_epoch()), (6, Some(3)));
    let reader = log.reader();
    assert_eq!(read(&reader, 0, 1 << 20, false), [(0, 1), (2, 2), (3, 5)]);
    assert_eq!(read(&reader, 1, 1 << 20, false), [(0, 1), (2, 2), (3, 5)]);
    assert_eq!(read(&reader, 4, 1 << 20, false), [(3, 5)]);
    assert_eq!(records(&reader).len(), 6);
    assert_eq!(reader.epoch_of(5), Some(3));
}

#[test]
fn a_read_keeps_to_its_limits_and_bounds() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    for i in 0..10 {
        append_all(&mut log, 0, 7, &mut [batch(&[i])]).remove(0).unwrap();
    }
    let one = batch(&[1]).len();
    let reader = log.reader();
    assert_eq!(read(&reader, 2, one * 3 + 1, true), [(2, 2), (3, 3), (4, 4)]);
    assert_eq!(read(&reader, 2, one - 1, true), [(2, 2)]);
    assert_eq!(read(&reader, 2, one - 1, false), []);
    assert_eq!(read(&reader, 10, 100, true), []);
    let mut request = ReadRequest { offset: 0, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::HighWatermark };
    assert!(reader.read(&request, Access::Wait).unwrap().records.is_empty());
    log.set_high_watermark(4);
    let result = reader.read(&request, Access::NoWait).unwrap();
    assert_eq!((result.records.len(), result.offsets.high_watermark), (4 * one, 4));
    request.offset = 11;
    let error = reader.read(&request, Access::Wait).unwrap_err();
    assert!(matches!(error, ReadError::OutOfRange { offset: 11, log_start_offset: 0, log_end_offset: 10 }));
}

#[test]
fn waiting_readers_learn_how_many_bytes_have_come() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch(&[1])).unwrap();
    let reader = log.reader();
    let at_end = reader.end_position();
    assert_eq!(reader.bytes_from(&at_end, Bound::HighWatermark), 0);
    let more = batch(&[2, 3]);
    append_all(&mut log, 0, 1, &mut [more.clone()]).remove(0).unwrap();
    assert_eq!(reader.bytes_from(&at_end, Bound::HighWatermark), 0);
    assert_eq!(reader.bytes_from(&at_end, Bound::LogEnd), more.len() as u64);
    log.set_high_watermark(3);
    assert_eq!(reader.bytes_from(&at_end, Bound::HighWatermark), more.len() as u64);
    assert_eq!(reader.locate(2, Access::Wait).unwrap(), at_end);
}

#[test]
fn segments_follow_each_other_and_reads_go_on_in_the_next() {
    let (place, _) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 1000;
        config.index_interval_bytes = 100;
    });
    let mut log = place.log();
    let mut all: Vec<Vec<u8>> = (0..40).map(|i| batch(&[i, i + 1])).collect();
    let results = append_all(&mut log, 0, 7, &mut all);
    assert!(results.iter().all(Result::is_ok));
    assert!(log.segment_count() > 4);
    let reader = log.reader();
    let values: Vec<i64> = records(&reader).iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(values, (0..80).collect::<Vec<i64>>());
    for offset in 0..80 {
        assert_eq!(read(&reader, offset, 50, true), [(offset / 2 * 2, offset / 2 * 2 + 1)]);
    }
    let log = place.reopen_clean(log);
    let values: Vec<i64> = records(&log.reader()).iter().map(|(offset, ..)| *offset).collect();
    assert_eq!(values, (0..80).collect::<Vec<i64>>());
}

#[test]
fn a_request_larger_than_a_segment_is_refused() {
    let (place, _) = Place::simulated();
    let mut log = place.with(|config| config.segment_bytes = 200).log();
    let refused = append(&mut log, sized_batch(1, 500));
    assert!(matches!(refused, Err(AppendError::LargerThanSegment { limit: 200, .. })));
    append(&mut log, sized_batch(1, 20)).unwrap();
}

#[test]
fn segments_are_closed_by_time() {
    let (place, _) = Place::simulated();
    let mut log = place.with(|config| config.segment_ms = 1000).log();
    append(&mut log, batch(&[5000])).unwrap();
    append(&mut log, batch(&[6000])).unwrap();
    assert_eq!(log.segment_count(), 1);
    append(&mut log, batch(&[6001])).unwrap();
    assert_eq!(log.segment_count(), 2);
}

#[test]
fn a_refused_batch_leaves_its_offset_to_the_next() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    let mut requests =
        [batch_of(1, 0, 0, &[1, 2]), batch_of(1, 0, 5, &[3]), batch_of(1, 0, 2, &[4]), batch_of(1, 0, 0, &[1, 2])];
    let results = append_all(&mut log, 0, 7, &mut requests);
    assert_eq!(results[0].as_ref().unwrap().first_offset, 0);
    let refused = results[1].as_ref().unwrap_err();
    assert!(matches!(refused, AppendError::Producer(ProducerError::OutOfOrderSequence { last_sequence: 1, .. })));
    assert_eq!(results[2].as_ref().unwrap().first_offset, 2);
    let duplicate = results[3].as_ref().unwrap();
    assert_eq!((duplicate.first_offset, duplicate.last_offset, duplicate.duplicate), (0, 1, true));
    assert_eq!(log.log_end_offset(), 3);
}

#[test]
fn a_request_of_two_batches_is_appended_whole_or_not_at_all() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    let refused = [batch_of(1, 0, 0, &[1]), batch_of(1, 0, 7, &[2])].concat();
    let accepted = [batch_of(1, 0, 0, &[1]), batch_of(1, 0, 1, &[2])].concat();
    assert!(append(&mut log, refused).is_err());
    assert_eq!(log.log_end_offset(), 0);
    assert_eq!(append(&mut log, accepted).unwrap().last_offset, 1);
}

#[test]
fn a_follower_takes_offsets_as_they_come() {
    let (place, _) = Place::simulated();
    let mut leader = place.log();
    append_all(&mut leader, 2, 7, &mut [batch_of(9, 0, 0, &[1, 2]), batch(&[3])]);
    append_all(&mut leader, 4, 7, &mut [batch(&[4])]);
    let request = ReadRequest { offset: 0, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::LogEnd };
    let copied = leader.reader().read(&request, Access::Wait).unwrap().records;
    let (place, _) = Place::simulated();
    let mut follower = place.log();
    let mut scratch = AppendScratch::default();
    let appended = follower.append_as_follower(&mut scratch, &copied, 7).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset), (0, 3));
    assert_eq!(follower.reader().epochs().entries(), leader.reader().epochs().entries());
    assert_eq!(follower.producer_count(), 1);
    let again = follower.append_as_follower(&mut scratch, &copied, 7);
    assert!(matches!(again, Err(AppendError::UnexpectedOffset { offset: 0, log_end_offset: 4 })));
    let mut damaged = copied.to_vec();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let (place, _) = Place::simulated();
    let refused = place.log().append_as_follower(&mut scratch, &damaged, 7);
    assert!(matches!(refused, Err(AppendError::Corrupt { offset: 3 })));
}

#[test]
fn aborted_transactions_are_told_and_hold_readers_back() {
    let (place, _) = Place::simulated();
    let mut log = place.log();
    append(&mut log, batch(&[1])).unwrap();
    let mut data = BatchBuilder::new(0).producer(5, 0, 0).transactional();
    data.append(&RecordData::new(2).value(b"v"));
    append(&mut log, data.build().unwrap()).unwrap();
    append(&mut log, batch(&[3])).unwrap();
    let reader = log.reader();
    assert_eq!((reader.high_watermark(), reader.last_stable_offset()), (3, 1));
    let mut marker = BatchBuilder::new(0).producer(5, 0, -1).transactional().control();
    let key = record_batch::control::ControlRecordType::Abort.key();
    marker.append(&RecordData::new(4).key(&key).value(&record_batch::control::end_txn_marker_value(1)));
    let mut marker = marker.build().unwrap();
    let mut items =
        [AppendItem { records: &mut marker, origin: AppendOrigin::Coordinator, transaction_verified: false }];
    let mut results = Vec::new();
    log.append_as_leader(&mut AppendScratch::default(), &mut items, 0, 7, &mut results);
    assert_eq!(results.remove(0).unwrap().first_offset, 3);
    assert_eq!(reader.last_stable_offset(), 1);
    log.set_high_watermark(4);
    assert_eq!(reader.last_stable_offset(), 4);
    let aborted = reader.aborted_transactions(0, 4).unwrap();
    assert_eq!((aborted.len(), aborted[0].producer_id, aborted[0].first_offset), (1, 5, 1));
    assert_eq!(reader.aborted_transactions(0, 1).unwrap(), []);
    let log = place.reopen_clean(log);
    assert_eq!(log.reader().aborted_transactions(0, 4).unwrap(), aborted);
}

#[test]
fn the_machines_disk_serves_as_the_simulated_one_does() {
    let home = tempfile::tempdir().unwrap();
    let place = Place::new(Arc::new(RealDisk), home.path()).with(|config| {
        config.segment_bytes = 4000;
        config.index_interval_bytes = 300;
    });
    let mut log = place.log();
    for i in 0..100 {
        append_all(&mut log, 0, 7, &mut [batch(&[i, i]), sized_batch(i, 200)]);
    }
    log.set_high_watermark(300);
    assert_eq!(log.flush().unwrap(), 300);
    let reader = log.reader();
    assert_eq!(records(&reader).len(), 300);
    let request = ReadRequest { offset: 299, max_bytes: 1000, min_one_batch: true, bound: Bound::HighWatermark };
    let Records::File(range) = reader.fetch(&request, Access::Wait, 1).unwrap().records else { panic!("in memory") };
    assert_eq!(reader.read(&request, Access::Wait).unwrap().records, bytes_of(&range));
    let log = place.reopen_clean(log);
    assert_eq!(records(&log.reader()).len(), 300);
    let killed = Place { recovery_point: 120, ..place.clone() };
    drop(log);
    let opened = killed.open().unwrap();
    assert_eq!((opened.log.log_end_offset(), opened.report.truncated_bytes), (300, 0));
    assert!(RealDisk.metadata(Path::new(&place.file("leader-epoch-checkpoint"))).unwrap().is_some());
}

#[test]
fn open_files_stay_below_the_limit() {
    let (place, _) = Place::simulated();
    let place = Place { open_max: 3, ..place }.with(|config| config.segment_bytes = 200);
    let mut log = place.log();
    for i in 0..30 {
        append(&mut log, batch(&[i])).unwrap();
    }
    let reader = log.reader();
    assert_eq!(records(&reader).len(), 30);
    let request = ReadRequest { offset: 0, max_bytes: 100, min_one_batch: true, bound: Bound::LogEnd };
    assert!(matches!(reader.read(&request, Access::NoWait), Err(ReadError::WouldBlock)));
    reader.read(&request, Access::Wait).unwrap();
    reader.read(&request, Access::NoWait).unwrap();
}

fn bytes_of(range: &FileRange) -> Vec<u8> {
    let mut bytes = vec![0; range.len_bytes as usize];
    assert_eq!(range.file.read_at(range.position, &mut bytes).unwrap(), bytes.len());
    bytes
}

#[test]
fn what_stays_in_its_file_is_what_a_read_would_give() {
    let (place, _) = Place::simulated();
    let place = place.with(|config| {
        config.segment_bytes = 20_000;
        config.index_interval_bytes = 900;
    });
    let mut log = place.log();
    for i in 0..60 {
        append_all(&mut log, 0, 7, &mut [batch(&[i, i, i]), sized_batch(i, 100 + 37 * i as usize)]);
    }
    let reader = log.reader();
    for high_watermark in [1, 7, 100, 171, 240] {
        log.set_high_watermark(high_watermark);
        for offset in 0..=high_watermark {
            for max_bytes in [1, 100, 1000, 2500, 7000, 1 << 20] {
                for min_one_batch in [false, true] {
                    let request = ReadRequest { offset, max_bytes, min_one_batch, bound: Bound::HighWatermark };
                    let read = reader.fetch(&request, Access::Wait, usize::MAX).unwrap();
                    let Records::Memory(bytes) = read.records else { panic!("in a file") };
                    for file_bytes_min in [1, 1500] {
                        let fetched = reader.fetch(&request, Access::Wait, file_bytes_min).unwrap();
                        assert_eq!((fetched.next_offset, fetched.position), (read.next_offset, read.position));
                        match &fetched.records {
                            Records::Memory(same) => {
                                assert!(*same == bytes && bytes.len().min(max_bytes) < file_bytes_min)
                            }
                            Records::File(range) => {
                                assert!(bytes_of(range) == bytes && bytes.len() >= file_bytes_min);
                            }
                        }
                    }
                    let last =
                        record_batch::whole_batches(&bytes).last().map(|batch| batch.unwrap().header().next_offset());
                    assert_eq!(read.next_offset, last.unwrap_or(offset));
                }
            }
        }
    }
}
