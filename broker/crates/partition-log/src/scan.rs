//! Walk over the batches of a segment file, in large reads and with memory bounded by the largest batch.

use std::sync::Arc;

use record_batch::{BatchError, BatchHeader, BatchRef, HEADER_LEN};
use thiserror::Error;

use crate::disk::DiskFile;

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Why a walk stopped before the end.
#[derive(Debug, Error)]
pub(crate) enum ScanError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file ends inside a batch.
    #[error("the file ends inside a batch")]
    Torn { position: u64 },
    /// What stands there is no batch, or not the batch that was written.
    #[error("{reason}")]
    Bad { position: u64, reason: String },
}

/// How much of each batch is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Headers, and the content of control batches.
    Headers,
    /// Whole batches, and their CRC.
    Checked,
    /// Whole batches; their CRC was checked before.
    Whole,
}

/// A batch, or its header where that was all that was asked for.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    /// Where it begins in the file.
    pub position: u64,
    /// Its header.
    pub header: BatchHeader,
    /// Present unless the walk is over headers.
    pub batch: Option<BatchRef<'a>>,
}

/// A walk in progress.
#[derive(Debug)]
pub(crate) struct Scanner {
    file: Arc<dyn DiskFile>,
    /// Where the next batch begins.
    position: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    buffer_at: u64,
}

impl Scanner {
    /// A walk over the batches between two positions, of which the first begins a batch.
    pub(crate) fn new(file: Arc<dyn DiskFile>, position: u64, end: u64) -> Self {
        Scanner { file, position, end, buffer: Vec::new(), buffer_at: position }
    }

    /// The file that it walks over.
    pub(crate) fn file(&self) -> &dyn DiskFile {
        self.file.as_ref()
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    fn held(&self) -> &[u8] {
        let skip = (self.position - self.buffer_at) as usize;
        self.buffer.get(skip..).unwrap_or_default()
    }

    /// Has at least `need` bytes at the position in the buffer, or all up to the end.
    fn fill(&mut self, need: usize) -> std::io::Result<()> {
        let left = self.end - self.position;
        let need = (need as u64).min(left);
        if self.held().len() as u64 >= need {
            return Ok(());
        }
        let wanted = need.max((CHUNK_BYTES as u64).min(left)) as usize;
        self.buffer.resize(wanted, 0);
        self.buffer_at = self.position;
        let read = self.file.read_at(self.position, &mut self.buffer)?;
        self.buffer.truncate(read);
        Ok(())
    }

    /// The next batch; `None` at the end. After an error the walk must not go on.
    pub(crate) fn next(&mut self, depth: Depth) -> Result<Option<Scanned<'_>>, ScanError> {
        let position = self.position;
        if position >= self.end {
            return Ok(None);
        }
        self.fill(HEADER_LEN)?;
        let header = BatchHeader::parse(self.held()).map_err(|error| header_error(position, error))?;
        let len = header.total_len() as u64;
        if position + len > self.end {
            return Err(ScanError::Torn { position });
        }
        if header.last_offset_delta < 0 || header.base_offset < 0 {
            return Err(ScanError::Bad { position, reason: "the batch has no valid offsets".into() });
        }
        self.position = position + len;
        if depth == Depth::Headers && !header.is_control() {
            return Ok(Some(Scanned { position, header, batch: None }));
        }
        self.position = position;
        self.fill(len as usize)?;
        self.position = position + len;
        let skip = (position - self.buffer_at) as usize;
        let bytes = self.buffer.get(skip..).unwrap_or_default();
        let batch = BatchRef::parse(bytes).map_err(|error| match error {
            BatchError::Torn { .. } => ScanError::Torn { position },
            BatchError::Invalid { source, .. } => ScanError::Bad { position, reason: source.to_string() },
        })?;
        if depth == Depth::Checked {
            batch.verify_crc().map_err(|error| ScanError::Bad { position, reason: error.to_string() })?;
        }
        Ok(Some(Scanned { position, header, batch: Some(batch) }))
    }
}

fn header_error(position: u64, error: record_batch::HeaderError) -> ScanError {
    match error {
        record_batch::HeaderError::Truncated { .. } => ScanError::Torn { position },
        other => ScanError::Bad { position, reason: other.to_string() },
    }
}
