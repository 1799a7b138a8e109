//! Inputs to begin with: whole and valid ones of each kind, of which most mutations make nearly valid ones.

use monedula::api::TABLE;
use record_batch::control::{ControlRecordType, end_txn_marker_value};
use record_batch::{BatchBuilder, Codec, Compression, RecordData};

use crate::files::BESIDE;

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn filled(mut builder: BatchBuilder, records: i64) -> Vec<u8> {
    for at in 0..records {
        let text = format!("value {at} value {at}");
        builder.append(&RecordData::new(10 + at).key(b"key").value(text.as_bytes()));
    }
    builder.build().unwrap_or_default()
}

/// Batches with each codec, of producers of each kind.
pub fn batches() -> Vec<Vec<u8>> {
    let with = |codec| BatchBuilder::new(0).compression(Codec::with_default_level(codec));
    let mut found: Vec<Vec<u8>> = CODECS.iter().map(|codec| filled(with(*codec), 3)).collect();
    found.push(filled(BatchBuilder::new(0).producer(7, 1, 3).transactional(), 2));
    found.push(marker(0));
    found
}

fn marker(base_offset: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(base_offset).producer(7, 0, -1).transactional().control();
    let kind = ControlRecordType::Abort;
    builder.append(&RecordData::new(10).key(&kind.key()).value(&end_txn_marker_value(0)));
    builder.build().unwrap_or_default()
}

/// What batches hold, behind a codec's number and a count.
pub fn payloads() -> Vec<Vec<u8>> {
    let payload = |(at, bytes): (usize, Vec<u8>)| {
        let mut input = vec![at as u8, 3];
        input.extend_from_slice(bytes.get(record_batch::HEADER_LEN..).unwrap_or_default());
        input
    };
    batches().into_iter().take(CODECS.len()).enumerate().map(payload).collect()
}

/// A segment with data, an aborted transaction and two epochs.
pub fn segment() -> Vec<u8> {
    let mut bytes = filled(BatchBuilder::new(0), 2);
    bytes.extend(filled(BatchBuilder::new(2).producer(7, 0, 0).transactional(), 3));
    bytes.extend(marker(5));
    bytes.extend(filled(BatchBuilder::new(6).producer(9, 0, 0), 2));
    bytes
}

/// Segments.
pub fn segments() -> Vec<Vec<u8>> {
    vec![Vec::new(), segment(), filled(BatchBuilder::new(3), 1)]
}

/// Files beside a segment, behind the number of the file's name.
pub fn indexes() -> Vec<Vec<u8>> {
    let content: [Vec<u8>; BESIDE.len()] = [
        [0, 0, 0, 4, 0, 0, 0, 100].to_vec(),
        [0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 1].to_vec(),
        [&[0; 10][..], &[0, 0, 0, 0, 0, 0, 0, 2], &[0, 0, 0, 0, 0, 0, 0, 5], &[0; 8]].concat(),
        [&[0, 1][..], &[0; 8]].concat(),
        b"0\n1\n0 0\n".to_vec(),
        b"version: 0\ntopic_id: 4L6g3nShT-eMCtK--X86sw".to_vec(),
        segment(),
        filled(BatchBuilder::new(6), 2),
    ];
    let numbered = |(at, bytes): (usize, Vec<u8>)| [&[at as u8][..], &bytes].concat();
    content.into_iter().enumerate().map(numbered).collect()
}

/// Small files of text.
pub fn checkpoints() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 6] = [
        b"0\n2\na 0 5\nb 1 7\n",
        b"0\n2\n0 0\n3 120\n",
        b"version: 0\ntopic_id: 4L6g3nShT-eMCtK--X86sw",
        b"{\"version\":0,\"brokerEpoch\":12}",
        b"cluster.id=AAAA\ndirectory.id=4L6g3nShT-eMCtK--X86sw\nnode.id=1\nversion=1\n",
        b"",
    ];
    texts.map(<[u8]>::to_vec).to_vec()
}

/// Batches of the metadata log.
pub fn metadata() -> Vec<Vec<u8>> {
    vec![segment(), filled(BatchBuilder::new(0), 1)]
}

/// Bodies of every API at every version, that are mostly empty: the first byte chooses the API, the second the version.
pub fn requests() -> Vec<Vec<u8>> {
    let versions = |(at, entry): (usize, &monedula::api::Entry)| {
        let (first, last) = entry.versions_served;
        (0..=(last - first)).map(move |version| [&[at as u8, version as u8][..], &[0; 24]].concat()).collect::<Vec<_>>()
    };
    TABLE.iter().enumerate().flat_map(versions).collect()
}

/// Whole frames, behind the size of the pieces that they come in.
pub fn frames() -> Vec<Vec<u8>> {
    let framed = |entry: &monedula::api::Entry| {
        let (_, version) = entry.versions_served;
        let mut head = [entry.key.to_be_bytes(), version.to_be_bytes()].concat();
        head.extend([0, 0, 0, 1, 0, 1, b'c', 0]);
        head.extend([0; 24]);
        let length = (head.len() as i32).to_be_bytes();
        [&[7][..], &length, &head, &length, &head].concat()
    };
    TABLE.iter().map(framed).collect()
}
