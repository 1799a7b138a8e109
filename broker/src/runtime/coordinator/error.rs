//! Why a coordinator does not answer.

/// The host could not let its machine answer, or could not store what it decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoordinatorError {
    /// This node does not own the shard (any more).
    #[error("this node does not coordinate that key")]
    NotCoordinator,
    /// The log of the shard is being read.
    #[error("the coordinator is loading its log")]
    LoadInProgress,
    /// The internal topic is not there yet, or the answer could not be stored in time.
    #[error("the coordinator is not available")]
    NotAvailable,
    /// A single record is larger than a batch of the internal topic may be.
    #[error("a record of {bytes} bytes does not fit a batch of at most {bytes_max} bytes (max.message.bytes)")]
    RecordTooLarge {
        /// Size of the record.
        bytes: usize,
        /// Limit of the topic.
        bytes_max: usize,
    },
    /// The machine answered something else than what was asked; a fault of ours.
    #[error("the coordinator gave an answer to another question")]
    OtherAnswer,
}
