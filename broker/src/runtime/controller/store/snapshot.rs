//! Snapshots of the metadata in KRaft's format (KIP-630, KIP-853): a header, the quorum, the records of the image, a
//! footer, in a file that is named by the offset and epoch where it ends. Formatting writes the one of offset 0.

use std::fmt;
use std::io;
use std::path::Path;

use base::{LeaderEpoch, Offset, TimestampMs};
use bytes::Bytes;
use cluster::Record;
use cluster::records::control::{ControlRecord, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord};
use partition_log::disk::{Disk, OpenMode, remove_if_exists, replace_file};
use record_batch::{BuildError, batches};

use super::KeptSnapshot;
use super::batches::{BadBatch, control_batch, control_records, metadata_records, record_batch, voter_records};

/// End of the name of a snapshot's file.
const SUFFIX: &str = ".checkpoint";
/// First bytes of a snapshot that are read for its header, which stands before the quorum.
const HEAD_BYTES_MAX: u64 = 64 << 10;
/// Records in one batch of a snapshot.
const BATCH_RECORDS_MAX: usize = 1_000;

/// Where a snapshot ends: the offset after its last record, and the epoch of that record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// Offset after the last record that the snapshot covers.
    pub end_offset: Offset,
    /// Epoch of that record.
    pub epoch: LeaderEpoch,
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{:010}", self.end_offset, self.epoch)
    }
}

impl SnapshotId {
    /// Name of the snapshot's file.
    pub fn file_name(&self) -> String {
        format!("{self}{SUFFIX}")
    }

    /// The snapshot that a file name means.
    pub fn from_file_name(name: &str) -> Option<SnapshotId> {
        let (end_offset, epoch) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        Some(SnapshotId { end_offset: end_offset.parse().ok()?, epoch: epoch.parse().ok()? })
    }
}

/// What a snapshot holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotContent {
    /// Timestamp of the last record that it covers.
    pub last_timestamp_ms: TimestampMs,
    /// Raft index of the last entry that it covers; none in a snapshot of Kafka or of formatting.
    pub raft_index: Option<u64>,
    /// The quorum, when the snapshot says.
    pub voters: Option<VotersRecord>,
    /// The records of the image.
    pub records: Vec<Record>,
}

/// A snapshot that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadSnapshot {
    /// A batch in it is damaged.
    #[error(transparent)]
    Batch(#[from] BadBatch),
    /// It has no header, or something stands before it.
    #[error("the snapshot does not begin with a header")]
    NoHeader,
    /// It has no footer: its writer was interrupted.
    #[error("the snapshot does not end with a footer")]
    NoFooter,
}

/// Writes a snapshot.
pub fn encode(id: SnapshotId, content: &SnapshotContent, now_ms: TimestampMs) -> Result<Vec<u8>, BuildError> {
    let header = SnapshotHeaderRecord {
        version: 0,
        last_contained_log_timestamp: content.last_timestamp_ms,
        raft_index: content.raft_index.map_or(-1, |index| index as i64),
    };
    let mut head = vec![ControlRecord::SnapshotHeader(header)];
    head.extend(content.voters.clone().into_iter().flat_map(voter_records));
    let mut bytes = control_batch(0, id.epoch, now_ms, &head)?;
    let mut next = head.len() as Offset;
    for records in content.records.chunks(BATCH_RECORDS_MAX) {
        bytes.extend(record_batch(next, id.epoch, now_ms, records)?);
        next += records.len() as Offset;
    }
    let footer = ControlRecord::SnapshotFooter(SnapshotFooterRecord { version: 0 });
    bytes.extend(control_batch(next, id.epoch, now_ms, &[footer])?);
    Ok(bytes)
}

/// Reads a snapshot.
pub fn decode(bytes: &[u8]) -> Result<SnapshotContent, BadSnapshot> {
    let mut content = SnapshotContent::default();
    let (mut header_seen, mut footer_seen) = (false, false);
    for batch in batches(bytes) {
        let batch = batch.map_err(BadBatch::from)?;
        batch.verify_crc().map_err(|_| BadBatch::Crc(batch.header().base_offset))?;
        if footer_seen {
            return Err(BadSnapshot::NoFooter);
        }
        if !batch.header().is_control() {
            content.records.extend(metadata_records(&batch)?);
            continue;
        }
        for record in control_records(&batch)? {
            match record {
                ControlRecord::SnapshotHeader(header) => {
                    header_seen = true;
                    content.last_timestamp_ms = header.last_contained_log_timestamp;
                    content.raft_index = u64::try_from(header.raft_index).ok();
                }
                ControlRecord::KRaftVoters(voters) => content.voters = Some(voters),
                ControlRecord::SnapshotFooter(_) => footer_seen = true,
                ControlRecord::KRaftVersion(_) | ControlRecord::LeaderChange(_) => {}
            }
        }
        if !header_seen {
            return Err(BadSnapshot::NoHeader);
        }
    }
    match (header_seen, footer_seen) {
        (false, _) => Err(BadSnapshot::NoHeader),
        (true, false) => Err(BadSnapshot::NoFooter),
        (true, true) => Ok(content),
    }
}

