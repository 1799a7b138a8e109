//! Kafka's primitive types written and read by hand, for what the typed messages cannot say: newer versions and malformed requests.
//! Uses nothing.

use uuid::Uuid;

/// Builds a request body field by field.
#[derive(Default, Clone)]
pub struct Writer(pub Vec<u8>);

#[allow(missing_docs, reason = "each writes the type of Kafka's protocol guide that it is named after")]
impl Writer {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn i8(mut self, v: i8) -> Self {
        self.0.extend(v.to_be_bytes());
        self
    }
    pub fn i16(mut self, v: i16) -> Self {
        self.0.extend(v.to_be_bytes());
        self
    }
    pub fn i32(mut self, v: i32) -> Self {
        self.0.extend(v.to_be_bytes());
        self
    }
    pub fn i64(mut self, v: i64) -> Self {
        self.0.extend(v.to_be_bytes());
        self
    }
    pub fn uuid(mut self, v: Uuid) -> Self {
        self.0.extend(v.as_bytes());
        self
    }
    pub fn raw(mut self, v: &[u8]) -> Self {
        self.0.extend(v);
        self
    }
    pub fn string(self, v: &str) -> Self {
        self.i16(i16::try_from(v.len()).expect("a short string")).raw(v.as_bytes())
    }
    pub fn uvarint(mut self, mut v: u32) -> Self {
        while v >= 0x80 {
            self.0.push((v & 0x7f) as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
        self
    }
    pub fn compact_string(self, v: &str) -> Self {
        self.uvarint(v.len() as u32 + 1).raw(v.as_bytes())
    }
    /// A compact string or array that is absent.
    pub fn compact_null(self) -> Self {
        self.uvarint(0)
    }
    /// The count in front of a compact array of `n` elements.
    pub fn compact_count(self, n: u32) -> Self {
        self.uvarint(n.wrapping_add(1))
    }
    /// No tagged fields.
    pub fn no_tags(self) -> Self {
        self.uvarint(0)
    }
}

/// Reads an answer field by field; every method fails the test when the bytes are too few.
pub struct Reader<'a>(pub &'a [u8]);

#[allow(missing_docs, reason = "each reads the type of Kafka's protocol guide that it is named after")]
impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk::<N>().expect("the answer ends early");
        self.0 = rest;
        *head
    }
    pub fn i8(&mut self) -> i8 {
        i8::from_be_bytes(self.take())
    }
    pub fn bool(&mut self) -> bool {
        self.i8() != 0
    }
    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }
    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }
    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }
    pub fn uuid(&mut self) -> Uuid {
        Uuid::from_bytes(self.take())
    }
    pub fn uvarint(&mut self) -> u32 {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.take::<1>()[0];
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        panic!("a varint of more than five bytes");
    }
    pub fn raw(&mut self, n: usize) -> Vec<u8> {
        assert!(self.0.len() >= n, "the answer ends early");
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head.to_vec()
    }
    /// `None` is null.
    pub fn compact_string(&mut self) -> Option<String> {
        let n = self.uvarint() as usize;
        (n > 0).then(|| String::from_utf8(self.raw(n - 1)).expect("UTF-8"))
    }
    pub fn compact_count(&mut self) -> usize {
        (self.uvarint() as usize).saturating_sub(1)
    }
    /// Tagged fields: their numbers and bytes.
    pub fn tags(&mut self) -> Vec<(u32, Vec<u8>)> {
        (0..self.uvarint())
            .map(|_| {
                let tag = self.uvarint();
                let size = self.uvarint() as usize;
                (tag, self.raw(size))
            })
            .collect()
    }
    /// Fails the test when bytes are left.
    pub fn end(self) {
        assert!(self.0.is_empty(), "{} bytes are left after the answer", self.0.len());
    }
}
