//! Views of whole batches in a buffer, and the walk over batches that stand one after another, as in segment files,
//! Produce requests and Fetch answers.

use thiserror::Error;

use crate::header::{ATTRIBUTES_AT, BatchHeader, HEADER_LEN, HeaderError};
use crate::record::Records;

/// Why a walk over batches stopped. `position` is where the batch begins, in bytes from the start of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The buffer ends before the batch does: a torn write, or an answer cut at its size limit.
    #[error("batch at {position} is torn: it needs {need} bytes and {have} are there")]
    Torn {
        /// Where the batch begins.
        position: usize,
        /// Bytes the batch has, as far as it can be told.
        need: usize,
        /// Bytes from `position` to the end.
        have: usize,
    },
    /// What stands at `position` is no batch.
    #[error("no batch at {position}: {source}")]
    Invalid {
        /// Where the bytes begin.
        position: usize,
        /// What is wrong with the header.
        source: HeaderError,
    },
}

/// The stored CRC is not that of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("record batch is corrupt (stored crc = {stored}, computed crc = {computed})")]
pub struct CrcMismatch {
    /// The CRC field.
    pub stored: u32,
    /// CRC-32C of the bytes it covers.
    pub computed: u32,
}

/// One whole batch: its header, read once, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRef<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> BatchRef<'a> {
    /// The batch at the start of `bytes`, which may go on after it. The CRC is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<BatchRef<'a>, BatchError> {
        parse_at(bytes, 0)
    }

    /// The header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes after the header: records, or their compressed form.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// CRC-32C of the bytes that the CRC field covers.
    pub fn computed_crc(&self) -> u32 {
        crc32c::crc32c(&self.bytes[ATTRIBUTES_AT..])
    }

    /// Compares the CRC field with the bytes.
    pub fn verify_crc(&self) -> Result<(), CrcMismatch> {
        let computed = self.computed_crc();
        let stored = self.header.crc;
        if stored == computed { Ok(()) } else { Err(CrcMismatch { stored, computed }) }
    }

    /// The records, if the payload is not compressed; `None` if it is.
    pub fn plain_records(&self) -> Option<Records<'a>> {
        match self.header.compression() {
            Ok(crate::Compression::None) => Some(Records::new(&self.header, self.payload())),
            _ => None,
        }
    }
}

fn parse_at(bytes: &[u8], position: usize) -> Result<BatchRef<'_>, BatchError> {
    let rest = bytes.get(position..).unwrap_or_default();
    let have = rest.len();
    let header = BatchHeader::parse(rest).map_err(|source| match source {
        HeaderError::Truncated { need, have } => BatchError::Torn { position, need, have },
        source => BatchError::Invalid { position, source },
    })?;
    let need = header.total_len();
    match rest.get(..need) {
        Some(bytes) => Ok(BatchRef { header, bytes }),
        None => Err(BatchError::Torn { position, need, have }),
    }
}

/// Walk over the batches in a buffer. Ends after its first error.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    torn_end_allowed: bool,
    failed: bool,
}

/// All batches of `bytes`; a torn or invalid one is an error, after which the walk ends.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { bytes, position: 0, torn_end_allowed: false, failed: false }
}

/// The whole batches of `bytes`; a torn one at the end is left out, as readers of Fetch answers do. Bytes that are no
/// batch are still an error.
pub fn whole_batches(bytes: &[u8]) -> Batches<'_> {
    Batches { bytes, position: 0, torn_end_allowed: true, failed: false }
}

impl Batches<'_> {
    /// Bytes of the batches yielded so far: where the next one begins.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchRef<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.position >= self.bytes.len() {
            return None;
        }
        match parse_at(self.bytes, self.position) {
            Ok(batch) => {
                self.position += batch.bytes.len();
                Some(Ok(batch))
            }
            Err(error) => {
                self.failed = true;
                match error {
                    BatchError::Torn { .. } if self.torn_end_allowed => None,
                    error => Some(Err(error)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, RecordData};

    fn two() -> Vec<u8> {
        let mut bytes = Vec::new();
        for base_offset in [10, 12] {
            let mut builder = BatchBuilder::new(base_offset);
            builder.append(&RecordData::new(5).key(b"k").value(b"v"));
            builder.append(&RecordData::new(6).value(b"w"));
            bytes.extend_from_slice(&builder.build().unwrap());
        }
        bytes
    }

    #[test]
    fn batches_are_walked_to_the_end() {
        let bytes = two();
        let found: Vec<_> = batches(&bytes).map(|b| b.unwrap().header().base_offset).collect();
        assert_eq!(found, [10, 12]);
        assert_eq!(batches(&[]).count(), 0);
    }

    #[test]
    fn a_torn_end_is_an_error_or_left_out() {
        let bytes = two();
        let cut = &bytes[..bytes.len() - 1];
        let mut walk = batches(cut);
        assert!(walk.next().unwrap().is_ok());
        let position = bytes.len() / 2;
        assert_eq!(walk.position(), position);
        assert_eq!(walk.next(), Some(Err(BatchError::Torn { position, need: position, have: position - 1 })));
        assert_eq!(walk.next(), None);
        assert_eq!(whole_batches(cut).filter(|b| b.is_ok()).count(), 1);
        assert_eq!(whole_batches(cut).count(), 1);
    }

    #[test]
    fn garbage_is_an_error_even_where_a_torn_end_is_not() {
        let mut bytes = two();
        let position = bytes.len() / 2;
        bytes[position + 16] = 9;
        let errors: Vec<_> = whole_batches(&bytes).filter_map(Result::err).collect();
        assert_eq!(errors, [BatchError::Invalid { position, source: HeaderError::UnsupportedMagic { magic: 9 } }]);
    }

    #[test]
    fn a_changed_byte_breaks_the_crc() {
        let mut bytes = two();
        BatchRef::parse(&bytes).unwrap().verify_crc().unwrap();
        bytes[HEADER_LEN] ^= 1;
        let wrong = BatchRef::parse(&bytes).unwrap().verify_crc().unwrap_err();
        assert_ne!(wrong.stored, wrong.computed);
    }
}
