//! The frame of an answer. Records that were read are part of it without being copied: they stay where the read has put
//! them, and the socket takes them from there in one vectored write with what stands around them; or they were not read
//! at all, and go from their file to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};
use partition_log::{FileRange, Records};

/// The bytes of one or more answers, some of them shared, some still in their files.
#[derive(Debug, Default)]
pub struct ReplyFrame {
    bytes: BytesMut,
    /// Shared parts, each with the number of own bytes before it.
    shared: Vec<(usize, Records)>,
    shared_len: usize,
}

impl From<BytesMut> for ReplyFrame {
    fn from(bytes: BytesMut) -> Self {
        ReplyFrame { bytes, shared: Vec::new(), shared_len: 0 }
    }
}

/// What is to be written next.
#[derive(Debug)]
pub enum Part {
    /// Bytes in memory.
    Memory(ReplyBuf),
    /// Bytes in a file.
    File(FileRange),
}

impl ReplyFrame {
    /// Bytes of the frame.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.shared_len
    }

    /// True when there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The own bytes, to be appended to.
    pub fn own(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Appends records without a copy.
    pub fn share(&mut self, part: Records) {
        self.shared_len += part.len();
        self.shared.push((self.bytes.len(), part));
    }

    /// Appends another frame.
    pub fn append(&mut self, other: ReplyFrame) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.shared.extend(other.shared.into_iter().map(|(at, part)| (before + at, part)));
        self.shared_len += other.shared_len;
    }

    /// What is to be written, in order: what lies in memory between two files in one piece.
    pub fn into_parts(self) -> VecDeque<Part> {
        let mut own = self.bytes.freeze();
        let mut parts = VecDeque::with_capacity(1);
        let mut memory = ReplyBuf::default();
        let mut taken = 0;
        for (at, part) in self.shared {
            memory.push(own.split_to(at - taken));
            taken = at;
            match part {
                Records::Memory(bytes) => memory.push(bytes),
                Records::File(range) => {
                    parts.push_back(Part::Memory(std::mem::take(&mut memory)));
                    parts.push_back(Part::File(range));
                }
            }
        }
        memory.push(own);
        parts.push_back(Part::Memory(memory));
        parts
    }
}

/// What is still to be written of bytes in memory.
#[derive(Debug, Default)]
pub struct ReplyBuf {
    parts: VecDeque<Bytes>,
    left: usize,
}

impl ReplyBuf {
    fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.left += part.len();
            self.parts.push_back(part);
        }
    }
}

impl Buf for ReplyBuf {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = self.parts.len().min(slices.len());
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = IoSlice::new(part);
        }
        filled
    }

    fn advance(&mut self, count: usize) {
        let mut count = count.min(self.left);
        self.left -= count;
        while count > 0 {
            match self.parts.front_mut() {
                Some(part) if part.len() > count => {
                    part.advance(count);
                    return;
                }
                Some(part) => {
                    // Memory of what is written is free at once, however slowly the rest goes.
                    count -= part.len();
                    self.parts.pop_front();
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_their_order_whatever_is_written_at_once() {
        let make = || {
            let mut frame = ReplyFrame::from(BytesMut::from(&b"ab"[..]));
            frame.share(Records::Memory(Bytes::from_static(b"CDE")));
            frame.own().extend_from_slice(b"f");
            frame.share(Records::Memory(Bytes::from_static(b"GH")));
            let mut both = ReplyFrame::from(BytesMut::from(&b"01"[..]));
            both.append(frame);
            both.own().extend_from_slice(b"i");
            both
        };
        assert_eq!(make().len(), 11);
        for step in 1..12 {
            let mut parts = make().into_parts();
            let Some(Part::Memory(mut buf)) = parts.pop_front() else { panic!("no memory") };
            assert!(parts.is_empty());
            let mut written = Vec::new();
            while buf.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 8];
                let filled = buf.chunks_vectored(&mut slices);
                let all: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
                assert_eq!(all.len(), buf.remaining());
                let part = step.min(all.len());
                written.extend_from_slice(&all[..part]);
                buf.advance(part);
            }
            assert_eq!(written, b"01abCDEfGHi");
        }
        assert!(ReplyFrame::default().is_empty());
    }
}
