//! Compressors that write behind room for a batch header.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use lz4_flex::block;
use thiserror::Error;

use super::snappy::XERIAL_MAGIC;
use crate::header::{Compression, HEADER_LEN};

/// A codec to compress with, and how hard it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Records as they are.
    Uncompressed,
    /// `level` 1 to 9, or -1 for the default.
    Gzip {
        /// `compression.gzip.level`.
        level: i32,
    },
    /// Snappy in xerial's framing, as Java writes it.
    Snappy,
    /// The level is taken as given and has no effect: there is one compressor, the fast one.
    Lz4 {
        /// `compression.lz4.level`, 1 to 17.
        level: i32,
    },
    /// `level` -131072 to 22.
    Zstd {
        /// `compression.zstd.level`.
        level: i32,
    },
}

impl Codec {
    /// The id of the codec without its level.
    pub fn compression(self) -> Compression {
        match self {
            Codec::Uncompressed => Compression::None,
            Codec::Gzip { .. } => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 { .. } => Compression::Lz4,
            Codec::Zstd { .. } => Compression::Zstd,
        }
    }

    /// A codec at Kafka's default level.
    pub fn with_default_level(compression: Compression) -> Codec {
        match compression {
            Compression::None => Codec::Uncompressed,
            Compression::Gzip => Codec::Gzip { level: -1 },
            Compression::Snappy => Codec::Snappy,
            Compression::Lz4 => Codec::Lz4 { level: 9 },
            Compression::Zstd => Codec::Zstd { level: 3 },
        }
    }
}

/// The codec's library failed, which for writes to memory means that it had none left or was given a level it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("compression with {} failed: {detail}", codec.name())]
pub struct CompressError {
    /// The codec.
    pub codec: Compression,
    /// What its library said.
    pub detail: String,
}

/// Bytes in a block of xerial's framing (SnappyOutputStream's default).
const SNAPPY_BLOCK_BYTES: usize = 32 * 1024;
/// Bytes in a block of an LZ4 frame that Kafka writes.
const LZ4_BLOCK_BYTES: usize = 64 * 1024;
/// Frame magic, version 1 with independent blocks, blocks of 64 KiB, and the checksum of these two bytes.
const LZ4_FRAME_HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const LZ4_STORED_BIT: u32 = 1 << 31;
const LZ4_END_MARK: [u8; 4] = [0; 4];

