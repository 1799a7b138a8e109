//! LZ4 frames as Kafka's Lz4BlockInputStream reads them: one frame of independent blocks, header and block checksums
//! checked, the checksum of the whole content not.

use std::hash::Hasher;

use twox_hash::XxHash32;

use super::{DecompressError, Window, take, take_u32_le};
use crate::header::Compression;

const MAGIC: u32 = 0x184d_2204;
const STORED_BIT: u32 = 1 << 31;
const FLAG_RESERVED: u8 = 0x03;
const FLAG_CONTENT_SIZE: u8 = 0x08;
const FLAG_BLOCK_CHECKSUM: u8 = 0x10;
const FLAG_INDEPENDENT: u8 = 0x20;
const VERSION: u8 = 1;

/// An LZ4 payload being read.
pub(crate) struct Lz4Decoder<'a> {
    input: &'a [u8],
    block_checksums: bool,
    block_len_max: usize,
    ended: bool,
}

fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Lz4, detail }
}

fn xxhash32(bytes: &[u8]) -> u32 {
    let mut hash = XxHash32::with_seed(0);
    hash.write(bytes);
    hash.finish() as u32
}

impl<'a> Lz4Decoder<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Result<Lz4Decoder<'a>, DecompressError> {
        let mut rest = input;
        if take_u32_le(&mut rest) != Some(MAGIC) {
            return Err(corrupt("no frame magic"));
        }
        let &[flags, size_code] = rest.first_chunk::<2>().ok_or(corrupt("frame header is cut"))?;
        if flags >> 6 != VERSION || flags & FLAG_RESERVED != 0 {
            return Err(corrupt("frame version or flags are unknown"));
        }
        if flags & FLAG_INDEPENDENT == 0 {
            return Err(corrupt("blocks depend on each other"));
        }
        let block_len_max = match size_code {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return Err(corrupt("block size is unknown")),
        };
        let descriptor_len = if flags & FLAG_CONTENT_SIZE == 0 { 2 } else { 10 };
        let descriptor = take(&mut rest, descriptor_len).ok_or(corrupt("frame header is cut"))?;
        let checksum = take(&mut rest, 1).ok_or(corrupt("frame header is cut"))?;
        if checksum[0] != (xxhash32(descriptor) >> 8) as u8 {
            return Err(corrupt("checksum of the frame header is wrong"));
        }
        let block_checksums = flags & FLAG_BLOCK_CHECKSUM != 0;
        Ok(Lz4Decoder { input: rest, block_checksums, block_len_max, ended: false })
    }

    pub(crate) fn read_into(&mut self, window: &mut Window) -> Result<usize, DecompressError> {
        while !self.ended {
            let size = take_u32_le(&mut self.input).ok_or(corrupt("block size is cut"))?;
            if size == 0 {
                self.ended = true;
                break;
            }
            let len = (size & !STORED_BIT) as usize;
            if len > self.block_len_max {
                return Err(corrupt("block is larger than its frame allows"));
            }
            let block = take(&mut self.input, len).ok_or(corrupt("block is cut"))?;
            if self.block_checksums && take_u32_le(&mut self.input) != Some(xxhash32(block)) {
                return Err(corrupt("checksum of a block is wrong"));
            }
            let written = if size & STORED_BIT != 0 {
                window.room(len)[..len].copy_from_slice(block);
                len
            } else {
                let out = &mut window.room(self.block_len_max)[..self.block_len_max];
                lz4_flex::block::decompress_into(block, out).map_err(|_| corrupt("no lz4 block"))?
            };
            window.advance(written);
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}
