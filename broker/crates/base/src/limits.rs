//! Named limits that hold for a whole node; limits of one part stand with that part.

/// Longest topic name (Kafka: Topic.MAX_NAME_LENGTH).
pub const TOPIC_NAME_LEN_MAX: usize = 249;
/// Batches remembered for each producer, to answer a retry with its first offset (Kafka: NUM_BATCHES_TO_RETAIN).
pub const PRODUCER_BATCHES_RETAINED: usize = 5;
/// Deepest frame accepted before a connection has proven who it is, in bytes.
pub const FRAME_UNAUTHENTICATED_BYTES_MAX: usize = 512 * 1024;
