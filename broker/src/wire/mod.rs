//! Between a frame and a typed message: request headers, bodies by version, replies. Uses the message types of crate
//! kafka-protocol, and its own (`messages`) where that crate does not know Kafka's newest version.

pub mod clamped;
pub mod error_codes;
pub mod fetch_reply;
pub mod head;
pub mod messages;
pub mod metered;
pub mod primitive;
pub mod reply_frame;
pub mod text;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use error_codes::ErrorCodes;
use metered::MeteredBuf;
use reply_frame::ReplyFrame;

/// A request body could not be decoded, or an answer not encoded.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes are not a message of this API at this version.
    #[error("the request body cannot be decoded: {0}")]
    Undecodable(String),
    /// Decoding would need more memory than the byte budget has left.
    #[error(
        "decoding the request needs more memory than queued.max.request.bytes leaves: send fewer elements in one request"
    )]
    OverBudget,
    /// A field of the answer does not exist at this version; a fault of ours.
    #[error("the answer cannot be encoded at version {version}: {reason}")]
    Unencodable {
        /// Version that the client asked for.
        version: i16,
        /// What the encoder said.
        reason: String,
    },
}

/// An answer that can be sent.
pub trait Reply: ErrorCodes {
    /// Its frame: length, header, body.
    ///
    /// # Errors
    /// It holds a field that does not exist at `version`.
    fn into_frame(self, correlation_id: i32, version: i16) -> Result<ReplyFrame, WireError>;
}

impl<T: Encodable + HeaderVersion + ErrorCodes> Reply for T {
    fn into_frame(self, correlation_id: i32, version: i16) -> Result<ReplyFrame, WireError> {
        Ok(encode_reply(correlation_id, version, &self)?.into())
    }
}

/// Decodes a request body at `version`. Returns the message and what it cost in memory, in bytes beyond the frame.
///
/// # Errors
/// The body is not such a message, or costs more than `cost_max` bytes.
pub fn decode_body<T: Decodable>(body: Bytes, version: i16, cost_max: usize) -> Result<(T, usize), WireError> {
    let mut buf = MeteredBuf::new(body, cost_max);
    let decoded = T::decode(&mut buf, version);
    if buf.exhausted() {
        return Err(WireError::OverBudget);
    }
    match decoded {
        Ok(message) => Ok((message, buf.cost())),
        Err(error) => Err(WireError::Undecodable(error.to_string())),
    }
}

/// Encodes a whole reply frame: length, header, body.
///
/// # Errors
/// The message holds a field that does not exist at `version`.
pub fn encode_reply<T: Encodable + HeaderVersion>(
    correlation_id: i32,
    version: i16,
    message: &T,
) -> Result<BytesMut, WireError> {
    let unencodable = |e: anyhow::Error| WireError::Unencodable { version, reason: e.to_string() };
    let size = message.compute_size(version).map_err(unencodable)?;
    let mut frame = BytesMut::with_capacity(size + 16);
    frame.put_i32(0);
    frame.put_i32(correlation_id);
    if T::header_version(version) >= 1 {
        // Response header 1 ends with a tagged section; Kafka defines no tag for it.
        frame.put_u8(0);
    }
    message.encode(&mut frame, version).map_err(unencodable)?;
    let length = i32::try_from(frame.len() - 4)
        .map_err(|_| WireError::Unencodable { version, reason: "longer than 2 GiB".to_owned() })?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}
