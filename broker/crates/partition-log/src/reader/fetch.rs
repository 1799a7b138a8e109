//! Reading records from an offset on. One read of the file serves the common case: the place where the scan begins is
//! known from memory and lies at most an index interval before the wanted batch.

use std::sync::Arc;

use base::Offset;
use bytes::Bytes;
use record_batch::{BatchHeader, HEADER_LEN, HeaderError};

use super::{Access, Fetched, FileRange, LogOffsets, LogReader, ReadRequest, ReadResult, Records};
use crate::disk::DiskFile;
use crate::errors::{ReadError, StorageError};
use crate::names::FileKind;
use crate::offset_index::OffsetEntries;
use crate::read_buffers::{ReadBuffer, ReadBuffers};
use crate::segment::Segment;
use crate::shared::LogPosition;

/// Bytes read beyond what is wanted, because the scan begins before the wanted batch.
const SCAN_BYTES: usize = 4096 + 1024;
/// Attempts when the owner truncates or removes what is being read.
const ATTEMPTS_MAX: usize = 8;

/// Bytes of a segment in memory.
struct Window {
    bytes: ReadBuffer,
    position: u64,
}

impl Window {
    fn at(&self, position: u64) -> &[u8] {
        let skip = position.saturating_sub(self.position) as usize;
        self.bytes.get(skip..).unwrap_or_default()
    }
}

/// One segment being read.
struct Reading<'a> {
    segment: &'a Arc<Segment>,
    file: Arc<dyn DiskFile>,
    index: Arc<OffsetEntries>,
    /// Bytes that were written when the read began.
    end: u64,
    access: Access,
    directory: &'a std::path::Path,
    buffers: &'a Arc<ReadBuffers>,
}

/// Batches between two positions of a segment; none when the second equals the first.
struct Found {
    source: Source,
    start: u64,
    end: u64,
    first_offset: Offset,
    next_offset: Offset,
    /// One of them has a record, as far as is known.
    has_records: bool,
    /// Holds all of them; `None` where they were left in the file.
    window: Option<Window>,
}

/// Where records come from.
struct Source {
    file: Arc<dyn DiskFile>,
    segment_base_offset: Offset,
}

impl LogReader {
    /// Reads whole batches from an offset on, from one segment, into memory.
    pub fn read(&self, request: &ReadRequest, access: Access) -> Result<ReadResult, ReadError> {
        let fetched = self.fetch(request, access, usize::MAX)?;
        let records = match fetched.records {
            Records::Memory(bytes) => bytes,
            // No range is as long as the least that was asked to stay in its file.
            Records::File(_) => Bytes::new(),
        };
        Ok(ReadResult { records, position: fetched.position, offsets: fetched.offsets })
    }

    /// Finds whole batches from an offset on, in one segment. From `file_bytes_min` bytes on they stay in their file,
    /// and only the headers at both ends are read.
    pub fn fetch(&self, request: &ReadRequest, access: Access, file_bytes_min: usize) -> Result<Fetched, ReadError> {
        self.with_retries(|reader| reader.fetch_once(request, access, file_bytes_min))
    }

    /// The place of the batch that holds an offset, or of the log's end.
    pub fn locate(&self, offset: Offset, access: Access) -> Result<LogPosition, ReadError> {
        let end = self.end_position();
        if offset >= end.offset {
            return if offset == end.offset { Ok(end) } else { Err(self.out_of_range(offset)) };
        }
        let request = ReadRequest { offset, max_bytes: HEADER_LEN, min_one_batch: false, bound: super::Bound::LogEnd };
        let result = self.read(&request, access)?;
        Ok(result.position.unwrap_or_else(|| self.end_position()))
    }

    pub(super) fn out_of_range(&self, offset: Offset) -> ReadError {
        ReadError::OutOfRange {
            offset,
            log_start_offset: self.log_start_offset(),
            log_end_offset: self.log_end_offset(),
        }
    }

