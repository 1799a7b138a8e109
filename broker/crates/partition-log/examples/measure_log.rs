//! Times, in processor time of the thread, what a log does on this machine's disk: appends beside a bare loop of writes, tail reads, and opening many
//! logs. `measure_log DIRECTORY`; the directory is left behind.
#![allow(clippy::unwrap_used, reason = "a tool for the hand: it may stop with a panic")]

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::TopicPartition;
use partition_log::{
    Access, AppendItem, AppendOrigin, AppendScratch, Bound, ClosedLog, Disk, FileCache, Log, LogConfig, LogOptions,
    OpenMode, ReadRequest, RealDisk,
};
use record_batch::{BatchBuilder, RecordData};

const TOTAL_BYTES: usize = 512 << 20;
const LOGS: i32 = 10_000;

fn options(home: &Path, files: &Arc<FileCache>, partition: i32, config: &Arc<LogConfig>) -> LogOptions {
    LogOptions {
        partition: TopicPartition::new("t", partition),
        directory: home.join(format!("t-{partition}")),
        topic_id: Some("4L6g3nShT-eMCtK--X86sw".parse().unwrap()),
        config: config.clone(),
        files: files.clone(),
        recovery_point: 0,
        log_start_offset: 0,
        high_watermark: 0,
        clean_shutdown: false,
        now_ms: 1_700_000_000_000,
    }
}

fn batch(bytes: usize, producer_id: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).producer(producer_id, 0, if producer_id < 0 { -1 } else { 0 });
    let value = [b'v'; 100];
    while builder.uncompressed_len() + 110 < bytes {
        builder.append(&RecordData::new(1_700_000_000_000).value(&value));
    }
    builder.build().unwrap()
}

fn report(what: &str, time: Duration, count: usize, bytes: usize) {
    let each = time.as_secs_f64() * 1e6 / count as f64;
    let rate = time.as_secs_f64() * 1e9 / bytes.max(1) as f64;
    println!("{what:<44} {each:>9.2} us each {rate:>7.3} s per GB");
}

fn main() {
    let home = std::env::args().nth(1).unwrap();
    let home = Path::new(&home);
    RealDisk.create_dir(home).unwrap();
    let files = FileCache::new(Arc::new(RealDisk), 1000);
    let config = Arc::new(LogConfig::default());
    let timed = |work: &mut dyn FnMut()| {
        let start = cpu_time();
        work();
        cpu_time() - start
    };
    let mut partition = LOGS;
    for bytes in [200, 1 << 10, 4 << 10, 16 << 10, 64 << 10] {
        let template = batch(bytes, -1);
        let count = (TOTAL_BYTES / template.len()).min(500_000);
        let file = RealDisk.open(&home.join(format!("bare-{bytes}")), OpenMode::Truncate).unwrap();
        let bare = timed(&mut || {
            for i in 0..count {
                file.write_at((i * template.len()) as u64, &mut [IoSlice::new(&template)]).unwrap();
            }
        });
        report(&format!("bare write of {bytes}"), bare, count, count * template.len());
        for group in [1, 8] {
            partition += 1;
            let mut log = Log::open(options(home, &files, partition, &config)).unwrap().log;
            let mut batches = vec![template.clone(); group];
            let (mut scratch, mut results) = (AppendScratch::default(), Vec::new());
            let time = timed(&mut || {
                for _ in 0..count / group {
                    let mut items: Vec<AppendItem<'_>> = batches
                        .iter_mut()
                        .map(|records| AppendItem {
                            records,
                            origin: AppendOrigin::Client,
                            transaction_verified: false,
                        })
                        .collect();
                    log.append_as_leader(&mut scratch, &mut items, 0, 1_700_000_000_000, &mut results);
                    log.set_high_watermark(log.log_end_offset());
                }
            });
            report(&format!("append of {bytes}, {group} at once"), time, count, count * template.len());
            let reader = log.reader();
            for (what, back) in [("tail read of the last batch", 1), ("read 100 batches back", 100)] {
                let records = i64::from(record_batch::BatchRef::parse(&template).unwrap().header().record_count);
                let offset = log.log_end_offset() - back * records;
                let request =
                    ReadRequest { offset, max_bytes: 1 << 20, min_one_batch: true, bound: Bound::HighWatermark };
                let mut read = 0;
                let reads = 20_000;
                let time = timed(&mut || {
                    for _ in 0..reads {
                        read += reader.read(&request, Access::NoWait).unwrap().records.len();
                    }
                });
                if group == 1 {
                    report(what, time, reads, read);
                }
            }
            log.abandon();
        }
    }
    many_logs(home, &files, &config);
}

/// Time that the thread has run, from `/proc`.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Memory of the process, from `/proc`.
fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

fn many_logs(home: &Path, files: &Arc<FileCache>, config: &Arc<LogConfig>) {
    println!("memory before: {} KiB", resident_kib());
    let start = cpu_time();
    let mut logs: Vec<Log> =
        (0..LOGS).map(|partition| Log::open(options(home, files, partition, config)).unwrap().log).collect();
    report("making a log", cpu_time() - start, LOGS as usize, 1);
    println!("memory with {LOGS} logs: {} KiB", resident_kib());
    let (mut scratch, mut results) = (AppendScratch::default(), Vec::new());
    let mut records = batch(1000, 7);
    let start = cpu_time();
    for log in &mut logs {
        let mut items =
            [AppendItem { records: &mut records, origin: AppendOrigin::Client, transaction_verified: false }];
        log.append_as_leader(&mut scratch, &mut items, 0, 1_700_000_000_000, &mut results);
    }
    report("first append of a log", cpu_time() - start, LOGS as usize, 1);
    println!("memory after an append to each: {} KiB", resident_kib());
    logs.iter_mut().for_each(|log| log.release_idle().unwrap());
    println!("memory after their release: {} KiB", resident_kib());
    let ends: Vec<i64> = logs.iter().map(Log::log_end_offset).collect();
    logs.into_iter().for_each(Log::abandon);
    let start = cpu_time();
    let logs: Vec<Log> =
        (0..LOGS).map(|partition| Log::open(options(home, files, partition, config)).unwrap().log).collect();
    report("recovery of a log of one batch", cpu_time() - start, LOGS as usize, 1);
    assert!(logs.iter().map(Log::log_end_offset).eq(ends.iter().copied()));
    logs.into_iter().for_each(Log::abandon);
    let logs = (0..100).map(|partition| Log::open(options(home, files, partition, config)).unwrap().log);
    let start = cpu_time();
    let closed: Vec<ClosedLog> = logs.map(|log| log.close().unwrap()).collect();
    report("orderly close of a log, with its sync", cpu_time() - start, 100, 1);
    let start = cpu_time();
    for (partition, closed) in closed.iter().enumerate() {
        let clean = LogOptions {
            clean_shutdown: true,
            recovery_point: closed.recovery_point,
            ..options(home, files, partition as i32, config)
        };
        Log::open(clean).unwrap();
    }
    report("clean start of a log", cpu_time() - start, 100, 1);
}
