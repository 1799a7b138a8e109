//! Record batches as producers send them, with each codec.

use bytes::Bytes;
use record_batch::{BatchRef, Codec, HEADER_LEN, RecordReader, Rules, TargetCompression, batches, validate};

/// Most bytes that records may have once they are decompressed.
const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;
/// Where the CRC stands, and what it covers from there on.
const CRC_AT: usize = 17;
const COVERED_AT: usize = 21;

fn read_records(batch: &BatchRef<'_>) {
    let Ok(mut records) = RecordReader::open(batch, DECOMPRESSED_BYTES_MAX) else { return };
    let mut bytes = 0;
    while let Ok(Some(record)) = records.next_record() {
        bytes += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
        assert!(bytes <= DECOMPRESSED_BYTES_MAX + batch.bytes().len(), "{bytes} bytes of records");
    }
}

fn check(bytes: &[u8]) {
    for batch in batches(bytes) {
        let Ok(batch) = batch else { break };
        assert!(batch.bytes().len() >= HEADER_LEN);
        let _ = batch.verify_crc();
        let _ = batch.plain_records().map(Iterator::count);
        read_records(&batch);
    }
    let rules = Rules { max_decompressed_message_bytes: DECOMPRESSED_BYTES_MAX, ..Rules::default() };
    let rebuilding = Rules { compression: TargetCompression::Codec(Codec::Snappy), ..rules.clone() };
    for rules in [&rules, &rebuilding] {
        if let Ok(valid) = validate(Bytes::copy_from_slice(bytes), rules, 1_000) {
            drop(valid);
        }
    }
}

/// Batches one after the other, as they are and with the CRC of the first put right.
pub fn batch(input: &[u8]) {
    check(input);
    let mut bytes = input.to_vec();
    put_crc_right(&mut bytes);
    check(&bytes);
}

fn put_crc_right(bytes: &mut [u8]) {
    let end = match BatchRef::parse(bytes) {
        Ok(batch) => batch.bytes().len(),
        Err(_) => return,
    };
    let crc = crc32c::crc32c(&bytes[COVERED_AT..end]);
    bytes[CRC_AT..COVERED_AT].copy_from_slice(&crc.to_be_bytes());
}

/// The first byte chooses the codec, the second the number of records; the rest is what a batch holds.
pub fn codec(input: &[u8]) {
    let [codec, count, payload @ ..] = input else { return };
    let mut bytes = vec![0; HEADER_LEN];
    bytes[8..12].copy_from_slice(&((HEADER_LEN - 12 + payload.len()) as i32).to_be_bytes());
    bytes[16] = 2;
    bytes[22] = codec % 5;
    let last = i32::from(*count).max(1) - 1;
    bytes[23..27].copy_from_slice(&last.to_be_bytes());
    bytes[43..57].fill(0xff);
    bytes[57..61].copy_from_slice(&(last + 1).to_be_bytes());
    bytes.extend_from_slice(payload);
    put_crc_right(&mut bytes);
    check(&bytes);
}
