//! The snapshot with which a metadata log begins: the levels of the features, between a snapshot's header and footer
//! (Kafka: BootstrapMetadata, written by `kafka-storage format` as the snapshot of offset 0).

use base::TimestampMs;
use cluster::Record;
use cluster::records::FeatureLevelRecord;
use cluster::records::control::{ControlRecord, SnapshotFooterRecord, SnapshotHeaderRecord};
use record_batch::{BatchBuilder, BuildError, RecordData};

/// Name of the snapshot that ends before offset 0, at epoch 0.
pub(super) const FILE: &str = "00000000000000000000-0000000000.checkpoint";

/// Content of the file.
pub(super) fn snapshot(features: &[(&str, i16)], now_ms: TimestampMs) -> Result<Vec<u8>, BuildError> {
    let header = SnapshotHeaderRecord { version: 0, last_contained_log_timestamp: now_ms };
    let mut content = control_batch(0, &ControlRecord::SnapshotHeader(header), now_ms)?;
    let mut batch = BatchBuilder::new(1).partition_leader_epoch(0);
    for (name, level) in features {
        let mut frame = Vec::new();
        Record::FeatureLevel(FeatureLevelRecord { name: (*name).to_owned(), feature_level: *level }).encode(&mut frame);
        batch.append(&RecordData::new(now_ms).value(&frame));
    }
    let end = batch.next_offset();
    if batch.record_count() > 0 {
        content.extend(batch.build()?);
    }
    let footer = ControlRecord::SnapshotFooter(SnapshotFooterRecord { version: 0 });
    content.extend(control_batch(end, &footer, now_ms)?);
    Ok(content)
}

fn control_batch(offset: i64, record: &ControlRecord, now_ms: TimestampMs) -> Result<Vec<u8>, BuildError> {
    let mut batch = BatchBuilder::new(offset).partition_leader_epoch(0).control();
    batch.append(&RecordData::new(now_ms).key(&record.key()).value(&record.value()));
    batch.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_has_the_size_of_kafkas() {
        // `kafka-storage format` of 4.4.0 wrote 75 bytes of header-or-footer overhead and a metadata.version record of 23.
        let content = snapshot(&[("metadata.version", 33)], 0).unwrap();
        let control_overhead = 61 + 7 + 4;
        let (header, footer, feature) = (control_overhead + 11, control_overhead + 3, 61 + 7 + 23);
        assert_eq!(content.len(), header + feature + footer);
    }
}