    /// Runs a read again when the owner cut the log or removed a segment while it ran.
    pub(super) fn with_retries<T>(&self, read: impl Fn(&LogReader) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let mut attempts_left = ATTEMPTS_MAX;
        loop {
            if self.shared.is_closed() {
                return Err(ReadError::Closed);
            }
            let truncations = self.shared.truncations();
            let outcome = read(self);
            attempts_left -= 1;
            let gone = matches!(&outcome, Err(ReadError::Storage(error))
                if error.source.kind() == std::io::ErrorKind::NotFound);
            if attempts_left == 0 || (!gone && truncations == self.shared.truncations()) {
                return match outcome {
                    Err(_) if self.shared.is_closed() => Err(ReadError::Closed),
                    outcome => outcome,
                };
            }
        }
    }

    fn fetch_once(&self, request: &ReadRequest, access: Access, file_bytes_min: usize) -> Result<Fetched, ReadError> {
        let (offsets, found) = self.find(request, access, file_bytes_min)?;
        let Some(found) = found else {
            let at_end = self.shared.end_position();
            let position = Some(at_end).filter(|at_end| at_end.offset == request.offset);
            return Ok(Fetched { records: Records::default(), next_offset: request.offset, position, offsets });
        };
        let len = found.end - found.start;
        let position = LogPosition {
            offset: found.first_offset,
            segment_base_offset: found.source.segment_base_offset,
            position: found.start,
        };
        let records = match found.window {
            Some(window) => {
                let skip = (found.start - window.position) as usize;
                Records::Memory(Bytes::from_owner(window.bytes).slice(skip..skip + len as usize))
            }
            None => Records::File(FileRange { file: found.source.file, position: found.start, len_bytes: len }),
        };
        Ok(Fetched { records, next_offset: found.next_offset, position: Some(position), offsets })
    }

    fn find(
        &self,
        request: &ReadRequest,
        access: Access,
        file_bytes_min: usize,
    ) -> Result<(LogOffsets, Option<Found>), ReadError> {
        let offsets = self.offsets();
        if request.offset < offsets.log_start_offset || request.offset > offsets.log_end_offset {
            return Err(self.out_of_range(request.offset));
        }
        let bound = self.bound(request.bound);
        if request.offset >= bound {
            return Ok((offsets, None));
        }
        let list = self.shared.segments.load();
        let first = list.floor(request.offset).unwrap_or(0);
        // Compaction may leave many segments in which only a batch without records is left. librdkafka gives up after some
        // answers that hold no record, so that these are passed over where something follows.
        let mut without_records = None;
        for segment in &list.0[first..] {
            if segment.base_offset() >= bound {
                break;
            }
            let Some(reading) = self.begin(segment, access)? else { continue };
            let Some(found) = reading.find(request, bound, file_bytes_min)? else { continue };
            if found.has_records || (without_records.is_none() && found.end < reading.end) {
                return Ok((offsets, Some(found)));
            }
            if found.end == found.start {
                break;
            }
            without_records = Some(found);
        }
        Ok((offsets, without_records))
    }

    fn begin<'a>(&'a self, segment: &'a Arc<Segment>, access: Access) -> Result<Option<Reading<'a>>, ReadError> {
        let end = segment.size_bytes();
        if end == 0 {
            return Ok(None);
        }
        let directory = &self.shared.directory;
        let (file, index) = match access {
            Access::NoWait => (
                segment.open_file_used().ok_or(ReadError::WouldBlock)?,
                segment.index_in_memory().ok_or(ReadError::WouldBlock)?,
            ),
            Access::Wait => {
                let file = segment
                    .file(&self.shared.files, directory)
                    .map_err(|error| StorageError::new("open", &segment.log_path(directory), error))?;
                let index = segment
                    .index(self.shared.files.disk().as_ref(), directory)
                    .map_err(|error| StorageError::new("read", &segment.path(directory, FileKind::Index), error))?;
                (file, index)
            }
        };
        let buffers = self.shared.files.buffers();
        Ok(Some(Reading { segment, file: file.file.clone(), index, end, access, directory, buffers }))
    }
}

