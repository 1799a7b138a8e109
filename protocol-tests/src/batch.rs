//! Record batches (magic 2) written and read by hand, right ones and wrong ones: every header field can be set to a lie.
//! Uses crc32c and the codecs.

pub use crate::codec::Compression;

/// Length of a batch's header up to the records.
pub const HEADER: usize = 61;

/// One record. `None` is null; headers keep their order and may repeat a key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// Milliseconds since 1970, absolute.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The value; null is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record without key whose timestamp is now.
    pub fn value(value: impl AsRef<[u8]>) -> Self {
        Self { timestamp: now_ms(), value: Some(value.as_ref().to_vec()), ..Self::default() }
    }

    /// With this key.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    /// With this timestamp.
    pub fn at(mut self, timestamp: i64) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// With one header more.
    pub fn header(mut self, key: &str, value: Option<&[u8]>) -> Self {
        self.headers.push((key.to_owned(), value.map(<[u8]>::to_vec)));
        self
    }

    fn write(&self, out: &mut Vec<u8>, base_timestamp: i64, offset_delta: i32) {
        let mut body = vec![0u8];
        varint(&mut body, self.timestamp - base_timestamp);
        varint(&mut body, i64::from(offset_delta));
        nullable(&mut body, self.key.as_deref());
        nullable(&mut body, self.value.as_deref());
        varint(&mut body, self.headers.len() as i64);
        for (key, value) in &self.headers {
            nullable(&mut body, Some(key.as_bytes()));
            nullable(&mut body, value.as_deref());
        }
        varint(out, body.len() as i64);
        out.extend(body);
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

/// A batch to send. The `Option` fields override what would be right.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What it holds.
    pub records: Vec<Record>,
    /// How the records are compressed.
    pub compression: Compression,
    /// Attributes beside the codec (timestamp type, transactional, control).
    pub attributes: i16,
    /// Sent as 0 by producers.
    pub base_offset: i64,
    /// Record format.
    pub magic: i8,
    /// Producer id, epoch and first sequence; -1 each without idempotence.
    pub producer: (i64, i16, i32),
    /// A false record count.
    pub record_count: Option<i32>,
    /// A false last offset delta.
    pub last_offset_delta: Option<i32>,
    /// A false maximal timestamp.
    pub max_timestamp: Option<i64>,
    /// False deltas of the records' offsets.
    pub offset_deltas: Option<Vec<i32>>,
    /// Record bytes, compressed already, in place of `records`.
    pub payload: Option<Vec<u8>>,
    /// Flips a bit of the checksum.
    pub bad_crc: bool,
}

impl Batch {
    /// A right batch without producer id.
    pub fn new(records: Vec<Record>) -> Self {
        Self {
            records,
            compression: Compression::None,
            attributes: 0,
            base_offset: 0,
            magic: 2,
            producer: (-1, -1, -1),
            record_count: None,
            last_offset_delta: None,
            max_timestamp: None,
            offset_deltas: None,
            payload: None,
            bad_crc: false,
        }
    }

    /// A right batch of values without keys.
    pub fn of(values: &[&str]) -> Self {
        Self::new(values.iter().map(Record::value).collect())
    }

    /// Compressed with `codec`.
    pub fn compressed(mut self, codec: Compression) -> Self {
        self.compression = codec;
        self
    }

    /// From an idempotent producer.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer = (id, epoch, base_sequence);
        self
    }

    /// Changes any field, for wrong batches.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The record bytes before compression.
    pub fn plain_records(&self) -> Vec<u8> {
        let base = self.records.first().map_or(0, |r| r.timestamp);
        let mut out = Vec::new();
        for (i, record) in self.records.iter().enumerate() {
            let delta = self.offset_deltas.as_ref().map_or(i as i32, |d| d[i]);
            record.write(&mut out, base, delta);
        }
        out
    }

    /// The bytes as a client sends them.
    pub fn bytes(&self) -> Vec<u8> {
        let count = self.records.len() as i32;
        let payload = self.payload.clone().unwrap_or_else(|| self.compression.compress(&self.plain_records()));
        let max = self.records.iter().map(|r| r.timestamp).max().unwrap_or(-1);
        let mut checked = Vec::new();
        checked.extend((self.attributes | self.compression as i16).to_be_bytes());
        checked.extend(self.last_offset_delta.unwrap_or(count - 1).to_be_bytes());
        checked.extend(self.records.first().map_or(0, |r| r.timestamp).to_be_bytes());
        checked.extend(self.max_timestamp.unwrap_or(max).to_be_bytes());
        checked.extend(self.producer.0.to_be_bytes());
        checked.extend(self.producer.1.to_be_bytes());
        checked.extend(self.producer.2.to_be_bytes());
        checked.extend(self.record_count.unwrap_or(count).to_be_bytes());
        checked.extend(payload);
        let crc = crc32c::crc32c(&checked) ^ u32::from(self.bad_crc);
        let mut out = self.base_offset.to_be_bytes().to_vec();
        out.extend((checked.len() as i32 + 9).to_be_bytes());
        out.extend((-1i32).to_be_bytes());
        out.extend(self.magic.to_be_bytes());
        out.extend(crc.to_be_bytes());
        out.extend(checked);
        out
    }
}

