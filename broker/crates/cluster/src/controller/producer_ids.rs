//! Blocks of producer ids (Kafka: ProducerIdControlManager, KIP-730): an id is handed out once, by whichever broker.

use base::{NodeId, ProducerId};

use super::{Command, Controller, Decision};
use crate::records::ProducerIdsRecord;

/// Ids in a block (Kafka: ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE).
pub const PRODUCER_ID_BLOCK_LEN: i64 = 1_000;

/// Hands the next block to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocateProducerIds {
    /// The broker.
    pub broker_id: NodeId,
    /// Epoch of its registration.
    pub broker_epoch: i64,
}

/// Ids that belong to one broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first id.
    pub first: ProducerId,
    /// Number of ids.
    pub len: i64,
}

/// Why no block is handed out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerIdsError {
    /// The broker is not registered, or again since.
    #[error("broker {id} is not registered with epoch {epoch}")]
    StaleBrokerEpoch {
        /// The broker.
        id: NodeId,
        /// Epoch that it gave.
        epoch: i64,
    },
    /// Every 64-bit id was handed out.
    #[error("there are no producer ids left")]
    Exhausted,
}

impl Command for AllocateProducerIds {
    type Answer = Result<ProducerIdBlock, ProducerIdsError>;

    fn decide(&self, on: &Controller<'_>) -> Decision<Self::Answer> {
        let (id, epoch) = (self.broker_id, self.broker_epoch);
        if on.image.broker(id).is_none_or(|broker| broker.epoch != epoch) {
            return Decision::unchanged(Err(ProducerIdsError::StaleBrokerEpoch { id, epoch }));
        }
        let first = on.image.next_producer_id();
        let Some(next_producer_id) = first.checked_add(PRODUCER_ID_BLOCK_LEN) else {
            return Decision::unchanged(Err(ProducerIdsError::Exhausted));
        };
        let record = ProducerIdsRecord { broker_id: id, broker_epoch: epoch, next_producer_id };
        Decision { records: vec![record.into()], answer: Ok(ProducerIdBlock { first, len: PRODUCER_ID_BLOCK_LEN }) }
    }
}
