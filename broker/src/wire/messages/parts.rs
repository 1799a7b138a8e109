//! The parts of flexible messages that our own definitions read and write. Elements are read one by one and never
//! reserved for, so that a count that lies ends at the first missing byte.

use kafka_protocol::protocol::StrBytes;
use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use uuid::Uuid;

use crate::wire::primitive::{compact_nullable_string, unsigned_varint};

/// COMPACT_STRING.
///
/// # Errors
/// The bytes end, are not text, or hold null.
pub fn compact_string(buf: &mut impl ByteBuf) -> anyhow::Result<StrBytes> {
    compact_nullable_string(buf)?.ok_or_else(|| anyhow::anyhow!("a string that may not be null is null"))
}

/// COMPACT_ARRAY; `None` for null.
///
/// # Errors
/// The bytes end, or an element cannot be read.
pub fn compact_nullable_array<B: ByteBuf, T>(
    buf: &mut B,
    mut element: impl FnMut(&mut B) -> anyhow::Result<T>,
) -> anyhow::Result<Option<Vec<T>>> {
    let Some(count) = unsigned_varint(buf)?.checked_sub(1) else { return Ok(None) };
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(element(buf)?);
    }
    Ok(Some(elements))
}

/// COMPACT_ARRAY that may not be null.
///
/// # Errors
/// The bytes end, an element cannot be read, or the array is null.
pub fn compact_array<B: ByteBuf, T>(
    buf: &mut B,
    element: impl FnMut(&mut B) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    compact_nullable_array(buf, element)?.ok_or_else(|| anyhow::anyhow!("an array that may not be null is null"))
}

/// UUID.
///
/// # Errors
/// The bytes end.
pub fn uuid(buf: &mut impl ByteBuf) -> anyhow::Result<Uuid> {
    Ok(Uuid::from_u128(buf.try_get_u128()?))
}

/// Skips tagged fields, of which these messages define none.
///
/// # Errors
/// The bytes end.
pub fn skip_tagged_fields(buf: &mut impl ByteBuf) -> anyhow::Result<()> {
    for _ in 0..unsigned_varint(buf)? {
        let _tag = unsigned_varint(buf)?;
        let size = unsigned_varint(buf)? as usize;
        buf.try_get_bytes(size)?;
    }
    Ok(())
}

/// Writes UNSIGNED_VARINT.
pub fn put_unsigned_varint(buf: &mut impl ByteBufMut, mut value: u32) {
    while value >= 0x80 {
        buf.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    buf.put_u8(value as u8);
}

/// Writes the count of a COMPACT_ARRAY, or the length of a compact string.
///
/// # Errors
/// The count does not fit.
pub fn put_compact_count(buf: &mut impl ByteBufMut, count: usize) -> anyhow::Result<()> {
    let count = u32::try_from(count)?.checked_add(1).ok_or_else(|| anyhow::anyhow!("too many elements"))?;
    put_unsigned_varint(buf, count);
    Ok(())
}

/// Writes COMPACT_STRING.
///
/// # Errors
/// The text is too long.
pub fn put_compact_string(buf: &mut impl ByteBufMut, text: &str) -> anyhow::Result<()> {
    put_compact_count(buf, text.len())?;
    buf.put_slice(text.as_bytes());
    Ok(())
}

/// Writes COMPACT_NULLABLE_STRING.
///
/// # Errors
/// The text is too long.
pub fn put_compact_nullable_string(buf: &mut impl ByteBufMut, text: Option<&str>) -> anyhow::Result<()> {
    match text {
        Some(text) => put_compact_string(buf, text)?,
        None => put_unsigned_varint(buf, 0),
    }
    Ok(())
}

/// Writes an empty section of tagged fields.
pub fn put_no_tagged_fields(buf: &mut impl ByteBufMut) {
    buf.put_u8(0);
}

/// The size of a message of ours, by writing it.
///
/// # Errors
/// The message cannot be written.
pub fn written_size(write: impl FnOnce(&mut bytes::BytesMut) -> anyhow::Result<()>) -> anyhow::Result<usize> {
    let mut scratch = bytes::BytesMut::new();
    write(&mut scratch)?;
    Ok(scratch.len())
}

#[cfg(test)]
pub(super) mod testing {
    //! Golden messages: what Kafka's own classes wrote, as hexadecimal text.

    use bytes::{Bytes, BytesMut};
    use kafka_protocol::protocol::{Decodable, Encodable};

    /// The bytes that `text` spells.
    pub fn hex(text: &str) -> Bytes {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// Checks that `message` is written as `golden` at `version`, and that its size is told right.
    pub fn assert_written(message: &impl Encodable, version: i16, golden: &str) {
        let mut written = BytesMut::new();
        message.encode(&mut written, version).unwrap();
        assert_eq!(written, hex(golden));
        assert_eq!(message.compute_size(version).unwrap(), written.len());
    }

    /// Reads `golden`, all of it; and no shorter part of it is a message.
    pub fn read<T: Decodable>(version: i16, golden: &str) -> T {
        let whole = hex(golden);
        for end in 0..whole.len() {
            assert!(T::decode(&mut whole.slice(..end), version).is_err(), "{end} bytes");
        }
        let mut rest = whole;
        let message = T::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty());
        message
    }
}
