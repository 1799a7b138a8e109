//! What hostile or broken bytes may cost: never a panic, and no memory or time out of proportion.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail where it stands")]

use bytes::Bytes;
use proptest::prelude::*;
use record_batch::{
    BatchBuilder, BatchHeader, BatchMut, BatchRef, Codec, Compression, DecompressError, HEADER_LEN, RecordData,
    RecordReader, Refusal, Rules, TargetCompression, ValidateError, batches, validate, whole_batches,
};

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// A batch of `count` records whose payload is `payload`, with a right CRC.
fn wrap(codec: Compression, count: i32, payload: &[u8]) -> Bytes {
    let header = BatchHeader {
        base_offset: 0,
        batch_length: (HEADER_LEN - 12 + payload.len()) as i32,
        partition_leader_epoch: -1,
        crc: 0,
        attributes: i16::from(codec.id()),
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count,
    };
    let mut bytes = [&header.to_bytes()[..], payload].concat();
    BatchMut::parse(&mut bytes).unwrap().refresh_crc();
    bytes.into()
}

fn read_all(bytes: &[u8], limit: usize) {
    for batch in whole_batches(bytes).flatten() {
        let Ok(mut reader) = RecordReader::open(&batch, limit) else { continue };
        while let Ok(Some(record)) = reader.next_record() {
            record.headers.count();
        }
    }
}

fn rules_for(target: Option<Compression>) -> Rules {
    let compression = match target {
        None => TargetCompression::Producer,
        Some(codec) => TargetCompression::Codec(Codec::with_default_level(codec)),
    };
    Rules { compression, ..Rules::default() }
}

fn sample(codec: Compression, seed: u8) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).compression(Codec::with_default_level(codec));
    for i in 0..seed % 20 + 1 {
        let value = vec![i; usize::from(seed) * 7];
        builder.append(&RecordData::new(i64::from(i)).key(&[i]).value(&value).headers(&[(b"h", Some(b"v"))]));
    }
    builder.build().unwrap()
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>, now: i64) {
        batches(&bytes).for_each(|batch| { let _ = batch.map(|b| b.header().last_offset()); });
        read_all(&bytes, 1 << 20);
        let _ = validate(bytes.into(), &Rules::default(), now);
    }

    #[test]
    fn random_payloads_and_headers_never_panic(
        codec in 0usize..5, count: i32, payload: Vec<u8>, head: [u8; 40], target in 0usize..5, now: i64,
    ) {
        let bytes = wrap(CODECS[codec], count.clamp(1, 40), &payload);
        read_all(&bytes, 1 << 20);
        let _ = validate(bytes.clone(), &rules_for(Some(CODECS[target])), now);
        let mut wild = bytes.to_vec();
        wild[21..61].copy_from_slice(&head);
        BatchMut::parse(&mut wild).unwrap().refresh_crc();
        read_all(&wild, 1 << 20);
        let _ = validate(wild.into(), &rules_for(Some(CODECS[target])), now);
    }

    #[test]
    fn a_changed_batch_never_panics_and_a_whole_one_survives(
        codec in 0usize..5, target in 0usize..5, seed: u8, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = sample(CODECS[codec], seed);
        let len = bytes.len();
        for (at, value) in &flips {
            bytes[21 + at.index(len - 21)] ^= value;
        }
        let changed = flips.iter().any(|(_, value)| *value != 0);
        BatchMut::parse(&mut bytes).unwrap().refresh_crc();
        read_all(&bytes, 1 << 20);
        let outcome = validate(bytes.clone().into(), &rules_for(Some(CODECS[target])), 1000);
        if !changed {
            let out = outcome.unwrap().assign(0, 0);
            prop_assert_eq!(records(&out), records(&bytes));
        }
    }
}

fn records(bytes: &[u8]) -> Vec<(i64, Vec<u8>)> {
    let batch = BatchRef::parse(bytes).unwrap();
    batch.verify_crc().unwrap();
    let mut reader = RecordReader::open(&batch, 1 << 20).unwrap();
    let mut out = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        out.push((record.timestamp, record.content.to_vec()));
    }
    out
}

/// Zeros compressed with `codec`, as a payload of about a mebibyte or less that would give `bytes` bytes.
fn bomb(codec: Compression, bytes: usize) -> Vec<u8> {
    use std::io::Write;
    let zeros = vec![0u8; 1 << 20];
    match codec {
        Compression::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            (0..bytes >> 20).for_each(|_| out.write_all(&zeros).unwrap());
            out.finish().unwrap()
        }
        Compression::Zstd => {
            let mut out = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            (0..bytes >> 20).for_each(|_| out.write_all(&zeros).unwrap());
            out.finish().unwrap()
        }
        // One block that repeats itself, and each other codec's best case, are far below the limits of the batch.
        Compression::Lz4 => {
            let block = lz4_flex::block::compress(&zeros[..1 << 16]);
            let mut out = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
            for _ in 0..bytes >> 16 {
                out.extend_from_slice(&(block.len() as u32).to_le_bytes());
                out.extend_from_slice(&block);
            }
            out.extend_from_slice(&[0; 4]);
            out
        }
        Compression::None | Compression::Snappy => snap::raw::Encoder::new().compress_vec(&zeros).unwrap(),
    }
}

