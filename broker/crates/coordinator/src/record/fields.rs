//! The field types of Kafka's record schemas, classic and flexible, read with bounds and written without.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::machine::RecordError;

/// Reads fields one after another.
pub(super) struct Reader<'a> {
    schema: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(schema: &'static str, bytes: &'a [u8]) -> Self {
        Reader { schema, rest: bytes }
    }

    fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or(RecordError::Truncated { schema: self.schema, field })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RecordError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, field)?);
        Ok(array)
    }

    pub(super) fn invalid(&self, field: &'static str) -> RecordError {
        RecordError::Invalid { schema: self.schema, field }
    }

    /// A version between 0 and `newest`.
    pub(super) fn version(&mut self, newest: i16) -> Result<i16, RecordError> {
        let version = self.i16("version")?;
        if (0..=newest).contains(&version) {
            Ok(version)
        } else {
            Err(RecordError::UnknownVersion { schema: self.schema, version })
        }
    }

    pub(super) fn i16(&mut self, field: &'static str) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.array(field)?))
    }

    pub(super) fn i32(&mut self, field: &'static str) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    pub(super) fn i64(&mut self, field: &'static str) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.array(field)?))
    }

    fn unsigned_varint(&mut self, field: &'static str) -> Result<u32, RecordError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array(field)?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.invalid(field))
    }

    /// Length of a compact field: the varint is the length plus one, 0 is null.
    fn compact_len(&mut self, field: &'static str) -> Result<Option<usize>, RecordError> {
        Ok((self.unsigned_varint(field)? as usize).checked_sub(1))
    }

    fn text(&mut self, len: usize, field: &'static str) -> Result<Arc<str>, RecordError> {
        let bytes = self.take(len, field)?;
        std::str::from_utf8(bytes).map(Arc::from).map_err(|_| self.invalid(field))
    }

    pub(super) fn string(&mut self, field: &'static str) -> Result<Arc<str>, RecordError> {
        self.nullable_string(false, field)?.ok_or_else(|| self.invalid(field))
    }

    pub(super) fn flexible_string(&mut self, flexible: bool, field: &'static str) -> Result<Arc<str>, RecordError> {
        self.nullable_string(flexible, field)?.ok_or_else(|| self.invalid(field))
    }

    pub(super) fn nullable_string(
        &mut self,
        flexible: bool,
        field: &'static str,
    ) -> Result<Option<Arc<str>>, RecordError> {
        let len = match flexible {
            true => self.compact_len(field)?,
            false => usize::try_from(self.i16(field)?).ok(),
        };
        len.map(|len| self.text(len, field)).transpose()
    }

    pub(super) fn bytes(&mut self, flexible: bool, field: &'static str) -> Result<&'a [u8], RecordError> {
        let len = self.count(flexible, field)?;
        self.take(len, field)
    }

    /// Count of an array or length of bytes. The caller reads element by element, so that a lying count ends at the
    /// first missing byte.
    pub(super) fn count(&mut self, flexible: bool, field: &'static str) -> Result<usize, RecordError> {
        match flexible {
            true => self.compact_len(field)?.ok_or_else(|| self.invalid(field)),
            false => usize::try_from(self.i32(field)?).map_err(|_| self.invalid(field)),
        }
    }

    /// Reads the tagged fields; returns the bytes of those that `wanted` names.
    pub(super) fn tagged_field(&mut self, wanted: u32) -> Result<Option<&'a [u8]>, RecordError> {
        let mut found = None;
        for _ in 0..self.unsigned_varint("tagged fields")? {
            let tag = self.unsigned_varint("tag")?;
            let len = self.unsigned_varint("tag length")? as usize;
            let bytes = self.take(len, "tagged field")?;
            if tag == wanted {
                found = Some(bytes);
            }
        }
        Ok(found)
    }

    /// Skips the tagged fields of a struct that has none known.
    pub(super) fn skip_tagged_fields(&mut self) -> Result<(), RecordError> {
        self.tagged_field(u32::MAX).map(|_| ())
    }

    /// A topic id held in a tagged field.
    pub(super) fn uuid_of(&self, bytes: &[u8], field: &'static str) -> Result<Uuid, RecordError> {
        Uuid::from_slice(bytes).map_err(|_| self.invalid(field))
    }
}

/// Writes fields one after another, in the classic (not flexible) form.
pub(super) struct Writer(BytesMut);

impl Writer {
    /// Begins with the version of a value, or the type of a key.
    pub(super) fn with_version(version: i16) -> Self {
        let mut writer = Writer(BytesMut::with_capacity(64));
        writer.0.put_i16(version);
        writer
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.0.put_i32(value);
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.0.put_i64(value);
    }

    /// Strings come from requests whose own length field has 16 bits; the two texts made here (member ids, client
    /// hosts) are cut so as to fit.
    pub(super) fn string(&mut self, value: &str) {
        let mut end = value.len().min(i16::MAX as usize);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        self.0.put_i16(end as i16);
        self.0.put_slice(&value.as_bytes()[..end]);
    }

    pub(super) fn nullable_string(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.string(value),
            None => self.0.put_i16(-1),
        }
    }

    /// A request is shorter than 2 GiB, so its parts are too.
    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.0.put_i32(value.len() as i32);
        self.0.put_slice(value);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.0.put_i32(count as i32);
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.freeze()
    }
}
