//! One TCP connection: frames, headers by version, typed calls, raw bytes, reads with deadlines. Uses std's blocking sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// How long a call waits for its answer unless the test says otherwise.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Why no frame came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// The broker closed or reset the connection.
    Closed,
    /// Nothing came before the deadline.
    TimedOut,
}

/// A connection with the correlation id of its last request.
pub struct Client {
    stream: TcpStream,
    correlation_id: i32,
    /// What the request headers name; `None` is null.
    pub client_id: Option<&'static str>,
}

impl Client {
    /// Connects; fails the test when nobody listens.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream.set_nodelay(true).expect("a TCP socket");
        Self { stream, correlation_id: 0, client_id: Some("protocol-tests") }
    }

    /// Sends a request and waits for its answer, both at `version`.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        self.receive::<R>(version, id, CALL_LIMIT)
    }

    /// Sends a request without waiting; gives its correlation id.
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let body = encode(version, request);
        self.send_body(R::KEY, version, R::header_version(version), &body)
    }

    /// Waits for the next answer, which must carry `correlation_id` and use every byte at `version`.
    pub fn receive<R: Request>(&mut self, version: i16, correlation_id: i32, limit: Duration) -> R::Response {
        let frame = self.read_frame(limit).unwrap_or_else(|e| panic!("no answer to API {} v{version}: {e:?}", R::KEY));
        decode::<R>(frame, version, correlation_id)
    }

    /// Sends a header and a body made by hand; gives the correlation id.
    pub fn send_body(&mut self, api_key: i16, version: i16, header_version: i16, body: &[u8]) -> i32 {
        self.correlation_id += 1;
        let frame = request_frame(api_key, version, self.correlation_id, self.client_id, header_version, body);
        self.write(&frame);
        self.correlation_id
    }

    /// Sends a body made by hand in a flexible request and gives the body of the answer, without header.
    pub fn call_flexible(&mut self, api_key: i16, version: i16, body: &[u8]) -> Vec<u8> {
        let id = self.send_body(api_key, version, 2, body);
        let mut frame = self.read_frame(CALL_LIMIT).unwrap_or_else(|e| panic!("no answer to API {api_key}: {e:?}"));
        assert_eq!(frame.get_i32(), id, "correlation id");
        // ApiVersions answers carry header version 0 for ever (KIP-511).
        if api_key != 18 {
            assert_eq!(frame.get_u8(), 0, "no tagged fields in the header");
        }
        frame.to_vec()
    }

    /// Sends bytes as they are. A peer that has closed already shows when the answer is read.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Closes the sending side, as a client does that goes away in the middle of a frame.
    pub fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next frame without its length.
    pub fn read_frame(&mut self, limit: Duration) -> Result<Bytes, ReadError> {
        let deadline = Instant::now() + limit;
        let mut size = [0; 4];
        self.fill(&mut size, deadline)?;
        let size = usize::try_from(i32::from_be_bytes(size)).expect("an answer has no negative length");
        assert!(size < 256 << 20, "an answer of {size} bytes");
        let mut frame = vec![0; size];
        self.fill(&mut frame, deadline)?;
        Ok(frame.into())
    }

    /// True when the broker closes the connection within `limit` without sending anything.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.read_frame(limit) == Err(ReadError::Closed)
    }

    fn fill(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), ReadError> {
        let mut done = 0;
        while done < buffer.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ReadError::TimedOut);
            }
            self.stream.set_read_timeout(Some(left)).expect("a TCP socket");
            match self.stream.read(&mut buffer[done..]) {
                Ok(0) => return Err(ReadError::Closed),
                Ok(n) => done += n,
                Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(ReadError::Closed),
            }
        }
        Ok(())
    }
}

/// The body of `request` at `version`.
pub fn encode<R: Request>(version: i16, request: &R) -> Vec<u8> {
    let mut body = BytesMut::new();
    request.encode(&mut body, version).unwrap_or_else(|e| panic!("API {} v{version} cannot say this: {e}", R::KEY));
    body.to_vec()
}

/// A whole frame: length, header, body.
pub fn request_frame(
    key: i16,
    version: i16,
    id: i32,
    client_id: Option<&str>,
    header_version: i16,
    body: &[u8],
) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(id)
        .with_client_id(client_id.map(|c| StrBytes::from_string(c.to_owned())));
    let mut content = BytesMut::new();
    header.encode(&mut content, header_version).expect("a header can be written");
    content.extend_from_slice(body);
    let mut frame = i32::try_from(content.len()).expect("a frame under 2 GiB").to_be_bytes().to_vec();
    frame.extend(content);
    frame
}

/// Reads an answer, which must be exactly as long as its version says.
pub fn decode<R: Request>(mut frame: Bytes, version: i16, correlation_id: i32) -> R::Response {
    let header_version = <R::Response as HeaderVersion>::header_version(version);
    let header = ResponseHeader::decode(&mut frame, header_version).expect("the answer has a header");
    assert_eq!(header.correlation_id, correlation_id, "correlation id of the answer to API {}", R::KEY);
    let answer = R::Response::decode(&mut frame, version)
        .unwrap_or_else(|e| panic!("the answer to API {} does not decode at version {version}: {e}", R::KEY));
    assert!(!frame.has_remaining(), "API {} v{version}: {} bytes after the answer", R::KEY, frame.remaining());
    answer
}
