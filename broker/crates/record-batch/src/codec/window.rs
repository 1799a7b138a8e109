//! The decompressed bytes that are not used yet: a buffer that is filled at its end and emptied from its start.

use std::cell::Cell;

/// Largest buffer that a thread keeps for its next batch.
const KEPT_BYTES_MAX: usize = 512 * 1024;

thread_local! {
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes between `start` and `end` are decompressed and not used yet.
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Window {
    /// An empty window in the buffer this thread kept, if it did.
    pub(crate) fn new() -> Window {
        Window { bytes: KEPT.take(), start: 0, end: 0 }
    }

    /// The bytes not used yet.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Marks the first `len` of the filled bytes as used, and returns them.
    pub(crate) fn consume(&mut self, len: usize) -> &[u8] {
        let from = self.start;
        self.start = (from + len).min(self.end);
        &self.bytes[from..self.start]
    }

    /// At least `len` bytes of room after the filled ones. Moves the filled ones to the front if that makes the room.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.bytes.len() - self.end < len {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let need = self.end + len;
        if self.bytes.len() < need {
            // Doubling keeps the copies of a growing record linear.
            self.bytes.resize(need.max(self.bytes.len() * 2), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Adds `len` bytes that were written to the room.
    pub(crate) fn advance(&mut self, len: usize) {
        self.end = (self.end + len).min(self.bytes.len());
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.bytes.len() <= KEPT_BYTES_MAX {
            KEPT.set(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_over_any_border() {
        let mut window = Window::new();
        let mut next_in = 0u8;
        let mut next_out = 0u8;
        for step in 1..200usize {
            let room = window.room(step);
            for slot in &mut room[..step] {
                *slot = next_in;
                next_in = next_in.wrapping_add(1);
            }
            window.advance(step);
            let used = window.filled().len().min(step - step / 5);
            for &byte in window.consume(used) {
                assert_eq!(byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
        }
    }
}