impl Reading<'_> {
    fn window(&self, position: u64, len: u64) -> Result<Window, ReadError> {
        let len = len.min(self.end - position) as usize;
        let mut bytes = self.buffers.take(len);
        let read = match self.access {
            Access::Wait => self.file.read_at(position, bytes.as_mut()).map(Some),
            Access::NoWait => self.file.read_at_nowait(position, bytes.as_mut()),
        };
        let failed = |error| StorageError::new("read", &self.segment.log_path(self.directory), error);
        let read = read.map_err(failed)?;
        bytes.truncate(read.ok_or(ReadError::WouldBlock)?);
        Ok(Window { bytes, position })
    }

    fn header(&self, window: &Window, position: u64) -> Result<Option<BatchHeader>, ReadError> {
        match BatchHeader::parse(window.at(position)) {
            Ok(header) => Ok(Some(header)),
            Err(HeaderError::Truncated { .. }) => Ok(None),
            Err(error) => Err(ReadError::Corrupt { offset: self.segment.base_offset(), reason: error.to_string() }),
        }
    }

    /// The batches that are wanted; `None` when the segment has no batch that holds the offset or follows it.
    fn find(&self, request: &ReadRequest, bound: Offset, file_bytes_min: usize) -> Result<Option<Found>, ReadError> {
        let mut position = u64::from(self.index.position_before(self.segment.relative(request.offset)));
        if position >= self.end {
            return Ok(None);
        }
        // As far as is known yet, this is what the answer may hold.
        let stays_in_file = (self.end - position).min(request.max_bytes as u64) >= file_bytes_min as u64;
        let scanned = if stays_in_file { SCAN_BYTES } else { request.max_bytes.saturating_add(SCAN_BYTES) } as u64;
        let mut window = self.window(position, scanned)?;
        // Skip the batches before the wanted one.
        let first = loop {
            match self.header(&window, position)? {
                Some(header) if header.last_offset() >= request.offset => break header,
                Some(header) => position += header.total_len() as u64,
                None if window.position == position => return Ok(None),
                None => window = self.window(position, scanned)?,
            }
            if position >= self.end {
                return Ok(None);
            }
        };
        let first_len = first.total_len() as u64;
        let max_bytes = request.max_bytes as u64;
        let too_large = first_len > max_bytes && !request.min_one_batch;
        let mut found = Found {
            source: Source { file: self.file.clone(), segment_base_offset: self.segment.base_offset() },
            start: position,
            end: position,
            first_offset: first.base_offset,
            next_offset: request.offset,
            has_records: false,
            window: None,
        };
        if first.base_offset >= bound || position + first_len > self.end || too_large {
            found.window = Some(window);
            return Ok(Some(found));
        }
        let limit = position + max_bytes.max(first_len).min(self.end - position);
        if stays_in_file {
            let place = self.last_known_place(&found, limit, bound);
            found.extend(self, (&mut window, true), place, limit, bound)?;
            if found.end - found.start >= file_bytes_min as u64 {
                found.has_records = true;
                return Ok(Some(found));
            }
        }
        // What was skipped may leave less than is wanted in the window.
        if (window.at(position).len() as u64) < limit - position || window.position > position {
            window = self.window(position, limit - position)?;
        }
        found.extend(self, (&mut window, false), position, limit, bound)?;
        found.window = Some(window);
        Ok(Some(found))
    }

    /// A place where a batch begins, as near before the end of what is wanted as the index knows.
    fn last_known_place(&self, found: &Found, limit: u64, bound: Offset) -> u64 {
        let by_size = limit.saturating_sub(HEADER_LEN as u64).try_into().unwrap_or(u32::MAX);
        let by_offset = self.index.position_before(self.segment.relative(bound - 1));
        u64::from(self.index.position_at_or_before(by_size).min(by_offset)).max(found.start)
    }
}

impl Found {
    /// Moves the end from `place`, where a batch begins, behind the last whole batch below the bound and the limit.
    /// What is not in the window is read anew where `scans` says so.
    fn extend(
        &mut self,
        reading: &Reading<'_>,
        (window, scans): (&mut Window, bool),
        place: u64,
        limit: u64,
        bound: Offset,
    ) -> Result<(), ReadError> {
        self.end = place;
        while self.end + HEADER_LEN as u64 <= limit {
            match reading.header(window, self.end)? {
                Some(header) if header.base_offset < bound && self.end + header.total_len() as u64 <= limit => {
                    self.end += header.total_len() as u64;
                    self.has_records |= header.record_count > 0;
                    self.next_offset = header.next_offset();
                }
                Some(header) => {
                    self.next_offset = header.base_offset;
                    break;
                }
                None if scans && window.position != self.end => {
                    *window = reading.window(self.end, SCAN_BYTES as u64)?;
                }
                None => break,
            }
        }
        Ok(())
    }
}
