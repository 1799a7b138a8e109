//! Reading records from an offset on. One read of the file serves the common case: the place where the scan begins is
//! known from memory and lies at most an index interval before the wanted batch.

use std::sync::Arc;

use base::Offset;
use bytes::Bytes;
use record_batch::{BatchHeader, HEADER_LEN, HeaderError};

use super::{Access, FileSlice, LogOffsets, LogReader, ReadRequest, ReadResult};
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

enum Found {
    /// The segment has no batch that holds the offset or follows it.
    NotHere,
    /// Batches between two positions; none when the second equals the first.
    Batches { window: Window, start: u64, end: u64, first_offset: Offset },
}

impl LogReader {
    /// Reads whole batches from an offset on, from one segment.
    pub fn read(&self, request: &ReadRequest, access: Access) -> Result<ReadResult, ReadError> {
        self.with_retries(|reader| reader.read_once(request, access))
    }

    /// As `read`, but gives the part of the file instead of its bytes. `None` when there is nothing to read.
    pub fn read_slice(&self, request: &ReadRequest, access: Access) -> Result<Option<FileSlice>, ReadError> {
        self.with_retries(|reader| {
            let (offsets, found) = reader.find(request, access)?;
            Ok(found.and_then(|(reading, start, window_end, first_offset, _)| {
                let len_bytes = window_end - start;
                let position = LogPosition {
                    offset: first_offset,
                    segment_base_offset: reading.segment_base_offset,
                    position: start,
                };
                (len_bytes > 0).then_some(FileSlice { file: reading.file, position, len_bytes, offsets })
            }))
        })
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

    fn read_once(&self, request: &ReadRequest, access: Access) -> Result<ReadResult, ReadError> {
        let (offsets, found) = self.find(request, access)?;
        let Some((reading, start, end, first_offset, window)) = found else {
            let at_end = self.shared.end_position();
            let position = Some(at_end).filter(|at_end| at_end.offset == request.offset);
            return Ok(ReadResult { records: Bytes::new(), position, offsets });
        };
        let skip = (start - window.position) as usize;
        let records = Bytes::from_owner(window.bytes).slice(skip..skip + (end - start) as usize);
        let position =
            LogPosition { offset: first_offset, segment_base_offset: reading.segment_base_offset, position: start };
        Ok(ReadResult { records, position: Some(position), offsets })
    }

    #[allow(clippy::type_complexity, reason = "the pieces go straight into the two results above")]
    fn find(
        &self,
        request: &ReadRequest,
        access: Access,
    ) -> Result<(LogOffsets, Option<(Source, u64, u64, Offset, Window)>), ReadError> {
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
        for segment in &list.0[first..] {
            if segment.base_offset() >= bound {
                break;
            }
            let Some(reading) = self.begin(segment, access)? else { continue };
            if let Found::Batches { window, start, end, first_offset } = reading.find(request, bound)? {
                let source = Source { file: reading.file, segment_base_offset: segment.base_offset() };
                return Ok((offsets, Some((source, start, end, first_offset, window))));
            }
        }
        Ok((offsets, None))
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

/// Where records come from.
struct Source {
    file: Arc<dyn DiskFile>,
    segment_base_offset: Offset,
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

    fn find(&self, request: &ReadRequest, bound: Offset) -> Result<Found, ReadError> {
        let mut position = u64::from(self.index.position_before(self.segment.relative(request.offset)));
        if position >= self.end {
            return Ok(Found::NotHere);
        }
        let wanted = request.max_bytes.saturating_add(SCAN_BYTES) as u64;
        let mut window = self.window(position, wanted)?;
        // Skip the batches before the wanted one.
        let first = loop {
            match self.header(&window, position)? {
                Some(header) if header.last_offset() >= request.offset => break header,
                Some(header) => position += header.total_len() as u64,
                None if window.position == position => return Ok(Found::NotHere),
                None => window = self.window(position, wanted)?,
            }
            if position >= self.end {
                return Ok(Found::NotHere);
            }
        };
        let first_len = first.total_len() as u64;
        if first.base_offset >= bound || position + first_len > self.end {
            return Ok(Found::Batches { window, start: position, end: position, first_offset: first.base_offset });
        }
        let max_bytes = request.max_bytes as u64;
        if first_len > max_bytes && !request.min_one_batch {
            return Ok(Found::Batches { window, start: position, end: position, first_offset: first.base_offset });
        }
        // What was skipped may leave less than is wanted in the window.
        let needed = max_bytes.max(first_len).min(self.end - position);
        if (window.at(position).len() as u64) < needed {
            window = self.window(position, needed)?;
        }
        let end = self.last_end(&window, position, position + needed, bound)?;
        Ok(Found::Batches { window, start: position, end, first_offset: first.base_offset })
    }

    /// The end of the last whole batch below the bound that fits.
    fn last_end(&self, window: &Window, start: u64, limit: u64, bound: Offset) -> Result<u64, ReadError> {
        let mut end = start;
        while end < limit {
            match self.header(window, end)? {
                Some(header) if header.base_offset < bound && end + header.total_len() as u64 <= limit => {
                    end += header.total_len() as u64;
                }
                Some(_) | None => break,
            }
        }
        Ok(end)
    }
}
