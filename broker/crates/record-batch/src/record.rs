//! Records inside a batch that is not compressed (or no longer), without copies.

use base::{Offset, TimestampMs};
use thiserror::Error;

use crate::header::{BatchHeader, TimestampType};
use crate::varint::{self, VarintError};

/// Why bytes are no record (Kafka answers INVALID_RECORD for all of these).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The batch ends before its declared count of records is reached, or inside a record.
    #[error("record data ends too early")]
    Truncated,
    /// A number of variable length has too many bytes.
    #[error("a variable-length number has too many bytes")]
    Varint,
    /// A record says that it has a negative length.
    #[error("record has the length {length}")]
    NegativeLength {
        /// What the record said.
        length: i32,
    },
    /// The fields of a record do not fill its declared length.
    #[error("record of {length} bytes has {left} bytes after its last field")]
    BytesLeftInRecord {
        /// Declared length.
        length: usize,
        /// Bytes not used by any field.
        left: usize,
    },
    /// A negative count of headers, or one greater than the bytes that are left.
    #[error("record has {count} headers in {left} bytes")]
    HeaderCount {
        /// What the record said.
        count: i32,
        /// Bytes left in the record.
        left: usize,
    },
    /// Header keys cannot be null.
    #[error("header key has the length {length}")]
    HeaderKey {
        /// What the record said.
        length: i32,
    },
    /// The batch says that it has a negative count of records.
    #[error("batch has {count} records")]
    NegativeCount {
        /// What the batch header said.
        count: i32,
    },
    /// Bytes are left after the declared count of records.
    #[error("{left} bytes are left after the last of {count} records")]
    BytesLeftInBatch {
        /// Bytes after the last record.
        left: usize,
        /// What the batch header said.
        count: i32,
    },
}

impl From<VarintError> for RecordError {
    fn from(error: VarintError) -> RecordError {
        match error {
            VarintError::Truncated => RecordError::Truncated,
            VarintError::TooLong => RecordError::Varint,
        }
    }
}

/// One header of a record. Keys are UTF-8 by convention; nothing checks that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderRef<'a> {
    /// Never null; may repeat within a record.
    pub key: &'a [u8],
    /// `None` for null, which differs from empty.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record in their order, duplicates included. Their structure was checked with the record's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderRef<'a>;

    fn next(&mut self) -> Option<HeaderRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        read_header(&mut self.bytes).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// One record, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// No bit has a meaning yet.
    pub attributes: i8,
    /// Its own, or the batch's time of append.
    pub timestamp: TimestampMs,
    /// Its place in the partition.
    pub offset: Offset,
    /// Sequence number, wrapped; -1 for none.
    pub sequence: i32,
    /// `None` for null, which differs from empty.
    pub key: Option<&'a [u8]>,
    /// `None` for null (a tombstone), which differs from empty.
    pub value: Option<&'a [u8]>,
    /// In their order, duplicates included.
    pub headers: Headers<'a>,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Own timestamp minus the batch's base timestamp, also when the batch has the time of append.
    pub timestamp_delta: i64,
    /// The record's bytes from its key length to its end: all that does not depend on its place in a batch.
    pub content: &'a [u8],
}

/// What a record's deltas count from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordContext {
    base_offset: Offset,
    base_timestamp: TimestampMs,
    base_sequence: i32,
    append_time: Option<TimestampMs>,
}

impl RecordContext {
    pub(crate) fn new(header: &BatchHeader) -> RecordContext {
        RecordContext {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            base_sequence: header.base_sequence,
            append_time: match header.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(header.max_timestamp),
            },
        }
    }

    pub(crate) fn timestamp(&self, delta: i64) -> TimestampMs {
        self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(delta))
    }

    /// Reads the record whose length has been read already; `body` is all of it after the length.
    pub(crate) fn read_body<'a>(&self, body: &'a [u8]) -> Result<RecordRef<'a>, RecordError> {
        let mut rest = body;
        let (&attributes, after) = rest.split_first().ok_or(RecordError::Truncated)?;
        rest = after;
        let timestamp_delta = varint::read_i64(&mut rest)?;
        let offset_delta = varint::read_i32(&mut rest)?;
        let content = rest;
        let key = read_bytes(&mut rest)?;
        let value = read_bytes(&mut rest)?;
        let headers = read_headers(&mut rest)?;
        if !rest.is_empty() {
            return Err(RecordError::BytesLeftInRecord { length: body.len(), left: rest.len() });
        }
        let sequence = match self.base_sequence {
            base if base < 0 => crate::NO_SEQUENCE,
            base => crate::increment_sequence(base, offset_delta),
        };
        Ok(RecordRef {
            attributes: attributes as i8,
            timestamp: self.timestamp(timestamp_delta),
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            sequence,
            key,
            value,
            headers,
            offset_delta,
            timestamp_delta,
            content,
        })
    }
}

