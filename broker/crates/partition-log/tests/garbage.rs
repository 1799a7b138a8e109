//! Files with any content are refused or repaired; nothing panics and nothing is read beyond them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod common;

use std::io::IoSlice;

use common::*;
use partition_log::OpenMode;
use partition_log::formats::{
    clean_shutdown, epoch_checkpoint, meta_properties, offset_checkpoint, partition_metadata,
};
use proptest::prelude::*;

const SUFFIXES: [&str; 6] = [".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.swap"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_of_a_small_file_is_read_or_refused(text in "[0-9a-z .:=\n-]{0,60}") {
        let _ = clean_shutdown::decode(&text);
        let _ = epoch_checkpoint::decode(&text);
        let _ = meta_properties::decode(&text);
        let _ = offset_checkpoint::decode(&text);
        let _ = partition_metadata::decode(&text);
    }

    /// Flips, cuts and overwrites in the files of a closed log.
    #[test]
    fn a_log_with_damaged_files_opens_or_says_why(
        suffix in 0..SUFFIXES.len(),
        which in 0usize..8,
        at in 0.0f64..1.0,
        bytes in prop::collection::vec(any::<u8>(), 1..70),
        cut in any::<bool>(),
        clean in any::<bool>(),
    ) {
        let (place, disk) = Place::simulated();
        let place = place.with(|config| {
            config.segment_bytes = 900;
            config.index_interval_bytes = 100;
        });
        let mut log = place.log();
        for i in 0..30 {
            append(&mut log, batch_of(1, 0, i * 2, &[i64::from(i), 5])).unwrap();
        }
        log.close().unwrap();
        let names: Vec<String> = partition_log::Disk::list_dir(&disk, &place.directory())
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .filter(|name| name.ends_with(SUFFIXES[suffix]))
            .collect();
        let name = names.get(which % names.len().max(1)).cloned().unwrap_or(format!("{:020}{}", 3, SUFFIXES[suffix]));
        let file = place.disk.open(&place.file(&name), OpenMode::Create).unwrap();
        let position = (file.len().unwrap() as f64 * at) as u64;
        if cut {
            file.set_len(position).unwrap();
        }
        file.write_at(position, &mut [IoSlice::new(&bytes)]).unwrap();
        for recovery_point in [0, 60] {
            let place = Place { clean, recovery_point, ..place.on(disk.after_kill()) };
            if let Ok(opened) = place.open() {
                let mut log = opened.log;
                let reader = log.reader();
                let _ = reader.offset_for_timestamp(20);
                let _ = reader.max_timestamp();
                let _ = reader.aborted_transactions(0, 60);
                let request = partition_log::ReadRequest {
                    offset: reader.log_start_offset(),
                    max_bytes: 500,
                    min_one_batch: true,
                    bound: partition_log::Bound::LogEnd,
                };
                let _ = reader.read(&request, partition_log::Access::Wait);
                let end = log.log_end_offset();
                if let Ok(appended) = append(&mut log, batch(&[7])) {
                    prop_assert_eq!(appended.first_offset, end);
                }
                let _ = log.truncate_to(3, 7);
                let _ = log.close();
            }
        }
    }
}
