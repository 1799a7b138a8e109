//! The four codecs of batches: streams that give out decompressed bytes piece by piece, and compressors.
//!
//! Nothing here trusts a length that came with the data: memory grows only with bytes that were really decoded, and the
//! reader above (`stream`) stops at a limit. Contexts that are costly to make are kept by each thread for its next batch.

mod encode;
mod gzip;
mod lz4;
mod snappy;
mod window;
mod zstd;

use thiserror::Error;

use crate::header::Compression;

pub(crate) use encode::Encoder;
pub use encode::{Codec, CompressError};
pub(crate) use window::Window;

/// Decompressed bytes asked for at a time.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// Why compressed records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// The bytes are not what their codec writes, or end too early.
    #[error("{} data is corrupt: {detail}", codec.name())]
    Corrupt {
        /// The codec of the batch.
        codec: Compression,
        /// What was found.
        detail: &'static str,
    },
    /// More comes out than is allowed.
    #[error("records of more than {limit} bytes after decompression")]
    TooLarge {
        /// The most that is allowed, in bytes.
        limit: usize,
    },
    /// The codec's library could not make a context.
    #[error("no memory for decompression with {}", codec.name())]
    NoContext {
        /// The codec of the batch.
        codec: Compression,
    },
}

/// A stream of decompressed bytes.
pub(crate) enum Decoder<'a> {
    Gzip(gzip::GzipDecoder<'a>),
    Snappy(snappy::SnappyDecoder<'a>),
    Lz4(lz4::Lz4Decoder<'a>),
    Zstd(zstd::ZstdDecoder<'a>),
}

impl<'a> Decoder<'a> {
    /// A stream over a payload; `None` for a codec that is none.
    pub(crate) fn new(codec: Compression, payload: &'a [u8]) -> Result<Option<Decoder<'a>>, DecompressError> {
        Ok(match codec {
            Compression::None => None,
            Compression::Gzip => Some(Decoder::Gzip(gzip::GzipDecoder::new(payload))),
            Compression::Snappy => Some(Decoder::Snappy(snappy::SnappyDecoder::new(payload))),
            Compression::Lz4 => Some(Decoder::Lz4(lz4::Lz4Decoder::new(payload)?)),
            Compression::Zstd => Some(Decoder::Zstd(zstd::ZstdDecoder::new(payload)?)),
        })
    }

    /// Appends the next piece to `window` and returns its length; 0 at the end. A piece is at most `CHUNK_BYTES`, or one
    /// block of a codec that has blocks. `room` is how many bytes may still come: a block that claims more is refused
    /// before it is decoded.
    pub(crate) fn read_into(&mut self, window: &mut Window, room: usize) -> Result<usize, DecompressError> {
        match self {
            Decoder::Gzip(decoder) => decoder.read_into(window),
            Decoder::Snappy(decoder) => decoder.read_into(window, room),
            Decoder::Lz4(decoder) => decoder.read_into(window),
            Decoder::Zstd(decoder) => decoder.read_into(window),
        }
    }
}

/// Takes `len` bytes from the front of `input`.
fn take<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(taken)
}

/// Takes a 32-bit number, least significant byte first.
fn take_u32_le(input: &mut &[u8]) -> Option<u32> {
    let (head, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_le_bytes(*head))
}
