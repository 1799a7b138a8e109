//! A message of crate kafka-protocol at a version newer than the crate knows, where Kafka changed a meaning and no field.

use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

/// `T`, read and written at version `MAX` when a newer one is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Clamped<T, const MAX: i16>(pub T);

impl<T: Decodable, const MAX: i16> Decodable for Clamped<T, MAX> {
    fn decode<B: ByteBuf>(buf: &mut B, version: i16) -> anyhow::Result<Self> {
        T::decode(buf, version.min(MAX)).map(Clamped)
    }
}

impl<T: Encodable, const MAX: i16> Encodable for Clamped<T, MAX> {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        self.0.encode(buf, version.min(MAX))
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        self.0.compute_size(version.min(MAX))
    }
}

impl<T: HeaderVersion, const MAX: i16> HeaderVersion for Clamped<T, MAX> {
    fn header_version(version: i16) -> i16 {
        T::header_version(version.min(MAX))
    }
}
