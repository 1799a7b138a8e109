//! The walk over all records of a batch, with the checks each of them must pass. Allocates nothing per record.

use base::TimestampMs;

use super::error::{RecordFaultKind, RecordFaults, ValidateError};
use super::rebuild::Rebuild;
use super::{DECOMPRESSED_BYTES_MAX, Rules};
use crate::codec::DecompressError;
use crate::header::{BatchHeader, TimestampType};
use crate::record::{RecordContext, RecordError, ScannedRecord, header_count, read_length, scan_body, take};
use crate::stream::{Inflater, Source};
use crate::varint::{self, VarintError};

/// Records up to this size are looked at as a whole; larger ones pass through in pieces, so that a record that claims
/// to be huge costs no memory.
const WHOLE_RECORD_BYTES_MAX: usize = 1 << 20;
/// The longest encoding of a number.
const VARINT_LEN_MAX: usize = 10;

/// What the walk found out.
pub(super) struct Outcome {
    /// -1 if no record has a timestamp.
    pub(super) max_timestamp: TimestampMs,
    pub(super) uncompressed_bytes: usize,
}

/// A walk in progress.
pub(super) struct Scan<'r> {
    rules: &'r Rules,
    now: TimestampMs,
    context: RecordContext,
    count: i32,
    append_time_from_producer: bool,
    max_timestamp: TimestampMs,
    faults: RecordFaults,
    wrong_offset: Option<(i32, i32)>,
}

