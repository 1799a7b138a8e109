//! Snappy in both forms that producers send: one raw block (librdkafka, Go clients), or the framing of xerial's Java
//! library: a header, then blocks that each follow their length.

use super::{DecompressError, Window, take};
use crate::header::Compression;

/// First bytes of xerial's header; two big-endian 32-bit version numbers follow.
pub(super) const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER_LEN: usize = 16;
/// The least version a reader must know to read the framing (xerial: SnappyCodec.MINIMUM_COMPATIBLE_VERSION).
const XERIAL_VERSION_MIN: u32 = 1;
/// No snappy element makes more than 64 bytes out of 3, so a greater claim is a lie.
const EXPANSION_MAX: usize = 22;

enum Form {
    Unknown,
    Raw,
    Xerial,
}

/// A snappy payload being read.
pub(crate) struct SnappyDecoder<'a> {
    input: &'a [u8],
    form: Form,
}

fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Snappy, detail }
}

impl<'a> SnappyDecoder<'a> {
    pub(crate) fn new(input: &'a [u8]) -> SnappyDecoder<'a> {
        SnappyDecoder { input, form: Form::Unknown }
    }

    pub(crate) fn read_into(&mut self, window: &mut Window, room: usize) -> Result<usize, DecompressError> {
        loop {
            let block = match self.form {
                Form::Unknown if self.input.starts_with(&XERIAL_MAGIC) => {
                    self.skip_xerial_header()?;
                    self.form = Form::Xerial;
                    continue;
                }
                Form::Unknown if self.input.is_empty() => return Err(corrupt("no data")),
                Form::Unknown => {
                    self.form = Form::Raw;
                    continue;
                }
                Form::Raw => std::mem::take(&mut self.input),
                // Streams that were joined repeat the header between blocks.
                Form::Xerial if self.input.starts_with(&XERIAL_MAGIC) => {
                    self.skip_xerial_header()?;
                    continue;
                }
                Form::Xerial if self.input.is_empty() => return Ok(0),
                Form::Xerial => self.take_block()?,
            };
            if block.is_empty() {
                return Ok(0);
            }
            let written = decode_block(block, window, room)?;
            if written > 0 {
                return Ok(written);
            }
        }
    }

    fn skip_xerial_header(&mut self) -> Result<(), DecompressError> {
        let header = take(&mut self.input, XERIAL_HEADER_LEN).ok_or(corrupt("xerial header is cut"))?;
        let version = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        if version < XERIAL_VERSION_MIN {
            return Err(corrupt("xerial version is too old"));
        }
        Ok(())
    }

    fn take_block(&mut self) -> Result<&'a [u8], DecompressError> {
        let len = take(&mut self.input, 4).ok_or(corrupt("block length is cut"))?;
        let len = u32::from_be_bytes([len[0], len[1], len[2], len[3]]) as usize;
        take(&mut self.input, len).filter(|block| !block.is_empty()).ok_or(corrupt("block is cut"))
    }
}

fn decode_block(block: &[u8], window: &mut Window, room: usize) -> Result<usize, DecompressError> {
    let len = snap::raw::decompress_len(block).map_err(|_| corrupt("no block length"))?;
    if len > block.len().saturating_mul(EXPANSION_MAX) {
        return Err(corrupt("block claims more than it can hold"));
    }
    if len > room {
        return Err(DecompressError::TooLarge { limit: room });
    }
    let out = &mut window.room(len)[..len];
    let written = snap::raw::Decoder::new().decompress(block, out).map_err(|_| corrupt("no snappy block"))?;
    window.advance(written);
    Ok(written)
}
