//! Zstandard frames, one or more.

use std::cell::Cell;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::{CHUNK_BYTES, DecompressError, Window};
use crate::header::Compression;

/// Most bytes that may come out of frames whose window is larger than `KEPT_WINDOW_LOG_MAX` asks for. The window is the
/// decoder's own memory, written as bytes come out, so this bounds what such a frame can occupy.
const LARGE_WINDOW_BYTES_MAX: usize = 24 << 20;
/// Largest window, as a power of two, of a context that a thread keeps. Producers use 2^21 at the usual levels.
const KEPT_WINDOW_LOG_MAX: u32 = 23;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SINGLE_SEGMENT: u8 = 0x20;

thread_local! {
    static KEPT: Cell<Option<Decoder<'static>>> = const { Cell::new(None) };
}

/// A zstd payload being read.
pub(crate) struct ZstdDecoder<'a> {
    input: &'a [u8],
    context: Option<Decoder<'static>>,
    /// Bytes given out so far, looked at when `large_window` is set.
    produced: usize,
    large_window: bool,
    /// No frame is begun and not finished.
    frame_ended: bool,
}

fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Zstd, detail }
}

impl<'a> ZstdDecoder<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Result<ZstdDecoder<'a>, DecompressError> {
        let no_context = DecompressError::NoContext { codec: Compression::Zstd };
        let mut context = match KEPT.take() {
            Some(context) => context,
            None => Decoder::new().map_err(|_| no_context.clone())?,
        };
        context.reinit().map_err(|_| no_context)?;
        let large_window = !small_window(input);
        Ok(ZstdDecoder { input, context: Some(context), produced: 0, large_window, frame_ended: input.is_empty() })
    }

    pub(crate) fn read_into(&mut self, window: &mut Window) -> Result<usize, DecompressError> {
        let context = self.context.as_mut().ok_or(corrupt("no context"))?;
        loop {
            if self.frame_ended {
                if self.input.is_empty() {
                    return Ok(0);
                }
                self.large_window |= !small_window(self.input);
            }
            let room = &mut window.room(CHUNK_BYTES)[..CHUNK_BYTES];
            let mut input = InBuffer::around(self.input);
            let mut output = OutBuffer::around(room);
            let hint = context.run(&mut input, &mut output).map_err(|_| corrupt("no zstd frame"))?;
            let (read, written) = (input.pos(), output.pos());
            self.input = self.input.get(read..).unwrap_or_default();
            self.frame_ended = hint == 0;
            window.advance(written);
            self.produced += written;
            if self.large_window && self.produced > LARGE_WINDOW_BYTES_MAX {
                return Err(DecompressError::TooLarge { limit: LARGE_WINDOW_BYTES_MAX });
            }
            if written > 0 {
                return Ok(written);
            }
            if read == 0 && !self.frame_ended {
                return Err(corrupt("frame is cut"));
            }
        }
    }
}

impl Drop for ZstdDecoder<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take().filter(|_| !self.large_window) {
            KEPT.set(Some(context));
        }
    }
}

/// True if the frame at the start of `input` says that it needs no large window. Frames without a window descriptor need
/// one of the size of their content, which stands in up to eight bytes; those are small if the field has two bytes or less.
fn small_window(input: &[u8]) -> bool {
    let Some(rest) = input.strip_prefix(&MAGIC) else { return false };
    let &[descriptor, next] = match rest.first_chunk::<2>() {
        Some(head) => head,
        None => return false,
    };
    if descriptor & SINGLE_SEGMENT == 0 {
        return 10 + u32::from(next >> 3) <= KEPT_WINDOW_LOG_MAX;
    }
    let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_len = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = rest.get(1 + dictionary_len..1 + dictionary_len + size_len).unwrap_or(&[0xff; 8]);
    size.iter().skip(3).all(|&byte| byte == 0)
}
