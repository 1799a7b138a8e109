//! The primitive forms of Kafka's flexible messages: varints, compact strings and arrays, tagged fields. Every metadata
//! record is flexible from its version 0, so the older forms are not needed here.

use base::{NodeId, TopicId};
use bytes::Bytes;

/// Why the bytes of a record could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a field.
    #[error("the bytes end {missing} bytes too early")]
    Truncated {
        /// Bytes that the field needs beyond those that are there.
        missing: usize,
    },
    /// A varint of more than five bytes.
    #[error("a variable-length number is longer than 5 bytes")]
    VarintTooLong,
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    InvalidUtf8,
    /// A null where the schema has none.
    #[error("a null stands where a value is required")]
    UnexpectedNull,
    /// A frame version other than 1.
    #[error("the frame version {0} is not known; 1 is")]
    UnknownFrame(u32),
    /// A record kind that does not exist.
    #[error("the record kind {0} is not known")]
    UnknownKind(u32),
    /// A version of a known kind that does not exist.
    #[error("version {version} of record kind {kind} is not known; the highest is {highest}")]
    UnknownVersion {
        /// The api key of the record kind.
        kind: u32,
        /// The version found.
        version: u32,
        /// The highest version that can be read.
        highest: u16,
    },
    /// Bytes that follow the last field.
    #[error("{0} bytes follow the last field")]
    TrailingBytes(usize),
}

/// A value that has one form on the wire at each version.
pub trait Field: Sized {
    /// Appends the value.
    fn put(&self, version: u16, out: &mut Vec<u8>);
    /// Reads the value and moves `buf` behind it.
    fn take(version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError>;
}

/// The next `n` bytes; moves `buf` behind them.
pub fn take_slice<'a>(buf: &mut &'a [u8], n: usize) -> Result<&'a [u8], DecodeError> {
    match buf.split_at_checked(n) {
        Some((head, tail)) => {
            *buf = tail;
            Ok(head)
        }
        None => Err(DecodeError::Truncated { missing: n - buf.len() }),
    }
}

/// Appends an unsigned varint (7 bits a byte, lowest first).
pub fn put_uvarint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads an unsigned varint.
pub fn take_uvarint(buf: &mut &[u8]) -> Result<u32, DecodeError> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = take_slice(buf, 1)?[0];
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(DecodeError::VarintTooLong)
}

macro_rules! fixed_width {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn put(&self, _version: u16, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
            fn take(_version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
                let mut bytes = [0; size_of::<$type>()];
                bytes.copy_from_slice(take_slice(buf, size_of::<$type>())?);
                Ok(<$type>::from_be_bytes(bytes))
            }
        }
    )*};
}
fixed_width!(i8, i16, u16, i32, i64, f64);

