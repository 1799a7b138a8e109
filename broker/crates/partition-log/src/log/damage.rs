//! What is said of bytes that are no batch: damage of the disk, or records of a time before the present format.

use std::sync::Arc;

use base::Offset;

use super::Log;
use super::recover::read_error;
use crate::disk::DiskFile;
use crate::errors::OpenError;
use crate::names::FileKind;
use crate::scan::{ScanError, Scanner};
use crate::segment::Segment;

/// Bytes before the part that the size of an old record counts: offset and size.
const OLD_SIZE_END: usize = 12;
/// Where the part begins that the CRC of an old record covers.
const OLD_CRC_END: usize = 16;
/// Fewest bytes after the size: CRC, magic, attributes and two lengths.
const OLD_SIZE_MIN: usize = 14;

impl Log {
    /// The error that stands for what a walk met at its position; `offset` is the first that it has not seen.
    pub(super) fn damage(
        &self,
        segment: &Arc<Segment>,
        scanner: &Scanner,
        offset: Offset,
        error: ScanError,
    ) -> OpenError {
        let path = segment.log_path(&self.shared.directory);
        let (position, reason) = match error {
            ScanError::Io(error) => return read_error(segment, &self.shared.directory, error).into(),
            ScanError::Torn { position } => (position, error.to_string()),
            ScanError::Bad { position, reason } => (position, reason),
        };
        match old_format(scanner.file(), position, scanner.end()) {
            Some(magic) => OpenError::OldFormat { path, position, magic },
            None => OpenError::Corrupt { path, position, offset, reason },
        }
    }

    /// Records between two segments are gone although they were synced.
    pub(super) fn hole(&self, before: &Segment, end: Offset, next: Offset) -> OpenError {
        OpenError::Corrupt {
            path: before.path(&self.shared.directory, FileKind::Log),
            position: before.size_bytes(),
            offset: end,
            reason: format!("the segment ends at offset {end} and the next begins at {next}"),
        }
    }
}

/// The number of the message format when a whole record of format 0 or 1 stands there, which its own CRC tells
/// (Kafka: LegacyRecord).
fn old_format(file: &dyn DiskFile, position: u64, end: u64) -> Option<i8> {
    let mut head = [0; OLD_CRC_END + 1];
    if file.read_at(position, &mut head).ok()? < head.len() {
        return None;
    }
    let [.., s0, s1, s2, s3, c0, c1, c2, c3, magic] = head;
    let size = usize::try_from(i32::from_be_bytes([s0, s1, s2, s3])).ok().filter(|size| *size >= OLD_SIZE_MIN)?;
    let whole = (position + (OLD_SIZE_END + size) as u64) <= end;
    if !whole || !matches!(magic, 0 | 1) {
        return None;
    }
    let mut covered = vec![0; size - (OLD_CRC_END - OLD_SIZE_END)];
    file.read_at(position + OLD_CRC_END as u64, &mut covered).ok()?;
    (crc32(&covered) == u32::from_be_bytes([c0, c1, c2, c3])).then_some(magic as i8)
}

/// The CRC of zip files, which old records have; seldom enough to be made bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_sum_is_that_of_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
