//! Cuts the byte stream of a connection into frames: four bytes of length, then that many bytes. Pure: the caller feeds
//! bytes and asks how much room to offer next. The length is a claim of the peer, so room grows with the bytes that
//! have really come and never with the claim alone.

use bytes::{Bytes, BytesMut};

/// Bytes of the length prefix.
pub const LENGTH_PREFIX_BYTES: usize = 4;
/// Room offered to a connection that has sent nothing yet, in bytes: most requests fit.
const FIRST_ROOM_BYTES: usize = 2 * 1024;
/// Most room offered beyond what has already come, in bytes.
const ROOM_STEP_BYTES_MAX: usize = 256 * 1024;

/// The stream cannot be cut into frames any more; the connection has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is negative: no client of Kafka sends that.
    #[error(
        "the frame length {length} is negative: the peer does not speak the Kafka protocol, or speaks TLS to a plaintext listener"
    )]
    NegativeLength {
        /// What the four bytes said.
        length: i32,
    },
    /// The length is over the listener's limit.
    #[error(
        "a frame of {length} bytes is over the limit of {max} (socket.request.max.bytes); a peer that does not speak the Kafka protocol looks like this too"
    )]
    TooLong {
        /// What the four bytes said.
        length: i32,
        /// The limit.
        max: usize,
    },
}

/// State of cutting one connection's stream.
#[derive(Debug)]
pub struct FrameCutter {
    buffer: BytesMut,
    length_max: usize,
    last_room: usize,
}

impl FrameCutter {
    /// Starts at the beginning of a stream whose frames may have up to `length_max` bytes.
    pub fn new(length_max: usize) -> Self {
        FrameCutter { buffer: BytesMut::new(), length_max, last_room: 0 }
    }

    /// Bytes of the frame under way that have come so far, its length prefix included.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The length that the next frame claims, if its four bytes are there.
    fn claimed(&self) -> Result<Option<usize>, FrameError> {
        let Some(prefix) = self.buffer.first_chunk::<LENGTH_PREFIX_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes(*prefix);
        match usize::try_from(length) {
            Err(_) => Err(FrameError::NegativeLength { length }),
            Ok(claimed) if claimed > self.length_max => Err(FrameError::TooLong { length, max: self.length_max }),
            Ok(claimed) => Ok(Some(claimed)),
        }
    }

    /// The next whole frame without its length prefix, if it has come.
    ///
    /// # Errors
    /// The length prefix is one that no Kafka client sends.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        match self.claimed()? {
            Some(length) if self.buffer.len() >= LENGTH_PREFIX_BYTES + length => {
                let mut frame = self.buffer.split_to(LENGTH_PREFIX_BYTES + length);
                if self.buffer.is_empty() {
                    // An idle connection keeps no buffer: the frame takes the allocation with it.
                    self.buffer = BytesMut::new();
                }
                Ok(Some(frame.split_off(LENGTH_PREFIX_BYTES).freeze()))
            }
            Some(_) | None => Ok(None),
        }
    }

    /// How many bytes of room the next read should offer: at most what has come already, in bounded steps, and no
    /// more than the frame under way still lacks.
    pub fn next_room(&self) -> usize {
        let step = self.buffer.len().max(self.last_room).clamp(FIRST_ROOM_BYTES, ROOM_STEP_BYTES_MAX);
        match self.claimed() {
            Ok(Some(length)) if LENGTH_PREFIX_BYTES + length > self.buffer.len() => {
                step.min((LENGTH_PREFIX_BYTES + length - self.buffer.len()).max(FIRST_ROOM_BYTES))
            }
            _ => step,
        }
    }

    /// The buffer to read into, with at least `room` bytes free.
    pub fn room(&mut self, room: usize) -> &mut BytesMut {
        self.buffer.reserve(room);
        &mut self.buffer
    }

    /// Learns from a read: one that filled its room asks for twice as much next time, up to a limit, so that a busy
    /// connection needs few system calls and a quiet one little memory.
    pub fn filled(&mut self, read: usize, room: usize) {
        self.last_room = if read >= room { (room * 2).min(ROOM_STEP_BYTES_MAX) } else { read };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(cutter: &mut FrameCutter, bytes: &[u8]) {
        cutter.room(bytes.len()).extend_from_slice(bytes);
    }

    #[test]
    fn frames_are_cut_wherever_the_reads_end() {
        let stream = [&[0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0], &[0, 0, 0, 1], b"z"].concat();
        for split in 0..stream.len() {
            let mut cutter = FrameCutter::new(100);
            let mut frames = Vec::new();
            for part in [&stream[..split], &stream[split..]] {
                feed(&mut cutter, part);
                while let Some(frame) = cutter.next_frame().unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames, [&b"abc"[..], b"", b"z"]);
        }
    }

    #[test]
    fn a_length_that_no_client_sends_is_an_error() {
        let mut cutter = FrameCutter::new(100);
        feed(&mut cutter, &(-5i32).to_be_bytes());
        assert_eq!(cutter.next_frame(), Err(FrameError::NegativeLength { length: -5 }));
        let mut cutter = FrameCutter::new(100);
        feed(&mut cutter, b"GET / HTTP/1.1");
        assert!(matches!(cutter.next_frame(), Err(FrameError::TooLong { .. })));
    }

    #[test]
    fn a_claim_of_a_large_frame_reserves_little() {
        let mut cutter = FrameCutter::new(100 << 20);
        feed(&mut cutter, &(100i32 << 20).to_be_bytes());
        assert_eq!(cutter.next_frame(), Ok(None));
        assert!(cutter.next_room() <= FIRST_ROOM_BYTES);
    }
}
