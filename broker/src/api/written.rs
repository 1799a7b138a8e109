//! For tests of the handlers: an answer written at every version that its API serves and read back, which must use up
//! every byte. Uses kafka-protocol's traits.

use bytes::{Buf, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::Entry;

/// What `answer` gives for each served version of `entry`, as a client reads it.
pub fn read_back<T: Encodable + Decodable>(entry: &Entry, answer: impl Fn(i16) -> T) -> Vec<(i16, T)> {
    let one = |version: i16| {
        let mut bytes = BytesMut::new();
        answer(version).encode(&mut bytes, version).unwrap_or_else(|e| panic!("{} v{version}: {e}", entry.name));
        let read = T::decode(&mut bytes, version).unwrap_or_else(|e| panic!("{} v{version}: {e}", entry.name));
        assert!(!bytes.has_remaining(), "{} v{version}: {} bytes are left", entry.name, bytes.remaining());
        (version, read)
    };
    (entry.versions_served.0..=entry.versions_served.1).map(one).collect()
}
