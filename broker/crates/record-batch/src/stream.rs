//! Records of any batch, one at a time, compressed or not. A compressed payload is decompressed as far as it is read.

use thiserror::Error;

use crate::batch::BatchRef;
use crate::codec::{Decoder, DecompressError, Window};
use crate::header::{BatchHeader, Compression, UnknownCompression};
use crate::record::{RecordContext, RecordError, RecordRef, Records};
use crate::varint::{self, VarintError};

/// Why records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The attributes name no codec.
    #[error(transparent)]
    Compression(#[from] UnknownCompression),
    /// The payload cannot be decompressed.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
    /// What came out are not the records the header speaks of.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Decompressed bytes of a payload, seen through a window that moves on.
pub(crate) struct Inflater<'a> {
    decoder: Decoder<'a>,
    window: Window,
    produced: usize,
    limit: usize,
    ended: bool,
}

impl<'a> Inflater<'a> {
    fn new(decoder: Decoder<'a>, limit: usize) -> Inflater<'a> {
        Inflater { decoder, window: Window::new(), produced: 0, limit, ended: false }
    }

    /// Decompresses until the window holds `want` bytes; false if the payload ends before.
    pub(crate) fn fill(&mut self, want: usize) -> Result<bool, DecompressError> {
        while self.window.filled().len() < want {
            if !self.fill_some()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decompresses one more piece; false at the end.
    fn fill_some(&mut self) -> Result<bool, DecompressError> {
        if self.ended {
            return Ok(false);
        }
        let limit = self.limit;
        let room = limit - self.produced;
        let got = self.decoder.read_into(&mut self.window, room).map_err(|error| match error {
            DecompressError::TooLarge { .. } => DecompressError::TooLarge { limit },
            error => error,
        })?;
        self.ended = got == 0;
        if got > room {
            return Err(DecompressError::TooLarge { limit });
        }
        self.produced += got;
        Ok(got > 0)
    }

    /// What is in the window.
    pub(crate) fn filled(&self) -> &[u8] {
        self.window.filled()
    }

    /// Marks bytes of the window as used, and returns them.
    pub(crate) fn consume(&mut self, len: usize) -> &[u8] {
        self.window.consume(len)
    }

    /// Reads one number with `read`, which is given the window and says how many bytes it used.
    pub(crate) fn number<T>(&mut self, read: fn(&mut &[u8]) -> Result<T, VarintError>) -> Result<T, ReadError> {
        loop {
            let mut rest = self.window.filled();
            let before = rest.len();
            match read(&mut rest) {
                Ok(number) => {
                    let used = before - rest.len();
                    self.window.consume(used);
                    return Ok(number);
                }
                Err(VarintError::Truncated) if self.fill_some()? => {}
                Err(error) => return Err(RecordError::from(error).into()),
            }
        }
    }

    /// Reads the length of the next record.
    pub(crate) fn record_length(&mut self) -> Result<usize, ReadError> {
        let length = self.number(varint::read_i32)?;
        usize::try_from(length).map_err(|_| RecordError::NegativeLength { length }.into())
    }

    /// Bytes that came out of the decoder so far.
    pub(crate) fn produced(&self) -> usize {
        self.produced
    }

    /// An error if anything is left after the last record.
    pub(crate) fn expect_end(&mut self, count: i32) -> Result<(), ReadError> {
        if self.window.filled().is_empty() && !self.fill_some()? {
            return Ok(());
        }
        let left = self.window.filled().len();
        Err(RecordError::BytesLeftInBatch { left, count }.into())
    }
}

pub(crate) enum Source<'a> {
    Plain(&'a [u8]),
    Stream(Box<Inflater<'a>>),
}

impl<'a> Source<'a> {
    /// The payload of a batch; `limit` is the most that may come out of a compressed one, in bytes.
    pub(crate) fn open(codec: Compression, payload: &'a [u8], limit: usize) -> Result<Source<'a>, DecompressError> {
        Ok(match Decoder::new(codec, payload)? {
            None => Source::Plain(payload),
            Some(decoder) => Source::Stream(Box::new(Inflater::new(decoder, limit))),
        })
    }
}

enum Inner<'a> {
    Plain(Records<'a>),
    Stream { context: RecordContext, inflater: Box<Inflater<'a>>, count: i32, read: i32 },
}

/// Reads the records of a batch in order. Each is borrowed until the next is asked for.
///
/// Memory is one window of the decompressed payload, as large as the largest record.
pub struct RecordReader<'a> {
    inner: Inner<'a>,
}

impl<'a> RecordReader<'a> {
    /// Opens a batch, whose CRC the caller has verified if it must be; `decompressed_bytes_max` bounds what may come out
    /// of a compressed payload.
    pub fn open(batch: &BatchRef<'a>, decompressed_bytes_max: usize) -> Result<RecordReader<'a>, ReadError> {
        let header = batch.header();
        let source = Source::open(header.compression()?, batch.payload(), decompressed_bytes_max)?;
        let inner = match source {
            Source::Plain(payload) => Inner::Plain(Records::new(header, payload)),
            Source::Stream(inflater) => Inner::stream(header, inflater)?,
        };
        Ok(RecordReader { inner })
    }

    /// The next record; `None` after the last of the declared count. Do not go on after an error.
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>, ReadError> {
        match &mut self.inner {
            Inner::Plain(records) => Ok(records.next().transpose()?),
            Inner::Stream { context, inflater, count, read } => {
                if read == count {
                    inflater.expect_end(*count)?;
                    return Ok(None);
                }
                *read += 1;
                let len = inflater.record_length()?;
                if !inflater.fill(len)? {
                    return Err(RecordError::Truncated.into());
                }
                Ok(Some(context.read_body(inflater.consume(len))?))
            }
        }
    }
}

impl<'a> Inner<'a> {
    fn stream(header: &BatchHeader, inflater: Box<Inflater<'a>>) -> Result<Inner<'a>, RecordError> {
        let count = header.record_count;
        if count < 0 {
            return Err(RecordError::NegativeCount { count });
        }
        Ok(Inner::Stream { context: RecordContext::new(header), inflater, count, read: 0 })
    }
}