/// Time of the last record that a snapshot covers, from the header with which it begins; `bytes` may be its first ones.
pub fn last_timestamp_ms(bytes: &[u8]) -> Option<TimestampMs> {
    let head = batches(bytes).next()?.ok()?;
    control_records(&head).ok()?.into_iter().find_map(|record| match record {
        ControlRecord::SnapshotHeader(header) => Some(header.last_contained_log_timestamp),
        _ => None,
    })
}

/// Puts a snapshot on disk.
pub fn write_file(disk: &dyn Disk, directory: &Path, id: SnapshotId, bytes: &Bytes) -> io::Result<()> {
    replace_file(disk, &directory.join(id.file_name()), bytes)
}

/// Removes a snapshot that an older log start or a newer snapshot has made useless.
pub fn remove_file(disk: &dyn Disk, directory: &Path, id: SnapshotId) -> io::Result<()> {
    remove_if_exists(disk, &directory.join(id.file_name())).map(|_| ())
}

/// What retention has to know of a snapshot in the directory.
pub fn describe(disk: &dyn Disk, directory: &Path, id: SnapshotId) -> io::Result<KeptSnapshot> {
    let path = directory.join(id.file_name());
    let file = disk.open(&path, OpenMode::Existing)?;
    let bytes = file.len()?;
    let mut head = vec![0; bytes.min(HEAD_BYTES_MAX) as usize];
    let read = file.read_at(0, &mut head)?;
    head.truncate(read);
    Ok(KeptSnapshot { id, bytes, last_timestamp_ms: last_timestamp_ms(&head) })
}

/// Snapshots in the directory, oldest first.
pub fn list(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<SnapshotId>> {
    let names = disk.list_dir(directory)?;
    let mut found: Vec<SnapshotId> = names.iter().filter_map(|entry| SnapshotId::from_file_name(&entry.name)).collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use cluster::records::NoOpRecord;
    use partition_log::SimDisk;

    use super::*;

    fn content(records: usize) -> SnapshotContent {
        SnapshotContent {
            last_timestamp_ms: 5,
            raft_index: Some(8),
            voters: Some(VotersRecord::default()),
            records: vec![NoOpRecord {}.into(); records],
        }
    }

    #[test]
    fn names_are_kafkas() {
        let id = SnapshotId { end_offset: 123, epoch: 4 };
        assert_eq!(id.file_name(), "00000000000000000123-0000000004.checkpoint");
        assert_eq!(SnapshotId::from_file_name(&id.file_name()), Some(id));
        assert_eq!(SnapshotId::from_file_name("00000000000000000123-0000000004.checkpoint.part"), None);
    }

    #[test]
    fn a_snapshot_survives_whatever_its_size() {
        let id = SnapshotId { end_offset: 9, epoch: 1 };
        for records in [0, 1, 2_500] {
            let bytes = encode(id, &content(records), 77).unwrap();
            assert_eq!(decode(&bytes).unwrap(), content(records));
        }
    }

    #[test]
    fn a_snapshot_that_was_cut_off_is_refused() {
        let id = SnapshotId { end_offset: 9, epoch: 1 };
        let bytes = encode(id, &content(3), 77).unwrap();
        let footer_bytes = 75;
        assert!(matches!(decode(&bytes[..bytes.len() - footer_bytes]), Err(BadSnapshot::NoFooter)));
        assert!(matches!(decode(&bytes[..bytes.len() - 1]), Err(BadSnapshot::Batch(_))));
        assert!(matches!(decode(&[]), Err(BadSnapshot::NoHeader)));
    }

    #[test]
    fn snapshots_are_listed_in_order_and_described_by_size_and_age() {
        let disk = SimDisk::new();
        let directory = Path::new("/log");
        disk.create_dir(directory).unwrap();
        let id = |end_offset| SnapshotId { end_offset, epoch: 1 };
        for end_offset in [9, 0, 5] {
            let bytes: Bytes = encode(id(end_offset), &content(1), 77).unwrap().into();
            write_file(&disk, directory, id(end_offset), &bytes).unwrap();
        }
        write_file(&disk, directory, id(3), &Bytes::from_static(b"x")).unwrap();
        assert_eq!(list(&disk, directory).unwrap(), [0, 3, 5, 9].map(id));
        let described = describe(&disk, directory, id(9)).unwrap();
        assert_eq!(described.bytes, encode(id(9), &content(1), 77).unwrap().len() as u64);
        assert_eq!(described.last_timestamp_ms, Some(5));
        assert_eq!(describe(&disk, directory, id(3)).unwrap().last_timestamp_ms, None);
        remove_file(&disk, directory, id(3)).unwrap();
        remove_file(&disk, directory, id(3)).unwrap();
        assert_eq!(list(&disk, directory).unwrap(), [0, 5, 9].map(id));
    }
}
