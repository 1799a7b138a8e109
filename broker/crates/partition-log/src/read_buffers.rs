//! Memory that reads fill, used again and again: fresh memory of a fetch's size comes from the system page by page, and
//! clearing those pages costs more than copying the records into them.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Smallest and largest buffer that is kept, without the extra.
const KEPT_BYTES_MIN: usize = 16 << 10;
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Room beyond a power of two, because a read takes a little more than the round number that was asked for.
const EXTRA_BYTES: usize = 8 << 10;
/// Bytes kept in all buffers that nobody uses.
const IDLE_BYTES_MAX: usize = 16 << 20;
const CLASSES: usize = (KEPT_BYTES_MAX / KEPT_BYTES_MIN).ilog2() as usize + 1;

#[derive(Debug, Default)]
struct Idle {
    buffers: [Vec<Vec<u8>>; CLASSES],
    bytes: usize,
}

/// The buffers of a node that are not in use.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffers {
    idle: Mutex<Idle>,
}

/// A buffer in use; it goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    len: usize,
    home: Weak<ReadBuffers>,
}

/// Index of the smallest class that holds `len` bytes; `None` for more than is kept.
fn class_of(len: usize) -> Option<usize> {
    let classes = (0..CLASSES).map(|class| (KEPT_BYTES_MIN << class) + EXTRA_BYTES);
    classes.into_iter().position(|room| len <= room)
}

impl ReadBuffers {
    /// A buffer of `len` bytes with any content.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> ReadBuffer {
        // Small reads find warm memory in the allocator, and giant ones are too rare to keep memory for.
        let class = if len < KEPT_BYTES_MIN { None } else { class_of(len) };
        let Some(class) = class else { return ReadBuffer { bytes: vec![0; len], len, home: Weak::new() } };
        let kept = {
            let mut idle = self.idle.lock();
            let kept = idle.buffers[class].pop();
            idle.bytes -= kept.as_ref().map_or(0, Vec::len);
            kept
        };
        let bytes = kept.unwrap_or_else(|| vec![0; (KEPT_BYTES_MIN << class) + EXTRA_BYTES]);
        ReadBuffer { bytes, len, home: Arc::downgrade(self) }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let Some(class) = class_of(bytes.len()) else { return };
        let mut idle = self.idle.lock();
        if idle.bytes + bytes.len() <= IDLE_BYTES_MAX {
            idle.bytes += bytes.len();
            idle.buffers[class].push(bytes);
        }
    }

    /// Lets go of all memory that nobody uses.
    pub(crate) fn release(&self) {
        *self.idle.lock() = Idle::default();
    }
}

impl ReadBuffer {
    /// All of it, to be filled.
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// Leaves only what was filled.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_memory_is_bounded() {
        let buffers = Arc::new(ReadBuffers::default());
        let first = buffers.take((1 << 20) + 5000);
        assert_eq!(first.len(), (1 << 20) + 5000);
        let at = first.as_ptr();
        drop(first);
        assert_eq!(buffers.take(600 << 10).as_ptr(), at);
        let many: Vec<ReadBuffer> = (0..50).map(|_| buffers.take(1 << 20)).collect();
        drop(many);
        let idle = buffers.idle.lock().bytes;
        assert!(idle <= IDLE_BYTES_MAX && idle > IDLE_BYTES_MAX / 2, "{idle}");
        buffers.release();
        assert_eq!(buffers.idle.lock().bytes, 0);
    }

    #[test]
    fn any_length_is_served() {
        let buffers = Arc::new(ReadBuffers::default());
        for len in [0, 1, KEPT_BYTES_MIN - 1, KEPT_BYTES_MIN, KEPT_BYTES_MAX + EXTRA_BYTES, KEPT_BYTES_MAX * 3] {
            let mut buffer = buffers.take(len);
            assert_eq!(buffer.as_mut().len(), len);
            buffer.truncate(len / 2);
            assert_eq!(buffer.as_ref().len(), len / 2);
        }
    }
}
