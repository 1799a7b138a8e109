//! Zigzag variable-length integers of the record format. Reads from the front of a slice and moves it on.

/// The bytes end, or the number is longer than its type can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VarintError {
    /// No byte left where one is due.
    Truncated,
    /// The last byte a number of this type can have says that more follow.
    TooLong,
}

/// Reads a 32-bit number (Kafka: ByteUtils.readVarint). The four bits of a fifth byte that do not fit are dropped, as there.
#[inline]
pub(crate) fn read_i32(input: &mut &[u8]) -> Result<i32, VarintError> {
    let (&first, rest) = input.split_first().ok_or(VarintError::Truncated)?;
    *input = rest;
    if first < 0x80 {
        return Ok(unzigzag_i32(u32::from(first)));
    }
    let mut raw = u32::from(first & 0x7f);
    for shift in [7, 14, 21, 28] {
        let (&byte, rest) = input.split_first().ok_or(VarintError::Truncated)?;
        *input = rest;
        raw |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(unzigzag_i32(raw));
        }
    }
    Err(VarintError::TooLong)
}

/// Reads a 64-bit number (Kafka: ByteUtils.readVarlong).
#[inline]
pub(crate) fn read_i64(input: &mut &[u8]) -> Result<i64, VarintError> {
    let mut raw = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or(VarintError::Truncated)?;
        *input = rest;
        raw |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
        }
    }
    Err(VarintError::TooLong)
}

#[inline]
fn unzigzag_i32(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

/// Appends a 32-bit number.
#[inline]
pub(crate) fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_i64(out, i64::from(value));
}

/// Appends a 64-bit number. A value that fits 32 bits gets the bytes `write_i32` gives it.
#[inline]
pub(crate) fn write_i64(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// Bytes that `write_i64` appends for `value`.
#[inline]
pub(crate) fn len_i64(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    let bits = 64 - (raw | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive_their_bytes(small: i32, large: i64) {
            let mut out = Vec::new();
            write_i32(&mut out, small);
            prop_assert_eq!(out.len(), len_i64(i64::from(small)));
            write_i64(&mut out, large);
            let mut rest = &out[..];
            prop_assert_eq!(read_i32(&mut rest), Ok(small));
            prop_assert_eq!(rest.len(), len_i64(large));
            prop_assert_eq!(read_i64(&mut rest), Ok(large));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn too_long_and_torn_numbers_are_refused() {
        assert_eq!(read_i32(&mut &[0x80u8, 0x80, 0x80, 0x80, 0x80][..]), Err(VarintError::TooLong));
        assert_eq!(read_i32(&mut &[0x80u8, 0x80][..]), Err(VarintError::Truncated));
        assert_eq!(read_i64(&mut &[0xffu8; 11][..]), Err(VarintError::TooLong));
        assert_eq!(read_i64(&mut &[0xffu8; 9][..]), Err(VarintError::Truncated));
    }
}