impl<'r> Scan<'r> {
    pub(super) fn new(header: &BatchHeader, rules: &'r Rules, now: TimestampMs) -> Scan<'r> {
        Scan {
            rules,
            now,
            context: RecordContext::new(header),
            count: header.record_count,
            append_time_from_producer: header.timestamp_type() == TimestampType::LogAppendTime,
            max_timestamp: crate::NO_TIMESTAMP,
            faults: RecordFaults::default(),
            wrong_offset: None,
        }
    }

    /// Walks to the end. Records are handed to `rebuild`, if there is one, which also puts their offsets right.
    pub(super) fn run(mut self, source: Source<'_>, rebuild: Option<&mut Rebuild>) -> Result<Outcome, ValidateError> {
        let rebuilt = rebuild.is_some();
        let uncompressed_bytes = match source {
            Source::Plain(payload) => self.walk_plain(payload, rebuild)?,
            Source::Stream(inflater) => self.walk_stream(*inflater, rebuild)?,
        };
        if self.faults.total > 0 {
            return Err(self.faults.into());
        }
        match self.wrong_offset {
            Some((index, offset_delta)) if !rebuilt => Err(ValidateError::OffsetDelta { index, offset_delta }),
            _ => Ok(Outcome { max_timestamp: self.max_timestamp, uncompressed_bytes }),
        }
    }

    fn walk_plain(&mut self, payload: &[u8], mut rebuild: Option<&mut Rebuild>) -> Result<usize, ValidateError> {
        let mut rest = payload;
        for index in 0..self.count {
            let len = read_length(&mut rest)?;
            let record = scan_body(take(&mut rest, len)?)?;
            self.take_record(index, &record, rebuild.as_deref_mut())?;
        }
        if !rest.is_empty() {
            return Err(RecordError::BytesLeftInBatch { left: rest.len(), count: self.count }.into());
        }
        Ok(payload.len())
    }

    fn walk_stream(
        &mut self,
        mut inflater: Inflater<'_>,
        mut rebuild: Option<&mut Rebuild>,
    ) -> Result<usize, ValidateError> {
        let max = self.rules.max_decompressed_message_bytes;
        for index in 0..self.count {
            let length = inflater.record_length()?;
            if length > max {
                return Err(ValidateError::RecordTooLarge { length, max });
            }
            if length > DECOMPRESSED_BYTES_MAX {
                return Err(DecompressError::TooLarge { limit: DECOMPRESSED_BYTES_MAX }.into());
            }
            if length > WHOLE_RECORD_BYTES_MAX {
                self.walk_large(index, length, &mut inflater, rebuild.as_deref_mut())?;
                continue;
            }
            if !inflater.fill(length)? {
                return Err(RecordError::Truncated.into());
            }
            let record = scan_body(inflater.consume(length))?;
            self.take_record(index, &record, rebuild.as_deref_mut())?;
        }
        inflater.expect_end(self.count)?;
        Ok(inflater.produced())
    }

    #[inline]
    fn take_record(
        &mut self,
        index: i32,
        record: &ScannedRecord<'_>,
        rebuild: Option<&mut Rebuild>,
    ) -> Result<(), ValidateError> {
        let timestamp = self.check(index, record.timestamp_delta, record.offset_delta, record.has_key);
        if let Some(rebuild) = rebuild.filter(|_| self.faults.total == 0) {
            rebuild.begin_record(index, timestamp, record.content.len())?;
            rebuild.content(record.content)?;
        }
        Ok(())
    }

    /// The checks of one record (LogValidator.validateRecord); returns its timestamp.
    #[inline]
    fn check(&mut self, index: i32, timestamp_delta: i64, offset_delta: i32, has_key: bool) -> TimestampMs {
        let timestamp = self.context.timestamp(timestamp_delta);
        if self.rules.compacted && !has_key {
            self.faults.push(index, RecordFaultKind::NoKey);
        } else if self.rules.timestamp_type == TimestampType::CreateTime && timestamp != crate::NO_TIMESTAMP {
            self.check_range(index, timestamp, offset_delta);
        } else if self.append_time_from_producer {
            self.faults.push(index, RecordFaultKind::AppendTimeFromProducer);
        }
        if offset_delta != index && self.wrong_offset.is_none() {
            self.wrong_offset = Some((index, offset_delta));
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        timestamp
    }

    #[inline]
    fn check_range(&mut self, index: i32, timestamp: TimestampMs, offset_delta: i32) {
        let age = self.now.wrapping_sub(timestamp);
        let (before, after) = (self.rules.timestamp_before_max_ms, self.rules.timestamp_after_max_ms);
        if age > before || age.wrapping_neg() > after {
            let (from, to) = (self.now.wrapping_sub(before), self.now.wrapping_add(after));
            let offset = i64::from(offset_delta);
            self.faults.push(index, RecordFaultKind::Timestamp { timestamp, offset, from, to });
        }
    }

    /// A record that is too large to be held as a whole.
    fn walk_large(
        &mut self,
        index: i32,
        length: usize,
        inflater: &mut Inflater<'_>,
        mut rebuild: Option<&mut Rebuild>,
    ) -> Result<(), ValidateError> {
        let mut body = LargeBody { inflater, left: length };
        body.pass(1, None)?;
        let timestamp_delta = body.number(varint::read_i64, None)?;
        let offset_delta = body.number(varint::read_i32, None)?;
        // The key's length is looked at before the record is written, for a missing key may forbid it.
        let has_key = body.peek(varint::read_i32)? >= 0;
        let timestamp = self.check(index, timestamp_delta, offset_delta, has_key);
        if self.faults.total > 0 {
            rebuild = None;
        }
        if let Some(rebuild) = rebuild.as_deref_mut() {
            rebuild.begin_record(index, timestamp, body.left)?;
        }
        body.bytes(rebuild.as_deref_mut())?;
        body.bytes(rebuild.as_deref_mut())?;
        let count = body.number(varint::read_i32, rebuild.as_deref_mut())?;
        for _ in 0..header_count(count, body.left)? {
            let key_length = body.peek(varint::read_i32)?;
            if key_length < 0 {
                return Err(RecordError::HeaderKey { length: key_length }.into());
            }
            body.bytes(rebuild.as_deref_mut())?;
            body.bytes(rebuild.as_deref_mut())?;
        }
        match body.left {
            0 => Ok(()),
            left => Err(RecordError::BytesLeftInRecord { length, left }.into()),
        }
    }
}

/// The rest of a large record, read in pieces that are handed on to a rebuild.
struct LargeBody<'i, 'a> {
    inflater: &'i mut Inflater<'a>,
    left: usize,
}

impl LargeBody<'_, '_> {
    /// Reads a number without using it up.
    fn peek<T>(&mut self, read: fn(&mut &[u8]) -> Result<T, VarintError>) -> Result<T, ValidateError> {
        self.inflater.fill(self.left.min(VARINT_LEN_MAX))?;
        let filled = self.inflater.filled();
        let mut rest = &filled[..filled.len().min(self.left)];
        Ok(read(&mut rest).map_err(RecordError::from)?)
    }

    fn number<T>(
        &mut self,
        read: fn(&mut &[u8]) -> Result<T, VarintError>,
        rebuild: Option<&mut Rebuild>,
    ) -> Result<T, ValidateError> {
        self.inflater.fill(self.left.min(VARINT_LEN_MAX))?;
        let filled = self.inflater.filled();
        let mut rest = &filled[..filled.len().min(self.left)];
        let before = rest.len();
        let number = read(&mut rest).map_err(RecordError::from)?;
        let used = before - rest.len();
        self.pass(used, rebuild)?;
        Ok(number)
    }

    /// A length and as many bytes; a negative length is null.
    fn bytes(&mut self, mut rebuild: Option<&mut Rebuild>) -> Result<(), ValidateError> {
        match usize::try_from(self.number(varint::read_i32, rebuild.as_deref_mut())?) {
            Ok(len) => self.pass(len, rebuild),
            Err(_) => Ok(()),
        }
    }

    /// Uses up `len` bytes.
    fn pass(&mut self, len: usize, mut rebuild: Option<&mut Rebuild>) -> Result<(), ValidateError> {
        self.left = self.left.checked_sub(len).ok_or(RecordError::Truncated)?;
        let mut rest = len;
        while rest > 0 {
            if !self.inflater.fill(1)? {
                return Err(RecordError::Truncated.into());
            }
            let piece = self.inflater.consume(rest);
            rest -= piece.len();
            if let Some(rebuild) = rebuild.as_deref_mut() {
                rebuild.content(piece)?;
            }
        }
        Ok(())
    }
}
