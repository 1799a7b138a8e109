//! Appends that a log thread has drained from its queue: gathered, put together by partition, written with one write
//! for each, answered.

use base::{LeaderEpoch, TimestampMs};
use bytes::BytesMut;
use partition_log::{AppendError, AppendItem, AppendOrigin, AppendScratch, Appended, Log};
use tokio::sync::oneshot;

use super::live::PartitionKey;

/// Whom an append's outcome goes to.
pub(super) type AppendReply = oneshot::Sender<Result<Appended, AppendError>>;

/// One append that waits to be written.
pub(super) struct Pending {
    pub key: PartitionKey,
    pub records: BytesMut,
    pub origin: AppendOrigin,
    pub reply: AppendReply,
}

/// Appends drained so far, and memory that is used again for each write.
#[derive(Default)]
pub(super) struct Gathered {
    pending: Vec<Pending>,
    scratch: AppendScratch,
    results: Vec<Result<Appended, AppendError>>,
}

impl Pending {
    fn item(&mut self) -> AppendItem<'_> {
        AppendItem { records: &mut self.records, origin: self.origin, transaction_verified: false }
    }
}

impl Gathered {
    pub fn push(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Takes the appends, those of a partition next to each other in the order in which they came.
    pub fn take(&mut self) -> Vec<Pending> {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.len() > 1 {
            pending.sort_by_key(|p| p.key);
        }
        pending
    }

    /// Gives the emptied list back, to be filled again.
    pub fn put_back(&mut self, mut emptied: Vec<Pending>) {
        emptied.clear();
        self.pending = emptied;
    }

    /// Writes appends of one partition. Their outcomes are in the order of the appends.
    pub fn write(
        &mut self,
        log: &mut Log,
        appends: &mut [Pending],
        leader_epoch: LeaderEpoch,
        now_ms: TimestampMs,
    ) -> &mut Vec<Result<Appended, AppendError>> {
        match appends {
            [only] => {
                log.append_as_leader(&mut self.scratch, &mut [only.item()], leader_epoch, now_ms, &mut self.results);
            }
            many => {
                let mut items: Vec<AppendItem<'_>> = many.iter_mut().map(Pending::item).collect();
                log.append_as_leader(&mut self.scratch, &mut items, leader_epoch, now_ms, &mut self.results);
            }
        }
        &mut self.results
    }
}
