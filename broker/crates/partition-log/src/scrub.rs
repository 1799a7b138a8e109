//! A look at what lies on the disk: the batches of closed and synced segments are read and checked, piece by piece, so that
//! damage is known before somebody needs the records. Nothing is changed, and a segment that leaves the log meanwhile is
//! no finding.

use std::path::PathBuf;
use std::sync::Arc;

use base::Offset;

use crate::disk::{DiskFile, OpenMode};
use crate::errors::{IoContext, StorageError};
use crate::reader::LogReader;
use crate::scan::{Depth, ScanError, Scanner};
use crate::segment::Segment;
use crate::shared::Shared;

/// Where a scrub of a log goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrubPlace {
    /// Segments that begin before it are done.
    pub base_offset: Offset,
    /// Byte of that segment, which begins a batch.
    position: u64,
    /// First offset that may stand there.
    offset: Offset,
    /// Count of truncations when it was noted: a position is true of one life of a segment.
    truncations: u64,
}

impl ScrubPlace {
    /// The first segment that begins at `base_offset` or later.
    pub fn at(base_offset: Offset) -> Self {
        ScrubPlace { base_offset, ..ScrubPlace::default() }
    }
}

/// A batch that cannot be read, or the rest of a segment where it is not known where the next batch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubDamage {
    /// The segment's file.
    pub path: PathBuf,
    /// Where the batch begins, in bytes.
    pub position: u64,
    /// First offset that cannot be read.
    pub offset: Offset,
    /// What is wrong.
    pub reason: String,
}

/// What a piece of work found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrubbed {
    /// Bytes read.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<ScrubDamage>,
    /// Where to go on.
    pub next: ScrubPlace,
}

/// A segment to be looked at, or the rest of one.
#[derive(Debug)]
pub struct ScrubPart {
    shared: Arc<Shared>,
    segment: Arc<Segment>,
    /// Where the next segment begins.
    end_offset: Offset,
    place: ScrubPlace,
}

impl LogReader {
    /// What is to be looked at from a place on; `None` when all closed segments below the recovery point are done. Does not
    /// touch the disk.
    pub fn scrub_part(&self, from: &ScrubPlace) -> Option<ScrubPart> {
        let shared = self.shared().clone();
        let truncations = shared.truncations();
        let list = shared.segments.load_full();
        let at = list.0.partition_point(|segment| segment.base_offset() < from.base_offset);
        let (segment, next) = (list.0.get(at)?.clone(), list.0.get(at + 1)?);
        if shared.is_closed() || next.base_offset() > shared.recovery_point() {
            return None;
        }
        let (base_offset, end_offset) = (segment.base_offset(), next.base_offset());
        let same = from.base_offset == base_offset && from.truncations == truncations;
        let start = ScrubPlace { base_offset, position: 0, offset: base_offset, truncations };
        Some(ScrubPart { shared, segment, end_offset, place: if same && from.position > 0 { *from } else { start } })
    }
}

impl ScrubPart {
    /// Reads and checks at least one batch and about `bytes_max` bytes at most. Waits for the disk. The file is opened for
    /// this and closed again, so that nothing that is in use has to make room.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn run(self, bytes_max: u64) -> Result<Scrubbed, StorageError> {
        let path = self.segment.log_path(&self.shared.directory);
        let done = ScrubPlace::at(self.end_offset);
        let file = match self.shared.files.disk().open(&path, OpenMode::Existing) {
            Ok(file) => file,
            // Retention or compaction has taken it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Scrubbed { bytes: 0, damage: Vec::new(), next: done });
            }
            Err(error) => return Err(error).context("open", &path),
        };
        let begin = self.place.position;
        let (mut walked, damage) = self.walk(&file, bytes_max);
        if !self.is_still_there() {
            // The segment was cut or replaced: what was read may be of other files of the same name.
            return Ok(Scrubbed { bytes: walked.position.saturating_sub(begin), damage: Vec::new(), next: done });
        }
        let bytes = walked.position.saturating_sub(begin);
        if walked.position >= self.segment.size_bytes() {
            walked = done;
        }
        Ok(Scrubbed { bytes, damage, next: walked })
    }

    fn is_still_there(&self) -> bool {
        let same = self.shared.truncations() == self.place.truncations && !self.shared.is_closed();
        // Compaction renames files before the list of segments says so.
        same && !self.segment.is_retired() && self.shared.segments.load().contains(&self.segment)
    }

    fn walk(&self, file: &Arc<dyn DiskFile>, bytes_max: u64) -> (ScrubPlace, Vec<ScrubDamage>) {
        let end = self.segment.size_bytes();
        let mut place = self.place;
        let mut damage = Vec::new();
        let stop = place.position.saturating_add(bytes_max);
        let mut scanner = Scanner::new(file.clone(), place.position, end);
        while place.position < end && place.position < stop {
            let reason = match scanner.next(Depth::Checked) {
                Ok(Some(batch)) if self.fits(&place, &batch.header) => {
                    place.offset = batch.header.next_offset();
                    place.position = batch.position + batch.header.total_len() as u64;
                    continue;
                }
                Ok(Some(batch)) => format!("offset {} cannot be there", batch.header.base_offset),
                Ok(None) => break,
                Err(ScanError::Io(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            let path = self.segment.log_path(&self.shared.directory);
            damage.push(ScrubDamage { path, position: place.position, offset: place.offset, reason });
            // A header that makes sense tells where the next batch begins.
            scanner = Scanner::new(file.clone(), place.position, end);
            match scanner.next(Depth::Headers) {
                Ok(Some(batch)) if self.fits(&place, &batch.header) => {
                    place.offset = batch.header.next_offset();
                    place.position = batch.position + batch.header.total_len() as u64;
                }
                Ok(_) | Err(_) => place.position = end,
            }
        }
        (place, damage)
    }

    fn fits(&self, place: &ScrubPlace, header: &record_batch::BatchHeader) -> bool {
        header.base_offset >= place.offset && header.last_offset() < self.end_offset
    }
}
