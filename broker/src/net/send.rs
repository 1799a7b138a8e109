//! Writing an answer to a socket. What lies in memory goes in vectored writes; what lies in a file goes there by sendfile
//! where the socket is a plain one, and through one small buffer elsewhere. Either way a reader that takes its time
//! holds no memory of the answer.

use std::io;

use bytes::{Buf, BytesMut};
use partition_log::FileRange;
use rustix::net::SendFlags;
use tokio::io::{AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::tasks::Tasks;
use crate::wire::reply_frame::{Part, ReplyBuf, ReplyFrame};

/// Bytes of a file that are looked after in one step: small enough that other connections get their turn.
const STEP_BYTES: u64 = 512 << 10;
/// Distance of the bytes by which a step is judged to be in memory: the kernel reads ahead in pieces of this size.
const PROBE_BYTES: usize = 128 << 10;
/// Bytes read at a time where the socket cannot take them from the file.
const COPY_BYTES: usize = 64 << 10;

/// A socket that answers can be written to.
pub trait SendReply: Send {
    /// Writes all of it.
    fn send_reply(&mut self, frame: ReplyFrame) -> impl Future<Output = io::Result<()>> + Send;
}

impl SendReply for TcpStream {
    async fn send_reply(&mut self, frame: ReplyFrame) -> io::Result<()> {
        let mut parts = frame.into_parts();
        while let Some(part) = parts.pop_front() {
            match part {
                // The packet waits for the records that follow.
                Part::Memory(buf) if !parts.is_empty() => send_more(self, buf).await?,
                Part::Memory(mut buf) => self.write_all_buf(&mut buf).await?,
                Part::File(range) => send_file(self, range).await?,
            }
        }
        Ok(())
    }
}

/// Writes a frame to a stream that has to see the bytes, such as one that encrypts them.
///
/// # Errors
/// The stream or the file failed.
pub async fn copy_reply<S: AsyncWrite + Unpin + Send>(stream: &mut S, frame: ReplyFrame) -> io::Result<()> {
    for part in frame.into_parts() {
        match part {
            Part::Memory(mut buf) => stream.write_all_buf(&mut buf).await?,
            Part::File(range) => copy_file(stream, range).await?,
        }
    }
    Ok(())
}

async fn send_more(stream: &TcpStream, mut buf: ReplyBuf) -> io::Result<()> {
    while buf.has_remaining() {
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        let send = || Ok(rustix::net::send(stream, buf.chunk(), flags)?);
        let sent = stream.async_io(Interest::WRITABLE, send).await?;
        buf.advance(sent);
    }
    Ok(())
}

async fn send_file(stream: &mut TcpStream, range: FileRange) -> io::Result<()> {
    let end = range.position + range.len_bytes;
    let mut position = range.position;
    while position < end {
        let step_end = end.min(position + STEP_BYTES);
        let step = FileRange { position, len_bytes: step_end - position, ..range.clone() };
        let step = if is_in_memory(&step)? { step } else { load(step).await? };
        let Some(file) = range.file.descriptor() else {
            return copy_file(stream, FileRange { len_bytes: end - position, ..step }).await;
        };
        while position < step_end {
            let left = (step_end - position) as usize;
            let send = || Ok(rustix::fs::sendfile(&*stream, file, Some(&mut position), left)?);
            if stream.async_io(Interest::WRITABLE, send).await? == 0 {
                return Err(cut_off());
            }
        }
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}

/// Whether sendfile will not wait for a device, judged by one byte of each piece that the kernel reads at a time. A
/// wrong guess makes one thread wait for one read.
fn is_in_memory(step: &FileRange) -> io::Result<bool> {
    let last = step.len_bytes.saturating_sub(1);
    for at in (0..last).step_by(PROBE_BYTES).chain([last]) {
        if step.file.read_at_nowait(step.position + at, &mut [0])?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Brings a part of a file into memory, on a thread that may wait for it.
async fn load(step: FileRange) -> io::Result<FileRange> {
    let loaded = Tasks::run_aside(move || {
        let mut buf = vec![0; COPY_BYTES];
        let mut position = step.position;
        while position < step.position + step.len_bytes {
            match step.file.read_at(position, &mut buf)? {
                0 => return Err(cut_off()),
                read => position += read as u64,
            }
        }
        Ok(step)
    });
    loaded.await.unwrap_or_else(|| Err(io::Error::other("reading the records failed")))
}

async fn copy_file<S: AsyncWrite + Unpin + Send>(stream: &mut S, range: FileRange) -> io::Result<()> {
    let end = range.position + range.len_bytes;
    let mut position = range.position;
    let mut buf = BytesMut::zeroed(COPY_BYTES);
    while position < end {
        let wanted = COPY_BYTES.min((end - position) as usize);
        if range.file.read_at_nowait(position, &mut buf[..wanted])?.is_none_or(|read| read < wanted) {
            let file = range.file.clone();
            let filled = Tasks::run_aside(move || {
                let read = file.read_at(position, &mut buf[..wanted])?;
                if read < wanted { Err(cut_off()) } else { Ok(buf) }
            });
            buf = filled.await.unwrap_or_else(|| Err(io::Error::other("reading the records failed")))?;
        }
        stream.write_all(&buf[..wanted]).await?;
        position += wanted as u64;
    }
    Ok(())
}

/// The answer has named its length already, so that only the end of the connection can tell the client.
fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the segment was truncated while it was sent")
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::path::Path;
    use std::sync::Arc;

    use bytes::Bytes;
    use partition_log::{Disk, DiskFile, OpenMode, RealDisk, Records, SimDisk};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// More than a socket holds, so that writes come to a stop and go on.
    const LEN: usize = 9_000_001;

    fn file(disk: &dyn Disk, path: &Path) -> (Arc<dyn DiskFile>, Vec<u8>) {
        let content: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
        let file = disk.open(path, OpenMode::Create).unwrap();
        file.write_at(0, &mut [IoSlice::new(&content)]).unwrap();
        (file, content)
    }

    fn frame(file: &Arc<dyn DiskFile>) -> ReplyFrame {
        let mut frame = ReplyFrame::from(BytesMut::from(&b"head"[..]));
        frame.share(Records::File(FileRange { file: file.clone(), position: 3, len_bytes: LEN as u64 - 3 }));
        frame.own().extend_from_slice(b"between");
        frame.share(Records::Memory(Bytes::from_static(b"memory")));
        frame.share(Records::File(FileRange { file: file.clone(), position: 0, len_bytes: 7 }));
        frame
    }

    fn expected(content: &[u8]) -> Vec<u8> {
        [b"head", &content[3..], b"between", b"memory", &content[..7]].concat()
    }

    #[tokio::test]
    async fn a_plain_socket_gets_the_parts_in_order() {
        let home = tempfile::tempdir().unwrap();
        let (file, content) = file(&RealDisk, &home.path().join("a"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let sending = async move { server.send_reply(frame(&file)).await };
        let mut received = Vec::new();
        let (sent, read) = tokio::join!(sending, client.read_to_end(&mut received));
        sent.and(read).unwrap();
        assert!(received == expected(&content));
    }

    #[tokio::test]
    async fn another_stream_gets_the_same() {
        let (file, content) = file(&SimDisk::new(), Path::new("/a"));
        let (mut server, mut client) = tokio::io::duplex(5000);
        let sending = async move { copy_reply(&mut server, frame(&file)).await };
        let mut received = Vec::new();
        let (sent, read) = tokio::join!(sending, client.read_to_end(&mut received));
        sent.and(read).unwrap();
        assert!(received == expected(&content));
    }

    #[tokio::test]
    async fn a_file_that_was_cut_ends_the_connection() {
        let (file, _) = file(&SimDisk::new(), Path::new("/a"));
        file.set_len(100_000).unwrap();
        let (mut server, mut client) = tokio::io::duplex(1 << 20);
        let sending = async move { copy_reply(&mut server, frame(&file)).await };
        let mut received = Vec::new();
        let (sent, _) = tokio::join!(sending, client.read_to_end(&mut received));
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
