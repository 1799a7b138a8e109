//! Kafka's record batch, format version 2: a view of its bytes, edits in place, records, building, compression, and the
//! checks a leader makes before it appends a batch. Pure: bytes in, bytes or errors out; no I/O, no clock, no wire types.
//!
//! Rules come from Apache Kafka's `DefaultRecordBatch`, `DefaultRecord`, `MemoryRecordsBuilder` and `LogValidator`.

pub mod batch;
pub mod builder;
pub mod codec;
pub mod control;
pub mod edit;
pub mod header;
pub mod record;
pub mod sequence;
pub mod stream;
pub mod validate;
mod varint;

pub use batch::{BatchError, BatchRef, Batches, batches, whole_batches};
pub use builder::{BatchBuilder, BuildError, RecordData, emptied};
pub use codec::{Codec, CompressError, DecompressError};
pub use edit::BatchMut;
pub use header::{BatchHeader, Compression, HEADER_LEN, HeaderError, TimestampType, UnknownCompression};
pub use record::{HeaderRef, Headers, RecordError, RecordRef, Records};
pub use sequence::{decrement_sequence, increment_sequence};
pub use stream::{ReadError, RecordReader};
pub use validate::{
    RecordFault, RecordFaultKind, RecordFaults, Refusal, Rules, TargetCompression, ValidBatch, ValidateError, validate,
};

/// Producer id of a batch whose producer is not idempotent (Kafka: RecordBatch.NO_PRODUCER_ID).
pub const NO_PRODUCER_ID: base::ProducerId = -1;
/// Producer epoch of a batch whose producer is not idempotent (Kafka: RecordBatch.NO_PRODUCER_EPOCH).
pub const NO_PRODUCER_EPOCH: base::ProducerEpoch = -1;
/// Base sequence of a batch without sequence numbers (Kafka: RecordBatch.NO_SEQUENCE).
pub const NO_SEQUENCE: i32 = -1;
/// Timestamp of a record or batch that has none (Kafka: RecordBatch.NO_TIMESTAMP).
pub const NO_TIMESTAMP: base::TimestampMs = -1;
/// Leader epoch of a batch that no leader has appended (Kafka: RecordBatch.NO_PARTITION_LEADER_EPOCH).
pub const NO_PARTITION_LEADER_EPOCH: base::LeaderEpoch = -1;