/// A batch as it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record, less `base_offset`.
    pub last_offset_delta: i32,
    /// Epoch in which it was appended.
    pub leader_epoch: i32,
    /// Codec, timestamp type and flags.
    pub attributes: i16,
    /// Timestamp that the records' deltas count from.
    pub base_timestamp: i64,
    /// Greatest timestamp.
    pub max_timestamp: i64,
    /// Producer id, epoch and first sequence.
    pub producer: (i64, i16, i32),
    /// The record bytes as stored.
    pub payload: Vec<u8>,
    /// Offset and content of each record.
    pub records: Vec<(i64, Record)>,
}

/// Reads every whole batch of a Fetch answer, checks the checksums and ignores a cut one at the end, as clients do.
pub fn parse(mut bytes: &[u8]) -> Vec<Fetched> {
    let mut batches = Vec::new();
    while bytes.len() >= HEADER {
        let size = 12 + read_i32(bytes, 8) as usize;
        if bytes.len() < size {
            break;
        }
        batches.push(parse_one(&bytes[..size]));
        bytes = &bytes[size..];
    }
    batches
}

fn parse_one(b: &[u8]) -> Fetched {
    assert_eq!(b[16], 2, "magic of a fetched batch");
    assert_eq!(read_i32(b, 17) as u32, crc32c::crc32c(&b[21..]), "CRC of a fetched batch");
    let attributes = i16::from_be_bytes([b[21], b[22]]);
    let (base_offset, base_timestamp) = (read_i64(b, 0), read_i64(b, 27));
    let plain = Compression::of(attributes).decompress(&b[HEADER..]);
    let mut rest = plain.as_slice();
    let records = (0..read_i32(b, 57)).map(|_| parse_record(&mut rest, base_offset, base_timestamp)).collect();
    assert!(rest.is_empty(), "bytes after the last record");
    Fetched {
        base_offset,
        last_offset_delta: read_i32(b, 23),
        leader_epoch: read_i32(b, 12),
        attributes,
        base_timestamp,
        max_timestamp: read_i64(b, 35),
        producer: (read_i64(b, 43), i16::from_be_bytes([b[51], b[52]]), read_i32(b, 53)),
        payload: b[HEADER..].to_vec(),
        records,
    }
}

fn parse_record(rest: &mut &[u8], base_offset: i64, base_timestamp: i64) -> (i64, Record) {
    let size = read_varint(rest) as usize;
    let (mut body, after) = rest.split_at(size);
    *rest = after;
    body = &body[1..];
    let timestamp = base_timestamp + read_varint(&mut body);
    let offset = base_offset + read_varint(&mut body);
    let key = read_nullable(&mut body);
    let value = read_nullable(&mut body);
    let headers = (0..read_varint(&mut body))
        .map(|_| {
            let name = read_nullable(&mut body).expect("a header has a key");
            (String::from_utf8(name).expect("UTF-8"), read_nullable(&mut body))
        })
        .collect();
    (offset, Record { timestamp, key, value, headers })
}

fn read_i32(b: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

fn read_i64(b: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

/// Writes a zigzag varint.
pub fn varint(out: &mut Vec<u8>, value: i64) {
    let mut v = ((value << 1) ^ (value >> 63)) as u64;
    while v >= 0x80 {
        out.push((v & 0x7f) as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn nullable(out: &mut Vec<u8>, value: Option<&[u8]>) {
    varint(out, value.map_or(-1, |v| v.len() as i64));
    out.extend(value.unwrap_or_default());
}

fn read_varint(bytes: &mut &[u8]) -> i64 {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            break;
        }
    }
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn read_nullable(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let size = read_varint(bytes);
    (size >= 0).then(|| {
        let (head, rest) = bytes.split_at(size as usize);
        *bytes = rest;
        head.to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_back_as_it_was_written_with_every_codec() {
        let record = Record::value("v").key("k").at(7).header("a", Some(b"1")).header("a", None);
        for codec in Compression::ALL {
            let records = vec![record.clone(), Record { timestamp: 9, ..Record::default() }];
            let got = parse(&Batch::new(records.clone()).compressed(codec).producer(5, 1, 3).bytes());
            assert_eq!(got.len(), 1);
            assert_eq!(got[0].records, vec![(0, records[0].clone()), (1, records[1].clone())]);
            assert_eq!((got[0].producer, got[0].max_timestamp), ((5, 1, 3), 9));
        }
    }
}
