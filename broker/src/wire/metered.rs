//! A buffer that counts what decoding makes of it. Elements of a request take more memory decoded than they took on the
//! wire (an empty topic entry is 2 bytes there and 80 here), so the decoder is stopped when the count passes what the
//! byte budget has left.

use std::ops::Range;

use bytes::{Buf, Bytes};
use kafka_protocol::protocol::buf::{ByteBuf, NotEnoughBytesError};

/// Memory that one primitive read stands for, in bytes. The most that a single read makes is an entry of a Metadata
/// request, two bytes on the wire and 72 decoded; other structs hold less for each of their fields.
const READ_COST_BYTES: usize = 72;

/// Bytes of a request body, with a count.
pub struct MeteredBuf {
    bytes: Bytes,
    cost: usize,
    cost_max: usize,
}

impl MeteredBuf {
    /// Meters `bytes`; after `cost_max` the buffer reads as empty, which ends any decoder.
    pub fn new(bytes: Bytes, cost_max: usize) -> Self {
        MeteredBuf { bytes, cost: 0, cost_max }
    }

    /// What the reads so far stand for, in bytes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// True once the limit is passed.
    pub fn exhausted(&self) -> bool {
        self.cost > self.cost_max
    }

    fn count(&mut self) {
        self.cost += READ_COST_BYTES;
        if self.exhausted() {
            self.bytes.clear();
        }
    }
}

impl Buf for MeteredBuf {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.count();
    }
}

impl ByteBuf for MeteredBuf {
    fn peek_bytes(&mut self, range: Range<usize>) -> Bytes {
        self.bytes.slice(range)
    }

    fn get_bytes(&mut self, size: usize) -> Bytes {
        let bytes = self.bytes.split_to(size);
        self.count();
        bytes
    }

    fn try_get_bytes(&mut self, size: usize) -> Result<Bytes, NotEnoughBytesError> {
        if self.bytes.len() < size { Err(NotEnoughBytesError) } else { Ok(self.get_bytes(size)) }
    }
}
