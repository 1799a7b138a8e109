//! Writes a batch anew with another codec (LogValidator.buildRecordsAndAssignOffsets). Keys, values and headers are
//! copied byte for byte; only what depends on a record's place in the batch is written again.

use base::TimestampMs;

use super::Rules;
use super::error::ValidateError;
use crate::builder;
use crate::codec::{Codec, Encoder};
use crate::header::{BatchHeader, TIMESTAMP_TYPE_MASK, TRANSACTIONAL_MASK, TimestampType};
use crate::varint;

/// Bytes gathered before they are handed to the codec.
const BUFFER_BYTES: usize = 16 * 1024;

/// A batch being written.
pub(super) struct Rebuild {
    header: BatchHeader,
    /// Gone once the batch is known to be too large; the records are still checked then, for their faults come first.
    encoder: Option<Encoder>,
    buffer: Vec<u8>,
    max_message_bytes: usize,
    written: usize,
}

impl Rebuild {
    pub(super) fn new(source: &BatchHeader, codec: Codec, rules: &Rules) -> Result<Rebuild, ValidateError> {
        let attributes = (source.attributes & TRANSACTIONAL_MASK) | i16::from(codec.compression().id());
        let header = BatchHeader {
            attributes,
            base_timestamp: crate::NO_TIMESTAMP,
            last_offset_delta: -1,
            record_count: 0,
            ..*source
        };
        let encoder = Some(Encoder::new(codec)?);
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Rebuild { header, encoder, buffer, max_message_bytes: rules.max_message_bytes, written: 0 })
    }

    /// Begins the record at `index`, of which `content_len` bytes will follow.
    pub(super) fn begin_record(
        &mut self,
        index: i32,
        timestamp: TimestampMs,
        content_len: usize,
    ) -> Result<(), ValidateError> {
        if index == 0 {
            self.header.base_timestamp = timestamp;
        }
        let timestamp_delta = timestamp.wrapping_sub(self.header.base_timestamp);
        let len = 1 + varint::len_i64(timestamp_delta) + varint::len_i64(i64::from(index)) + content_len;
        varint::write_i64(&mut self.buffer, len as i64);
        self.buffer.push(0);
        varint::write_i64(&mut self.buffer, timestamp_delta);
        varint::write_i32(&mut self.buffer, index);
        self.header.record_count = index + 1;
        self.header.last_offset_delta = index;
        Ok(())
    }

    /// Adds bytes of a record.
    pub(super) fn content(&mut self, bytes: &[u8]) -> Result<(), ValidateError> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() > BUFFER_BYTES {
            self.write(bytes)
        } else {
            self.buffer.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), ValidateError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ValidateError> {
        if let Some(encoder) = &mut self.encoder {
            encoder.write(bytes)?;
            self.written = encoder.len();
            if self.written > self.max_message_bytes {
                self.encoder = None;
            }
        }
        Ok(())
    }

    /// The finished batch.
    pub(super) fn finish(mut self, kind: TimestampType, max_timestamp: TimestampMs) -> Result<Vec<u8>, ValidateError> {
        self.flush()?;
        let max = self.max_message_bytes;
        let Some(encoder) = self.encoder else {
            return Err(ValidateError::TooLarge { bytes: self.written, max });
        };
        self.header.max_timestamp = max_timestamp;
        if kind == TimestampType::LogAppendTime {
            self.header.attributes |= TIMESTAMP_TYPE_MASK;
        }
        let bytes = builder::finish(self.header, encoder.finish()?)?;
        if bytes.len() > max {
            return Err(ValidateError::TooLarge { bytes: bytes.len(), max });
        }
        Ok(bytes)
    }
}