#[test]
fn a_bomb_is_refused_at_the_limit_whatever_its_codec() {
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        // Zeros are records of length 0, which are no records: the first one already fails.
        let payload = bomb(codec, 4 << 20);
        let error = validate(wrap(codec, 1, &payload), &Rules::default(), 0).unwrap_err();
        assert_eq!(error.refusal(), Refusal::InvalidRecord, "{codec:?}");
        let bytes = wrap(codec, 1, &payload);
        let mut reader = RecordReader::open(&BatchRef::parse(&bytes).unwrap(), 1000).unwrap();
        let error = reader.next_record().unwrap_err();
        assert_eq!(error, DecompressError::TooLarge { limit: 1000 }.into(), "{codec:?}");
    }
}

#[test]
fn a_snappy_block_that_claims_more_than_it_can_hold_costs_nothing() {
    // 2^31 bytes from a handful.
    let payload = [0x80, 0x80, 0x80, 0x80, 0x08, 0, 0, 0];
    let error = validate(wrap(Compression::Snappy, 1, &payload), &Rules::default(), 0).unwrap_err();
    assert!(matches!(error, ValidateError::Decompress(DecompressError::Corrupt { .. })), "{error}");
}

/// One record of `len` bytes of zeros as its value, compressed with `codec`.
fn one_large_record(codec: Compression, len: usize) -> Vec<u8> {
    let value = vec![0; len];
    let mut builder = BatchBuilder::new(0).compression(Codec::with_default_level(codec));
    builder.append(&RecordData::new(5).key(b"k").value(&value).headers(&[(b"h", Some(b"v")), (b"n", None)]));
    builder.build().unwrap()
}

#[test]
fn bl_023_the_limit_holds_for_the_batch_as_sent_and_again_after_recompression() {
    for codec in CODECS.into_iter().skip(1) {
        let sent = one_large_record(codec, 3 << 20);
        let rules = Rules { max_message_bytes: 1 << 20, ..Rules::default() };
        validate(sent.clone().into(), &rules, 0).unwrap();
        let rules = Rules { compression: TargetCompression::Codec(Codec::Uncompressed), ..rules };
        let error = validate(sent.into(), &rules, 0).unwrap_err();
        assert_eq!(error.refusal(), Refusal::MessageTooLarge, "{codec:?}: {error}");
    }
}

#[test]
fn records_of_many_mebibytes_pass_through_recompression_unchanged() {
    for (from, to) in [(1, 4), (2, 3), (3, 1), (4, 2), (4, 0)] {
        let sent = one_large_record(CODECS[from], 3 << 20);
        let rules = Rules { max_message_bytes: 4 << 20, ..rules_for(Some(CODECS[to])) };
        let valid = validate(sent.clone().into(), &rules, 0).unwrap();
        assert!(valid.is_rebuilt());
        let out = valid.assign(0, 0);
        let read = |bytes: &[u8]| {
            let batch = BatchRef::parse(bytes).unwrap();
            let mut reader = RecordReader::open(&batch, 8 << 20).unwrap();
            let record = reader.next_record().unwrap().unwrap();
            let headers: Vec<_> = record.headers.map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec))).collect();
            (record.timestamp, record.content.to_vec(), headers)
        };
        assert_eq!(read(&out), read(&sent));
        assert_eq!(BatchHeader::parse(&out).unwrap().compression(), Ok(CODECS[to]));
    }
}

#[test]
fn large_records_are_checked_like_small_ones() {
    let sent = one_large_record(Compression::Zstd, 3 << 20);
    let rules = Rules { compacted: true, timestamp_after_max_ms: 2, ..Rules::default() };
    let error = validate(sent.clone().into(), &rules, 0).unwrap_err();
    assert_eq!(error.refusal(), Refusal::InvalidTimestamp);
    let rules = Rules { max_decompressed_message_bytes: 3 << 20, ..Rules::default() };
    let error = validate(sent.into(), &rules, 0).unwrap_err();
    assert!(matches!(error, ValidateError::RecordTooLarge { .. }));
}

#[test]
fn bl_025_xerials_header_has_big_endian_versions() {
    let sent = one_large_record(Compression::Gzip, 100_000);
    let out = validate(sent.into(), &rules_for(Some(Compression::Snappy)), 0).unwrap().assign(0, 0);
    let payload = BatchRef::parse(&out).unwrap().payload();
    assert_eq!(payload[..16], [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    let block = u32::from_be_bytes([payload[16], payload[17], payload[18], payload[19]]) as usize;
    assert_eq!(snap::raw::decompress_len(&payload[20..20 + block]).unwrap(), 32 * 1024);
}

#[test]
fn bl_026_joined_xerial_streams_are_read_on() {
    let mut builder = BatchBuilder::new(0);
    let value = vec![7; 40_000];
    (0..40).for_each(|i| builder.append(&RecordData::new(i).value(&value)));
    let plain = builder.build().unwrap();
    let plain = BatchRef::parse(&plain).unwrap();
    let mut payload = Vec::new();
    for piece in plain.payload().chunks(700_000) {
        payload.extend_from_slice(&[0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        for block in piece.chunks(32 * 1024) {
            let block = snap::raw::Encoder::new().compress_vec(block).unwrap();
            payload.extend_from_slice(&(block.len() as u32).to_be_bytes());
            payload.extend_from_slice(&block);
        }
    }
    let bytes = wrap(Compression::Snappy, 40, &payload);
    validate(bytes.clone(), &Rules::default(), 0).unwrap();
    let raw = snap::raw::Encoder::new().compress_vec(plain.payload()).unwrap();
    validate(wrap(Compression::Snappy, 40, &raw), &Rules::default(), 0).unwrap();
}
