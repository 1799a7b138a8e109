//! The few primitive types of the protocol that we read by hand.

use bytes::Buf;

/// The bytes do not hold the value that was to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrimitiveError {
    /// The bytes end inside the value.
    #[error("the bytes end inside a value")]
    Truncated,
    /// A varint of more than five bytes.
    #[error("a variable-length integer has more than five bytes")]
    VarintTooLong,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    NotText,
}

/// UNSIGNED_VARINT: seven bits a byte, lowest first.
///
/// # Errors
/// See [`PrimitiveError`].
pub fn unsigned_varint(buf: &mut impl Buf) -> Result<u32, PrimitiveError> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = buf.try_get_u8().map_err(|_| PrimitiveError::Truncated)?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(PrimitiveError::VarintTooLong)
}