/// What the checks before an append need to know of a record, without building the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScannedRecord<'a> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) has_key: bool,
    /// From the key length to the end.
    pub(crate) content: &'a [u8],
}

/// Checks the structure of a record whose length has been read already.
#[inline]
pub(crate) fn scan_body(body: &[u8]) -> Result<ScannedRecord<'_>, RecordError> {
    let (_, mut rest) = body.split_first().ok_or(RecordError::Truncated)?;
    let timestamp_delta = varint::read_i64(&mut rest)?;
    let offset_delta = varint::read_i32(&mut rest)?;
    let content = rest;
    let has_key = read_bytes(&mut rest)?.is_some();
    read_bytes(&mut rest)?;
    read_headers(&mut rest)?;
    if !rest.is_empty() {
        return Err(RecordError::BytesLeftInRecord { length: body.len(), left: rest.len() });
    }
    Ok(ScannedRecord { timestamp_delta, offset_delta, has_key, content })
}

/// Takes `len` bytes from the front.
#[inline]
pub(crate) fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], RecordError> {
    let (taken, rest) = input.split_at_checked(len).ok_or(RecordError::Truncated)?;
    *input = rest;
    Ok(taken)
}

/// Takes a length and as many bytes; any negative length is null, as Kafka reads it.
#[inline]
fn read_bytes<'a>(input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, RecordError> {
    match usize::try_from(varint::read_i32(input)?) {
        Ok(len) => take(input, len).map(Some),
        Err(_) => Ok(None),
    }
}

fn read_header<'a>(input: &mut &'a [u8]) -> Result<HeaderRef<'a>, RecordError> {
    let length = varint::read_i32(input)?;
    let key_len = usize::try_from(length).map_err(|_| RecordError::HeaderKey { length })?;
    let key = take(input, key_len)?;
    let value = read_bytes(input)?;
    Ok(HeaderRef { key, value })
}

/// A count of headers that the `left` bytes after it could hold.
pub(crate) fn header_count(count: i32, left: usize) -> Result<usize, RecordError> {
    let len = usize::try_from(count).ok().filter(|&len| len <= left);
    len.ok_or(RecordError::HeaderCount { count, left })
}

#[inline]
fn read_headers<'a>(input: &mut &'a [u8]) -> Result<Headers<'a>, RecordError> {
    let count = varint::read_i32(input)?;
    let left = input.len();
    let len = header_count(count, left)?;
    let bytes = *input;
    for _ in 0..len {
        read_header(input)?;
    }
    Ok(Headers { bytes: &bytes[..left - input.len()], left: len })
}

/// Takes the length of the next record.
#[inline]
pub(crate) fn read_length(input: &mut &[u8]) -> Result<usize, RecordError> {
    let length = varint::read_i32(input)?;
    usize::try_from(length).map_err(|_| RecordError::NegativeLength { length })
}

/// Walk over the records of a payload that is not compressed. Ends after its first error; a count that the bytes do not
/// bear out is one.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    context: RecordContext,
    rest: &'a [u8],
    count: i32,
    read: i32,
    ended: bool,
}

impl<'a> Records<'a> {
    /// The records of a batch with this header; `payload` are its bytes after the header, decompressed.
    pub fn new(header: &BatchHeader, payload: &'a [u8]) -> Records<'a> {
        let context = RecordContext::new(header);
        Records { context, rest: payload, count: header.record_count, read: 0, ended: false }
    }

    fn read_next(&mut self) -> Result<Option<RecordRef<'a>>, RecordError> {
        let count = self.count;
        if count < 0 {
            return Err(RecordError::NegativeCount { count });
        }
        if self.read == count {
            let left = self.rest.len();
            return if left == 0 { Ok(None) } else { Err(RecordError::BytesLeftInBatch { left, count }) };
        }
        let len = read_length(&mut self.rest)?;
        let body = take(&mut self.rest, len)?;
        self.read += 1;
        self.context.read_body(body).map(Some)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordRef<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_next().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
