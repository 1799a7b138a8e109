//! The snapshot with which a metadata log begins: the levels of the features (Kafka: BootstrapMetadata, written by
//! `kafka-storage format` as the snapshot of offset 0).

use base::TimestampMs;
use cluster::records::FeatureLevelRecord;
use record_batch::BuildError;

use crate::runtime::controller::store::snapshot::{SnapshotContent, SnapshotId, encode};

/// The snapshot that ends before offset 0, at epoch 0.
const BOOTSTRAP: SnapshotId = SnapshotId { end_offset: 0, epoch: 0 };

/// Name of its file.
pub(super) fn file_name() -> String {
    BOOTSTRAP.file_name()
}

/// Content of the file.
pub(super) fn snapshot(features: &[(&str, i16)], now_ms: TimestampMs) -> Result<Vec<u8>, BuildError> {
    let level = |(name, feature_level): &(&str, i16)| {
        FeatureLevelRecord { name: (*name).to_owned(), feature_level: *feature_level }.into()
    };
    let content = SnapshotContent {
        last_timestamp_ms: now_ms,
        records: features.iter().map(level).collect(),
        ..SnapshotContent::default()
    };
    encode(BOOTSTRAP, &content, now_ms)
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
