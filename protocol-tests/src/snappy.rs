//! The two framings of snappy that Kafka's clients send: one raw block (librdkafka) and xerial's blocks (Java). Uses snap.

/// What every xerial stream starts with.
pub const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Java's block size.
const BLOCK: usize = 32 * 1024;

/// The framing of the Java client: header, then blocks with big-endian lengths.
pub fn compress_xerial(plain: &[u8]) -> Vec<u8> {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend(1i32.to_be_bytes());
    out.extend(1i32.to_be_bytes());
    for block in plain.chunks(BLOCK) {
        let packed = compress_raw(block);
        out.extend(i32::try_from(packed.len()).expect("a small block").to_be_bytes());
        out.extend(packed);
    }
    out
}

/// The framing of librdkafka: none.
pub fn compress_raw(plain: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(plain).expect("a block under 4 GiB")
}

/// Undoes either.
pub fn decompress(data: &[u8]) -> Vec<u8> {
    let mut decoder = snap::raw::Decoder::new();
    let Some(mut blocks) = data.strip_prefix(&XERIAL_MAGIC) else {
        return decoder.decompress_vec(data).expect("a raw snappy block");
    };
    blocks = &blocks[8..];
    let mut plain = Vec::new();
    while let Some((size, rest)) = blocks.split_first_chunk::<4>() {
        let (block, rest) = rest.split_at(u32::from_be_bytes(*size) as usize);
        plain.extend(decoder.decompress_vec(block).expect("a snappy block"));
        blocks = rest;
    }
    plain
}
