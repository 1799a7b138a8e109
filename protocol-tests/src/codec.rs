//! Compression of record batches as clients do it. Uses flate2, snap, lz4_flex and zstd.

use std::io::{Read, Write};

use crate::snappy;

/// The codec of a batch: bits 0 to 2 of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not compressed.
    #[default]
    None = 0,
    /// gzip
    Gzip = 1,
    /// Snappy in the framing of the Java client (xerial).
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard.
    Zstd = 4,
}

impl Compression {
    /// Every codec and none.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec that the attributes of a batch name.
    pub fn of(attributes: i16) -> Self {
        let id = usize::from((attributes & 7) as u8);
        *Self::ALL.get(id).unwrap_or_else(|| panic!("no codec {id}"))
    }

    /// Compresses the records of a batch.
    pub fn compress(self, plain: &[u8]) -> Vec<u8> {
        match self {
            Self::None => plain.to_vec(),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory takes all")
            }
            Self::Snappy => snappy::compress_xerial(plain),
            Self::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(plain).expect("memory takes all");
                encoder.finish().expect("memory takes all")
            }
            Self::Zstd => zstd::bulk::compress(plain, 3).expect("memory takes all"),
        }
    }

    /// Undoes `compress`, whichever snappy framing was used.
    pub fn decompress(self, data: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match self {
            Self::None => return data.to_vec(),
            Self::Gzip => flate2::read::MultiGzDecoder::new(data).read_to_end(&mut plain),
            Self::Snappy => return snappy::decompress(data),
            Self::Lz4 => lz4_flex::frame::FrameDecoder::new(data).read_to_end(&mut plain),
            Self::Zstd => zstd::stream::read::Decoder::new(data).and_then(|mut d| d.read_to_end(&mut plain)),
        }
        .expect("the batch decompresses");
        plain
    }
}