impl Field for bool {
    fn put(&self, _version: u16, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(_version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(take_slice(buf, 1)?[0] != 0)
    }
}

impl Field for NodeId {
    fn put(&self, version: u16, out: &mut Vec<u8>) {
        self.0.put(version, out);
    }
    fn take(version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        i32::take(version, buf).map(NodeId)
    }
}

impl Field for TopicId {
    fn put(&self, _version: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
    fn take(_version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(take_slice(buf, 16)?);
        Ok(TopicId(uuid::Uuid::from_bytes(bytes)))
    }
}

/// Appends the length of a compact string, byte string or array: one more than it is, so that 0 means null.
fn put_len(len: usize, out: &mut Vec<u8>) {
    // Nothing here can be built longer than a record batch, which itself has a 32-bit length.
    put_uvarint(u32::try_from(len + 1).unwrap_or(u32::MAX), out);
}

/// The length of a compact form, or none for a null.
fn take_len(buf: &mut &[u8]) -> Result<Option<usize>, DecodeError> {
    Ok(take_uvarint(buf)?.checked_sub(1).map(|len| len as usize))
}

/// A form of which "null" is one value: a text, a byte string or an array.
trait Nullable: Sized {
    fn put_some(&self, version: u16, out: &mut Vec<u8>);
    fn take_some(len: usize, version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError>;
}

impl Nullable for String {
    fn put_some(&self, _version: u16, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take_some(len: usize, _version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        let text = std::str::from_utf8(take_slice(buf, len)?).map_err(|_| DecodeError::InvalidUtf8)?;
        Ok(text.to_owned())
    }
}

impl Nullable for Bytes {
    fn put_some(&self, _version: u16, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        out.extend_from_slice(self);
    }
    fn take_some(len: usize, _version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Bytes::copy_from_slice(take_slice(buf, len)?))
    }
}

impl<T: Field> Nullable for Vec<T> {
    fn put_some(&self, version: u16, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        self.iter().for_each(|element| element.put(version, out));
    }
    fn take_some(len: usize, version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
        // Every element is at least one byte, so a lying count reserves no more elements than there are bytes.
        if len > buf.len() {
            return Err(DecodeError::Truncated { missing: len - buf.len() });
        }
        (0..len).map(|_| T::take(version, buf)).collect()
    }
}

macro_rules! required_and_nullable {
    ($([$($generic:tt)*] $type:ty),*) => {$(
        impl $($generic)* Field for $type {
            fn put(&self, version: u16, out: &mut Vec<u8>) {
                self.put_some(version, out);
            }
            fn take(version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
                let len = take_len(buf)?.ok_or(DecodeError::UnexpectedNull)?;
                Nullable::take_some(len, version, buf)
            }
        }
        impl $($generic)* Field for Option<$type> {
            fn put(&self, version: u16, out: &mut Vec<u8>) {
                match self {
                    Some(value) => value.put_some(version, out),
                    None => put_uvarint(0, out),
                }
            }
            fn take(version: u16, buf: &mut &[u8]) -> Result<Self, DecodeError> {
                match take_len(buf)? {
                    Some(len) => Nullable::take_some(len, version, buf).map(Some),
                    None => Ok(None),
                }
            }
        }
    )*};
}
required_and_nullable!([] String, [] Bytes, [<T: Field>] Vec<T>);

/// Collects the tagged fields of one struct, in the order of their tags.
#[derive(Default)]
pub struct TaggedFields {
    count: u32,
    bytes: Vec<u8>,
}

impl TaggedFields {
    /// Adds a field; tags must rise from call to call.
    pub fn add(&mut self, tag: u32, version: u16, value: &impl Field) {
        let mut body = Vec::new();
        value.put(version, &mut body);
        self.count += 1;
        put_uvarint(tag, &mut self.bytes);
        put_uvarint(u32::try_from(body.len()).unwrap_or(u32::MAX), &mut self.bytes);
        self.bytes.extend_from_slice(&body);
    }

    /// Appends the section that ends a struct.
    pub fn finish(self, out: &mut Vec<u8>) {
        put_uvarint(self.count, out);
        out.extend_from_slice(&self.bytes);
    }

    /// Reads the section that ends a struct and hands each tag and its bytes to `on_field`.
    pub fn take(
        buf: &mut &[u8],
        mut on_field: impl FnMut(u32, &mut &[u8]) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        for _ in 0..take_uvarint(buf)? {
            let tag = take_uvarint(buf)?;
            let len = take_uvarint(buf)? as usize;
            on_field(tag, &mut take_slice(buf, len)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_has_at_most_five_bytes() {
        for value in [0, 1, 127, 128, 300, u32::MAX] {
            let mut out = Vec::new();
            put_uvarint(value, &mut out);
            assert_eq!(take_uvarint(&mut &out[..]), Ok(value));
        }
        assert_eq!(take_uvarint(&mut &[0x80u8; 6][..]), Err(DecodeError::VarintTooLong));
        assert_eq!(take_uvarint(&mut &[0x80u8][..]), Err(DecodeError::Truncated { missing: 1 }));
    }

    #[test]
    fn a_lying_count_reserves_nothing() {
        let mut bytes = Vec::new();
        put_uvarint(u32::MAX, &mut bytes);
        assert!(matches!(Vec::<i64>::take(0, &mut &bytes[..]), Err(DecodeError::Truncated { .. })));
        assert!(matches!(String::take(0, &mut &bytes[..]), Err(DecodeError::Truncated { .. })));
    }

    #[test]
    fn a_null_is_only_read_where_it_is_allowed() {
        assert_eq!(String::take(0, &mut &[0u8][..]), Err(DecodeError::UnexpectedNull));
        assert_eq!(<Option<String> as Field>::take(0, &mut &[0u8][..]), Ok(None));
    }
}
