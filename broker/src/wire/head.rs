//! The header in front of every request. Read by hand, because it comes before anything is known of the peer: nothing
//! in it is believed, and its tagged fields are skipped without being stored.

use bytes::{Buf, Bytes};
use kafka_protocol::protocol::StrBytes;

use super::primitive::unsigned_varint;

/// Most tagged fields accepted in a request header; Kafka defines none.
const TAGGED_FIELDS_MAX: u32 = 64;

/// Who asks what, and under which number it wants the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// Number of the API.
    pub api_key: i16,
    /// Version of the API that the body is written in and the answer has to be written in.
    pub api_version: i16,
    /// Comes back with the answer.
    pub correlation_id: i32,
    /// Name that the client gives itself; null is taken as empty.
    pub client_id: StrBytes,
}

/// The frame does not begin with a request header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The frame ends inside the header.
    #[error("the frame ends inside the request header")]
    Truncated,
    /// The client id is longer than the frame, or its length is below -1.
    #[error("the request header claims a client id of {length} bytes, which the frame does not hold")]
    ClientIdLength {
        /// What the header said.
        length: i16,
    },
    /// The client id is not UTF-8.
    #[error("the client id is not UTF-8")]
    ClientIdNotText,
    /// More tagged fields than any Kafka client sends, or one longer than the frame.
    #[error("the tagged fields of the request header are not valid")]
    TaggedFields,
}

/// API key and version at the front of a frame, without the rest of the header.
pub fn peek_api(frame: &[u8]) -> Option<(i16, i16)> {
    let bytes = frame.first_chunk::<4>()?;
    Some((i16::from_be_bytes([bytes[0], bytes[1]]), i16::from_be_bytes([bytes[2], bytes[3]])))
}

/// Reads the header off the front of `frame`; what is left is the body. `flexible` says whether this API at this
/// version has a header with tagged fields (request header 2).
///
/// # Errors
/// See [`HeadError`].
pub fn read_head(frame: &mut Bytes, flexible: bool) -> Result<RequestHead, HeadError> {
    let api_key = frame.try_get_i16().map_err(|_| HeadError::Truncated)?;
    let api_version = frame.try_get_i16().map_err(|_| HeadError::Truncated)?;
    let correlation_id = frame.try_get_i32().map_err(|_| HeadError::Truncated)?;
    // The client id keeps its two-byte length in both header versions (RequestHeader.json).
    let length = frame.try_get_i16().map_err(|_| HeadError::Truncated)?;
    let client_id = match usize::try_from(length) {
        Ok(length_bytes) if length_bytes <= frame.len() => {
            StrBytes::try_from(frame.split_to(length_bytes)).map_err(|_| HeadError::ClientIdNotText)?
        }
        Err(_) if length == -1 => StrBytes::default(),
        Ok(_) | Err(_) => return Err(HeadError::ClientIdLength { length }),
    };
    if flexible {
        skip_tagged_fields(frame)?;
    }
    Ok(RequestHead { api_key, api_version, correlation_id, client_id })
}

fn skip_tagged_fields(frame: &mut Bytes) -> Result<(), HeadError> {
    let count = unsigned_varint(frame).map_err(|_| HeadError::TaggedFields)?;
    if count > TAGGED_FIELDS_MAX {
        return Err(HeadError::TaggedFields);
    }
    for _ in 0..count {
        let _tag = unsigned_varint(frame).map_err(|_| HeadError::TaggedFields)?;
        let size = unsigned_varint(frame).map_err(|_| HeadError::TaggedFields)? as usize;
        if size > frame.len() {
            return Err(HeadError::TaggedFields);
        }
        frame.advance(size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(client_id_length: i16, rest: &[u8]) -> Bytes {
        let mut bytes = vec![0, 3, 0, 9, 0, 0, 0, 7];
        bytes.extend_from_slice(&client_id_length.to_be_bytes());
        bytes.extend_from_slice(rest);
        bytes.into()
    }

    #[test]
    fn bl_008_a_null_client_id_is_an_empty_one() {
        for length in [-1, 0] {
            let mut frame = head(length, &[0, 42]);
            let read = read_head(&mut frame, true).unwrap();
            assert_eq!((read.api_key, read.api_version, read.correlation_id), (3, 9, 7));
            assert_eq!(&*read.client_id, "");
            assert_eq!(&frame[..], [42]);
        }
    }

    #[test]
    fn a_client_id_that_is_longer_than_the_frame_is_refused() {
        assert_eq!(read_head(&mut head(900, b"abc"), false), Err(HeadError::ClientIdLength { length: 900 }));
        assert_eq!(read_head(&mut head(-2, b"abc"), false), Err(HeadError::ClientIdLength { length: -2 }));
    }

    #[test]
    fn twenty_million_tagged_fields_are_refused_unread() {
        let mut frame = head(0, &[0x80, 0xda, 0xc4, 0x09, 1, 0, 2, 0]);
        assert_eq!(read_head(&mut frame, true), Err(HeadError::TaggedFields));
    }
}
