//! Writes a partition `t-0` of many segments below a directory, for Kafka's own tools to read: plain, compressed,
//! idempotent and transactional batches. `write_log DIRECTORY [MEGABYTES [TOPIC_ID]]`.
#![allow(clippy::unwrap_used, reason = "a tool for the hand: it may stop with a panic")]

use std::path::Path;
use std::sync::Arc;

use base::TopicPartition;
use partition_log::{AppendItem, AppendOrigin, AppendScratch, Disk, FileCache, Log, LogConfig, LogOptions, RealDisk};
use record_batch::control::{ControlRecordType, end_txn_marker_value};
use record_batch::{BatchBuilder, Codec, Compression, RecordData};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().unwrap();
    let megabytes: u64 = arguments.next().map_or(4, |text| text.parse().unwrap());
    let topic_id = arguments.next().unwrap_or_else(|| "4L6g3nShT-eMCtK--X86sw".to_owned());
    let home = Path::new(&home);
    RealDisk.create_dir(home).unwrap();
    let mut log = Log::open(LogOptions {
        partition: TopicPartition::new("t", 0),
        directory: home.join("t-0"),
        topic_id: Some(topic_id.parse().unwrap()),
        config: Arc::new(LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() }),
        files: FileCache::new(Arc::new(RealDisk), 10),
        recovery_point: 0,
        log_start_offset: 0,
        high_watermark: 0,
        clean_shutdown: false,
        now_ms: 1_700_000_000_000,
    })
    .unwrap()
    .log;
    let mut scratch = AppendScratch::default();
    let mut results = Vec::new();
    let mut round = 0;
    while log.size_bytes() < megabytes << 20 {
        let mut batches = round_of(round);
        let mut items: Vec<AppendItem<'_>> = batches
            .iter_mut()
            .map(|(origin, records)| AppendItem { records, origin: *origin, transaction_verified: true })
            .collect();
        let epoch = (round / 500) as i32;
        log.append_as_leader(&mut scratch, &mut items, epoch, 1_700_000_000_000, &mut results);
        results.iter().for_each(|result| assert!(result.is_ok(), "{result:?}"));
        log.set_high_watermark(log.log_end_offset());
        round += 1;
    }
    println!("{:?}", log.close().unwrap());
}

/// A plain batch, one of each codec, one of an idempotent producer, and a transaction with its marker.
fn round_of(round: i64) -> Vec<(AppendOrigin, Vec<u8>)> {
    let timestamp = 1_600_000_000_000 + round * 100;
    let fill = |mut builder: BatchBuilder, count: i64| {
        for i in 0..count {
            let value = format!("record {i} of round {round}, with a value that compresses, compresses, compresses");
            let key = format!("key {}", i % 3);
            let record = RecordData::new(timestamp + (i * 7) % 5).key(key.as_bytes()).value(value.as_bytes());
            builder.append(&record);
        }
        builder.build().unwrap()
    };
    let mut batches = vec![(AppendOrigin::Client, fill(BatchBuilder::new(0), 3))];
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let builder = BatchBuilder::new(0).compression(Codec::with_default_level(compression));
        batches.push((AppendOrigin::Client, fill(builder, 5)));
    }
    let sequence = (round * 2) as i32;
    batches.push((AppendOrigin::Client, fill(BatchBuilder::new(0).producer(1000, 0, sequence), 2)));
    let transactional = BatchBuilder::new(0).producer(2000, 0, sequence).transactional();
    batches.push((AppendOrigin::Client, fill(transactional, 2)));
    let kind = if round % 3 == 0 { ControlRecordType::Abort } else { ControlRecordType::Commit };
    let mut marker = BatchBuilder::new(0).producer(2000, 0, -1).transactional().control();
    marker.append(&RecordData::new(timestamp).key(&kind.key()).value(&end_txn_marker_value(0)));
    batches.push((AppendOrigin::Coordinator, marker.build().unwrap()));
    batches
}
