//! Batches of the metadata log: one batch is one entry of the raft log. It holds metadata records, or the control records
//! with which a leader begins its epoch or the quorum changes.

use std::sync::Arc;

use base::{LeaderEpoch, Offset, TimestampMs};
use bytes::Bytes;
use cluster::Record;
use cluster::records::control::{ControlRecord, KRaftVersionRecord, LeaderChangeMessage, VotersRecord};
use cluster::wire::DecodeError;
use record_batch::{BatchBuilder, BatchError, BatchRef, BuildError, RecordData, RecordError};

/// Level of `kraft.version` at which voters are kept in the log.
pub const KRAFT_VERSION_LEVEL: i16 = 1;

/// What a batch says.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// Metadata records, which take effect together.
    Records(Arc<[Record]>),
    /// A leader begins its epoch.
    Leader(LeaderChangeMessage),
    /// The quorum from here on.
    Voters(VotersRecord),
}

/// A batch with its place in the log.
#[derive(Debug, Clone)]
pub struct StoredBatch {
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Epoch of the leader that appended it: the raft term.
    pub epoch: LeaderEpoch,
    /// Time at which the leader appended it.
    pub timestamp_ms: TimestampMs,
    /// What it says.
    pub payload: Payload,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A batch of the metadata log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadBatch {
    /// Not a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Not a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record that this program does not know.
    #[error("the record at offset {offset}: {source}")]
    Content {
        /// Offset of the record.
        offset: Offset,
        /// What is wrong.
        source: DecodeError,
    },
    /// A compressed batch; no controller writes one.
    #[error("the batch at offset {0} is compressed")]
    Compressed(Offset),
    /// A control batch that is not one of a log.
    #[error("the control batch at offset {0} does not belong into the metadata log")]
    Control(Offset),
    /// The CRC of the batch is wrong.
    #[error("the batch at offset {0} has a wrong CRC")]
    Crc(Offset),
}

/// Writes a batch that begins at `base_offset`.
pub fn build(
    base_offset: Offset,
    epoch: LeaderEpoch,
    timestamp_ms: TimestampMs,
    payload: Payload,
) -> Result<StoredBatch, BuildError> {
    let bytes = match &payload {
        Payload::Records(records) => record_batch(base_offset, epoch, timestamp_ms, records)?,
        Payload::Leader(message) => {
            control_batch(base_offset, epoch, timestamp_ms, &[ControlRecord::LeaderChange(message.clone())])?
        }
        Payload::Voters(voters) => control_batch(base_offset, epoch, timestamp_ms, &voter_records(voters.clone()))?,
    };
    let last_offset = base_offset + record_count(&payload) - 1;
    Ok(StoredBatch { base_offset, last_offset, epoch, timestamp_ms, payload, bytes: bytes.into() })
}

/// The control records that state the quorum.
pub fn voter_records(voters: VotersRecord) -> [ControlRecord; 2] {
    let level = KRaftVersionRecord { version: 0, kraft_version: KRAFT_VERSION_LEVEL };
    [ControlRecord::KRaftVersion(level), ControlRecord::KRaftVoters(voters)]
}

fn record_count(payload: &Payload) -> i64 {
    match payload {
        Payload::Records(records) => records.len() as i64,
        Payload::Leader(_) => 1,
        Payload::Voters(_) => 2,
    }
}

/// A batch of metadata records.
pub fn record_batch(
    base_offset: Offset,
    epoch: LeaderEpoch,
    timestamp_ms: TimestampMs,
    records: &[Record],
) -> Result<Vec<u8>, BuildError> {
    let mut batch = BatchBuilder::new(base_offset).partition_leader_epoch(epoch);
    let mut frame = Vec::new();
    for record in records {
        frame.clear();
        record.encode(&mut frame);
        batch.append(&RecordData::new(timestamp_ms).value(&frame));
    }
    batch.build()
}

/// A batch of control records.
pub fn control_batch(
    base_offset: Offset,
    epoch: LeaderEpoch,
    timestamp_ms: TimestampMs,
    records: &[ControlRecord],
) -> Result<Vec<u8>, BuildError> {
    let mut batch = BatchBuilder::new(base_offset).partition_leader_epoch(epoch).control();
    for record in records {
        batch.append(&RecordData::new(timestamp_ms).key(&record.key()).value(&record.value()));
    }
    batch.build()
}

/// Reads the batch at the start of `bytes`, which may go on after it.
pub fn parse(bytes: &Bytes) -> Result<StoredBatch, BadBatch> {
    let batch = BatchRef::parse(bytes)?;
    let header = *batch.header();
    let base_offset = header.base_offset;
    batch.verify_crc().map_err(|_| BadBatch::Crc(base_offset))?;
    let payload = if header.is_control() {
        match control_records(&batch)?.pop() {
            Some(ControlRecord::LeaderChange(message)) => Payload::Leader(message),
            Some(ControlRecord::KRaftVoters(voters)) => Payload::Voters(voters),
            // Kafka writes the level alone when it is raised; it says nothing about the quorum.
            Some(ControlRecord::KRaftVersion(_)) => Payload::Records(Arc::from([])),
            Some(ControlRecord::SnapshotHeader(_) | ControlRecord::SnapshotFooter(_)) | None => {
                return Err(BadBatch::Control(base_offset));
            }
        }
    } else {
        Payload::Records(metadata_records(&batch)?.into())
    };
    Ok(StoredBatch {
        base_offset,
        last_offset: header.last_offset(),
        epoch: header.partition_leader_epoch,
        timestamp_ms: header.max_timestamp,
        payload,
        bytes: bytes.slice(..header.total_len()),
    })
}

/// The metadata records of a batch.
pub fn metadata_records(batch: &BatchRef<'_>) -> Result<Vec<Record>, BadBatch> {
    let records = batch.plain_records().ok_or(BadBatch::Compressed(batch.header().base_offset))?;
    records
        .map(|record| {
            let record = record?;
            let bad = |source| BadBatch::Content { offset: record.offset, source };
            Record::decode(record.value.unwrap_or_default()).map_err(bad)
        })
        .collect()
}

/// The control records of a batch.
pub fn control_records(batch: &BatchRef<'_>) -> Result<Vec<ControlRecord>, BadBatch> {
    let records = batch.plain_records().ok_or(BadBatch::Compressed(batch.header().base_offset))?;
    records
        .map(|record| {
            let record = record?;
            let bad = |source| BadBatch::Content { offset: record.offset, source };
            let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
            ControlRecord::decode(key, value).map_err(bad)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use base::NodeId;
    use cluster::records::{FeatureLevelRecord, NoOpRecord};

    use super::*;

    fn round_trip(payload: Payload) -> StoredBatch {
        let built = build(7, 3, 99, payload.clone()).unwrap();
        let read = parse(&built.bytes).unwrap();
        assert_eq!(read.payload, payload);
        assert_eq!((read.base_offset, read.last_offset), (built.base_offset, built.last_offset));
        assert_eq!((read.epoch, read.timestamp_ms, read.bytes), (3, 99, built.bytes.clone()));
        built
    }

    #[test]
    fn records_keep_their_offsets_and_their_epoch() {
        let level = FeatureLevelRecord { name: "metadata.version".to_owned(), feature_level: 33 };
        let records: [Record; 2] = [level.into(), NoOpRecord {}.into()];
        assert_eq!(round_trip(Payload::Records(records.into())).last_offset, 8);
    }

    #[test]
    fn a_leader_and_a_quorum_are_control_batches() {
        let leader = LeaderChangeMessage { version: 1, leader_id: NodeId(1), ..LeaderChangeMessage::default() };
        assert_eq!(round_trip(Payload::Leader(leader)).last_offset, 7);
        assert_eq!(round_trip(Payload::Voters(VotersRecord::default())).last_offset, 8);
    }

    #[test]
    fn a_damaged_batch_is_refused() {
        let built = build(0, 0, 0, Payload::Records([NoOpRecord {}.into()].into())).unwrap();
        let mut bytes = built.bytes.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(matches!(parse(&bytes.into()), Err(BadBatch::Crc(0))));
    }
}
