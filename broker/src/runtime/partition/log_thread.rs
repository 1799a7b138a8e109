//! Handle to a thread that owns logs, and the messages it takes. The thread itself is in `owner`.

mod care;
mod cleaning;
mod failures;
mod owner;

use std::sync::Arc;

use base::{Clock, Offset};
use bytes::BytesMut;
use partition_log::{
    AppendOrigin, Appended, ClosedLog, DeletedLog, FlushDone, LogConfig, LogError, LogOptions, OpenError,
    ProducerEntry, RecoveryReport, StorageError,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::unconstrained;

pub(super) use care::Care;
pub(super) use cleaning::LookAt;
use owner::Owner;

use super::appends::Pending;
use super::live::{AppendFailure, Partition, PartitionKey, Topic};
use crate::observe::DurationHistogram;
use crate::tasks::Tasks;

/// Messages that may wait for a log thread; a producer waits when it is reached.
const QUEUE_LEN_MAX: usize = 4096;

/// A log to open.
#[derive(Clone)]
pub(super) struct ToOpen {
    pub options: LogOptions,
    pub topic: Arc<Topic>,
    pub leader_epoch: i32,
    pub log_dir: usize,
}

impl ToOpen {
    /// The same with nothing known of what its directory held: that was another topic's.
    pub fn afresh(mut self) -> ToOpen {
        self.options.recovery_point = 0;
        self.options.log_start_offset = 0;
        self.options.high_watermark = 0;
        self.options.clean_shutdown = true;
        self
    }
}

enum Message {
    Append(Pending),
    Open(Box<ToOpen>, oneshot::Sender<Result<(Arc<Partition>, RecoveryReport), OpenError>>),
    Lead(PartitionKey, i32),
    SetConfig(PartitionKey, Arc<LogConfig>),
    DeleteRecords(PartitionKey, Offset, oneshot::Sender<Result<Offset, LogError>>),
    Producers(PartitionKey, oneshot::Sender<Vec<ProducerEntry>>),
    Flush(PartitionKey, oneshot::Sender<Result<Offset, LogError>>),
    FlushEnded(PartitionKey, Result<FlushDone, StorageError>),
    Delete(PartitionKey, uuid::Uuid, oneshot::Sender<Result<DeletedLog, LogError>>),
    Care(Care),
    Clean(cleaning::CleaningStep),
    Close(oneshot::Sender<Vec<Closed>>),
}

/// A log after an orderly stop.
pub(super) struct Closed {
    pub partition: Arc<Partition>,
    pub outcome: Result<ClosedLog, LogError>,
}

/// Handle to a log thread. Cheap to clone.
#[derive(Clone)]
pub struct LogThread {
    queue: mpsc::Sender<Message>,
}

impl LogThread {
    /// Starts a thread that owns no log yet.
    ///
    /// # Errors
    /// The system refused to start a thread.
    pub(super) fn start(
        clock: Arc<dyn Clock>,
        tasks: Tasks,
        flushes: Arc<DurationHistogram>,
    ) -> std::io::Result<LogThread> {
        let (sender, receiver) = mpsc::channel(QUEUE_LEN_MAX);
        let handle = LogThread { queue: sender };
        let owner = Owner::new(clock, tasks, flushes, handle.queue.downgrade());
        Tasks::spawn_owner_thread("log", move || owner.run(receiver))?;
        Ok(handle)
    }

    async fn ask<R>(&self, message: impl FnOnce(oneshot::Sender<R>) -> Message) -> Option<R> {
        let (reply, answer) = oneshot::channel();
        // Not bound by the budget of the caller's task: a send that is put off because the budget is used up stands in
        // no queue, and a later request of the same connection, polled in the task's next turn, would overtake it.
        unconstrained(self.queue.send(message(reply))).await.ok()?;
        answer.await.ok()
    }

    pub(super) async fn append(
        &self,
        key: PartitionKey,
        records: BytesMut,
        origin: AppendOrigin,
    ) -> Result<Appended, AppendFailure> {
        match self.ask(|reply| Message::Append(Pending { key, records, origin, reply })).await {
            Some(outcome) => Ok(outcome?),
            None => Err(AppendFailure::Closed),
        }
    }

    pub(super) async fn open(&self, to_open: ToOpen) -> Option<Result<(Arc<Partition>, RecoveryReport), OpenError>> {
        self.ask(|reply| Message::Open(Box::new(to_open), reply)).await
    }

    pub(super) async fn lead(&self, key: PartitionKey, epoch: i32) {
        // A closed thread has no partition that could lead.
        let _ = self.queue.send(Message::Lead(key, epoch)).await;
    }

    pub(super) async fn set_config(&self, key: PartitionKey, config: Arc<LogConfig>) {
        let _ = self.queue.send(Message::SetConfig(key, config)).await;
    }

    pub(super) async fn delete_records(&self, key: PartitionKey, before: Offset) -> Result<Offset, Option<LogError>> {
        self.ask(|reply| Message::DeleteRecords(key, before, reply)).await.ok_or(None)?.map_err(Some)
    }

    pub(super) async fn producers(&self, key: PartitionKey) -> Vec<ProducerEntry> {
        self.ask(|reply| Message::Producers(key, reply)).await.unwrap_or_default()
    }

    pub(super) async fn flush(&self, key: PartitionKey) -> Result<Offset, Option<LogError>> {
        self.ask(|reply| Message::Flush(key, reply)).await.ok_or(None)?.map_err(Some)
    }

    pub(super) async fn delete(&self, key: PartitionKey, id: uuid::Uuid) -> Option<Result<DeletedLog, LogError>> {
        self.ask(|reply| Message::Delete(key, id, reply)).await
    }

    pub(super) async fn care(&self, care: Care) {
        let _ = self.queue.send(Message::Care(care)).await;
    }

    pub(super) async fn close(&self) -> Vec<Closed> {
        self.ask(Message::Close).await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_message_stands_in_the_queue_from_its_first_poll_on_though_the_task_has_used_up_its_budget() {
        let (queue, mut received) = mpsc::channel(4);
        let thread = LogThread { queue };
        let mut asked = pin!(thread.close());
        std::future::poll_fn(|context| {
            while tokio::task::coop::has_budget_remaining() {
                let _ = pin!(tokio::task::consume_budget()).poll(context);
            }
            assert!(asked.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(matches!(received.try_recv(), Ok(Message::Close(_))));
    }
}
