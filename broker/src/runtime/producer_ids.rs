//! Producer ids of this broker: taken one by one from blocks that the controller hands out (KIP-730). A block that was
//! begun and not used up is lost at a restart, so that an id is never given twice.

use base::{NodeId, ProducerId};
use cluster::controller::{AllocateProducerIds, ProducerIdBlock, ProducerIdsError};
use tokio::sync::Mutex;

use super::controller::{ControllerError, ControllerHandle};

/// Why there is no id.
#[derive(Debug, thiserror::Error)]
pub enum ProducerIdError {
    /// There is no controller, or it stops.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The controller refused a block.
    #[error(transparent)]
    Refused(#[from] ProducerIdsError),
}

/// See the head of this file.
pub struct ProducerIds {
    node_id: NodeId,
    controller: ControllerHandle,
    block: Mutex<ProducerIdBlock>,
}

impl ProducerIds {
    /// No id is taken yet.
    pub fn new(node_id: NodeId, controller: ControllerHandle) -> ProducerIds {
        ProducerIds { node_id, controller, block: Mutex::new(ProducerIdBlock { first: 0, len: 0 }) }
    }

    /// An id that nobody has. Waits for the controller once in a thousand calls.
    ///
    /// # Errors
    /// There is no controller, or no id left.
    pub async fn next(&self) -> Result<ProducerId, ProducerIdError> {
        let mut block = self.block.lock().await;
        if block.len == 0 {
            let broker_epoch = self.controller.image().broker(self.node_id).map_or(-1, |broker| broker.epoch);
            let ask = AllocateProducerIds { broker_id: self.node_id, broker_epoch };
            *block = self.controller.run(ask).await??;
        }
        let id = block.first;
        *block = ProducerIdBlock { first: id + 1, len: block.len - 1 };
        Ok(id)
    }
}
