//! Gzip streams (RFC 1952) of one or more members, as Java's GZIPInputStream reads them.

use std::cell::Cell;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{CHUNK_BYTES, DecompressError, Window, take, take_u32_le};
use crate::header::Compression;

const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;

thread_local! {
    static KEPT: Cell<Option<Decompress>> = const { Cell::new(None) };
}

#[derive(PartialEq)]
enum State {
    FirstHeader,
    Body,
    AfterMember,
    Ended,
}

/// A gzip payload being read.
pub(crate) struct GzipDecoder<'a> {
    input: &'a [u8],
    inflate: Option<Decompress>,
    crc: Crc,
    state: State,
}

fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Gzip, detail }
}

impl<'a> GzipDecoder<'a> {
    pub(crate) fn new(input: &'a [u8]) -> GzipDecoder<'a> {
        GzipDecoder { input, inflate: None, crc: Crc::new(), state: State::FirstHeader }
    }

    pub(crate) fn read_into(&mut self, window: &mut Window) -> Result<usize, DecompressError> {
        loop {
            match self.state {
                State::Ended => return Ok(0),
                State::FirstHeader => {
                    skip_header(&mut self.input).ok_or(corrupt("no gzip header"))?;
                    self.begin_member();
                }
                // Java takes bytes after a member that are no further member for the end.
                State::AfterMember => match skip_header(&mut self.input) {
                    Some(()) => self.begin_member(),
                    None => self.state = State::Ended,
                },
                State::Body => {
                    let written = self.read_body(window)?;
                    if written > 0 {
                        return Ok(written);
                    }
                }
            }
        }
    }

    fn begin_member(&mut self) {
        let mut inflate = self.inflate.take().or_else(|| KEPT.take()).unwrap_or_else(|| Decompress::new(false));
        inflate.reset(false);
        self.inflate = Some(inflate);
        self.crc.reset();
        self.state = State::Body;
    }

    fn read_body(&mut self, window: &mut Window) -> Result<usize, DecompressError> {
        let inflate = self.inflate.as_mut().ok_or(corrupt("no member begun"))?;
        let room = window.room(CHUNK_BYTES);
        let room = &mut room[..CHUNK_BYTES];
        let (read_before, written_before) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(self.input, room, FlushDecompress::None).map_err(|_| corrupt("no deflate"))?;
        let read = (inflate.total_in() - read_before) as usize;
        let written = (inflate.total_out() - written_before) as usize;
        self.crc.update(&room[..written]);
        window.advance(written);
        self.input = self.input.get(read..).unwrap_or_default();
        match status {
            Status::StreamEnd => {
                let crc = take_u32_le(&mut self.input).ok_or(corrupt("trailer is cut"))?;
                let len = take_u32_le(&mut self.input).ok_or(corrupt("trailer is cut"))?;
                if crc != self.crc.sum() || len != self.crc.amount() {
                    return Err(corrupt("checksum or length of the trailer is wrong"));
                }
                self.state = State::AfterMember;
            }
            Status::Ok | Status::BufError if read == 0 && written == 0 => return Err(corrupt("data ends too early")),
            Status::Ok | Status::BufError => {}
        }
        Ok(written)
    }
}

impl Drop for GzipDecoder<'_> {
    fn drop(&mut self) {
        if let Some(inflate) = self.inflate.take() {
            KEPT.set(Some(inflate));
        }
    }
}

/// Moves `input` past a member's header; `None`, and `input` as it was, if there is none.
fn skip_header(input: &mut &[u8]) -> Option<()> {
    let mut rest = *input;
    let head = take(&mut rest, 10)?;
    if head[..3] != [0x1f, 0x8b, 8] {
        return None;
    }
    let flags = head[3];
    if flags & FLAG_EXTRA != 0 {
        let len = take(&mut rest, 2)?;
        take(&mut rest, usize::from(u16::from_le_bytes([len[0], len[1]])))?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            take(&mut rest, end + 1)?;
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        take(&mut rest, 2)?;
    }
    *input = rest;
    Some(())
}