/// A payload being written after room for a header.
pub(crate) enum Encoder {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Snappy(Box<Blocks<snap::raw::Encoder>>),
    Lz4(Blocks<block::CompressTable>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

/// A payload of blocks: what is finished, and the block being filled.
pub(crate) struct Blocks<C> {
    out: Vec<u8>,
    pending: Vec<u8>,
    packed: Vec<u8>,
    context: C,
}

impl<C> Blocks<C> {
    fn new(mut out: Vec<u8>, head: &[u8], context: C) -> Blocks<C> {
        out.extend_from_slice(head);
        Blocks { out, pending: Vec::new(), packed: Vec::new(), context }
    }

    /// Adds bytes; calls `flush` for every full block.
    fn write(
        &mut self,
        mut bytes: &[u8],
        block_len: usize,
        flush: fn(&mut Blocks<C>) -> io::Result<()>,
    ) -> io::Result<()> {
        while self.pending.len() + bytes.len() >= block_len {
            let (now, later) = bytes.split_at(block_len - self.pending.len());
            self.pending.extend_from_slice(now);
            flush(self)?;
            self.pending.clear();
            bytes = later;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }
}

fn flush_snappy(blocks: &mut Blocks<snap::raw::Encoder>) -> io::Result<()> {
    if blocks.pending.is_empty() {
        return Ok(());
    }
    blocks.packed.resize(snap::raw::max_compress_len(blocks.pending.len()), 0);
    let len = blocks.context.compress(&blocks.pending, &mut blocks.packed)?;
    blocks.out.extend_from_slice(&(len as u32).to_be_bytes());
    blocks.out.extend_from_slice(&blocks.packed[..len]);
    Ok(())
}

fn flush_lz4(blocks: &mut Blocks<block::CompressTable>) -> io::Result<()> {
    if blocks.pending.is_empty() {
        return Ok(());
    }
    blocks.packed.resize(block::get_maximum_output_size(blocks.pending.len()), 0);
    let len = block::compress_into_with_table(&blocks.pending, &mut blocks.packed, &mut blocks.context)
        .map_err(io::Error::other)?;
    let stored = len >= blocks.pending.len();
    let (bytes, size) = match stored {
        true => (&blocks.pending[..], blocks.pending.len() as u32 | LZ4_STORED_BIT),
        false => (&blocks.packed[..len], len as u32),
    };
    blocks.out.extend_from_slice(&size.to_le_bytes());
    blocks.out.extend_from_slice(bytes);
    Ok(())
}

impl Encoder {
    /// A stream that begins with zeros in place of a batch header.
    pub(crate) fn new(codec: Codec) -> Result<Encoder, CompressError> {
        let out = vec![0; HEADER_LEN];
        Ok(match codec {
            Codec::Uncompressed => Encoder::Plain(out),
            Codec::Gzip { level } => {
                let level = u32::try_from(level)
                    .map_or_else(|_| flate2::Compression::default(), |level| flate2::Compression::new(level.min(9)));
                Encoder::Gzip(GzEncoder::new(out, level))
            }
            Codec::Snappy => {
                let mut head = [0u8; 16];
                head[..8].copy_from_slice(&XERIAL_MAGIC);
                // Version and least compatible version, big-endian as Java's DataOutputStream writes them.
                head[11] = 1;
                head[15] = 1;
                Encoder::Snappy(Box::new(Blocks::new(out, &head, snap::raw::Encoder::new())))
            }
            Codec::Lz4 { .. } => Encoder::Lz4(Blocks::new(out, &LZ4_FRAME_HEADER, block::CompressTable::default())),
            Codec::Zstd { level } => Encoder::Zstd(
                zstd::stream::write::Encoder::new(out, level).map_err(|error| failed(Compression::Zstd, &error))?,
            ),
        })
    }

    fn codec(&self) -> Compression {
        match self {
            Encoder::Plain(_) => Compression::None,
            Encoder::Gzip(_) => Compression::Gzip,
            Encoder::Snappy(_) => Compression::Snappy,
            Encoder::Lz4(_) => Compression::Lz4,
            Encoder::Zstd(_) => Compression::Zstd,
        }
    }

    /// Adds bytes to the payload.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CompressError> {
        let result = match self {
            Encoder::Plain(out) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Snappy(blocks) => blocks.write(bytes, SNAPPY_BLOCK_BYTES, flush_snappy),
            Encoder::Lz4(blocks) => blocks.write(bytes, LZ4_BLOCK_BYTES, flush_lz4),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
        };
        result.map_err(|error| failed(self.codec(), &error))
    }

    /// Bytes that have come out so far, the room for the header among them.
    pub(crate) fn len(&self) -> usize {
        match self {
            Encoder::Plain(out) => out.len(),
            Encoder::Gzip(encoder) => encoder.get_ref().len(),
            Encoder::Snappy(blocks) => blocks.out.len(),
            Encoder::Lz4(blocks) => blocks.out.len(),
            Encoder::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    /// Ends the stream: room for a header, then the payload.
    pub(crate) fn finish(self) -> Result<Vec<u8>, CompressError> {
        let codec = self.codec();
        let result = match self {
            Encoder::Plain(out) => Ok(out),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Snappy(mut blocks) => flush_snappy(&mut blocks).map(|()| blocks.out),
            Encoder::Lz4(mut blocks) => flush_lz4(&mut blocks).map(|()| {
                blocks.out.extend_from_slice(&LZ4_END_MARK);
                blocks.out
            }),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        result.map_err(|error| failed(codec, &error))
    }
}

fn failed(codec: Compression, error: &io::Error) -> CompressError {
    CompressError { codec, detail: error.to_string() }
}
