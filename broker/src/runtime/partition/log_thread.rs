//! A thread that owns logs. It drains its queue, writes what is there in one go, wakes readers, answers, and does the
//! slow work of its logs (rolling, retention, deletion), so that the async runtime never waits for a disk.

mod care;
mod failures;

use std::collections::HashMap;
use std::sync::Arc;

use base::{Clock, Offset};
use bytes::BytesMut;
use partition_log::{
    AppendError, AppendOrigin, Appended, ClosedLog, DeletedLog, FlushDone, Log, LogConfig, LogError, LogOptions,
    OpenError, ProducerEntry, RecoveryReport, StorageError,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::unconstrained;

pub(super) use care::Care;
use failures::{first_refusal, report_failure, report_refusal};

use super::appends::{AppendReply, Gathered, Pending};
use super::live::{AppendFailure, Partition, PartitionKey, Topic};
use crate::observe::DurationHistogram;
use crate::tasks::Tasks;

/// Messages that may wait for a log thread; a producer waits when it is reached.
const QUEUE_LEN_MAX: usize = 4096;
/// Most appends that are gathered into one go.
const GATHER_MAX: usize = 1024;

/// A log to open.
pub(super) struct ToOpen {
    pub options: LogOptions,
    pub topic: Arc<Topic>,
    pub leader_epoch: i32,
    pub log_dir: usize,
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
        let owner = Owner {
            logs: HashMap::new(),
            gathered: Gathered::default(),
            clock,
            tasks,
            flushes,
            handle: handle.queue.downgrade(),
        };
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

struct OwnedLog {
    log: Log,
    partition: Arc<Partition>,
    flushed_at_ms: i64,
    /// Where the log ended at the last retention run.
    end_at_retention: Offset,
    /// True from the first append that the disk refused until one succeeds.
    refused_by_disk: bool,
}

struct Owner {
    logs: HashMap<PartitionKey, OwnedLog>,
    gathered: Gathered,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    /// Times of syncing a log.
    flushes: Arc<DurationHistogram>,
    handle: mpsc::WeakSender<Message>,
}

impl Owner {
    fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        while let Some(message) = queue.blocking_recv() {
            let mut next = Some(message);
            while let Some(message) = next.take() {
                match message {
                    Message::Append(pending) => self.gathered.push(pending),
                    Message::Close(reply) => {
                        self.write_gathered();
                        let _ = reply.send(self.close());
                        return;
                    }
                    other => {
                        // What came before is written first, so that messages keep their order.
                        self.write_gathered();
                        self.handle(other);
                    }
                }
                if self.gathered.len() < GATHER_MAX {
                    next = queue.try_recv().ok();
                }
            }
            self.write_gathered();
        }
    }

    fn write_gathered(&mut self) {
        if self.gathered.len() == 0 {
            return;
        }
        let now_ms = self.clock.wall_ms();
        let mut pending = self.gathered.take();
        let mut rest = pending.drain(..).peekable();
        let mut run: Vec<Pending> = Vec::new();
        while let Some(first) = rest.next() {
            let key = first.key;
            run.push(first);
            while let Some(same) = rest.next_if(|p| p.key == key) {
                run.push(same);
            }
            self.write_run(key, &mut run, now_ms);
            run.clear();
        }
        drop(rest);
        self.gathered.put_back(pending);
    }

    fn write_run(&mut self, key: PartitionKey, run: &mut Vec<Pending>, now_ms: i64) {
        let Some(owned) = self.logs.get_mut(&key) else {
            // Dropping the replies says that the partition is closed.
            return;
        };
        let epoch = owned.partition.leader_epoch();
        let results = self.gathered.write(&mut owned.log, run, epoch, now_ms);
        let outcomes: Vec<Result<Appended, AppendError>> = std::mem::take(results);
        // With one replica the log's end is on every in-sync replica at once.
        owned.log.set_high_watermark(owned.log.log_end_offset());
        owned.partition.set_producer_count(owned.log.producer_count());
        let synced = if owned.log.needs_flush() { self.flush_after_append(key, now_ms) } else { Ok(()) };
        let Some(owned) = self.logs.get_mut(&key) else { return };
        if let Some(error) = first_refusal(&mut owned.refused_by_disk, &outcomes) {
            report_refusal(&owned.partition, error);
        }
        owned.partition.wake_waiters();
        for (pending, outcome) in run.drain(..).zip(outcomes) {
            let outcome = outcome.and_then(|appended| match &synced {
                Ok(()) => Ok(appended),
                Err(_) => Err(AppendError::Offline),
            });
            let reply: AppendReply = pending.reply;
            // A client that has gone needs no answer.
            let _ = reply.send(outcome);
        }
    }

    /// Syncs before the acknowledgement where `flush.messages` asks for it; closed segments are synced in the
    /// background (Kafka: UnifiedLog.append and roll).
    fn flush_after_append(&mut self, key: PartitionKey, now_ms: i64) -> Result<(), LogError> {
        let Some(owned) = self.logs.get_mut(&key) else { return Ok(()) };
        if owned.log.unflushed_records() >= owned.log.config().flush_messages {
            owned.flushed_at_ms = now_ms;
            let flushed = timed(&*self.clock, &self.flushes, || owned.log.flush());
            return flushed.map(|_| ()).inspect_err(|error| report_failure(&owned.partition, error));
        }
        match owned.log.begin_flush() {
            Ok(Some(job)) => {
                let Some(queue) = self.handle.upgrade() else { return Ok(()) };
                let (clock, flushes) = (self.clock.clone(), self.flushes.clone());
                self.tasks.spawn_blocking(move || {
                    let outcome = timed(&*clock, &flushes, || job.run());
                    // A closed queue means that the node stops and has synced everything itself.
                    let _ = queue.blocking_send(Message::FlushEnded(key, outcome));
                });
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => {
                report_failure(&owned.partition, &error);
                Err(error)
            }
        }
    }

    fn handle(&mut self, message: Message) {
        let now_ms = self.clock.wall_ms();
        match message {
            Message::Open(to_open, reply) => {
                let _ = reply.send(self.open(*to_open));
            }
            Message::Lead(key, epoch) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    owned.partition.set_leader_epoch(epoch);
                    owned.log.begin_epoch(epoch);
                    owned.partition.wake_waiters();
                }
            }
            Message::SetConfig(key, config) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    owned.log.set_config(config);
                }
            }
            Message::DeleteRecords(key, before, reply) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    let _ = reply.send(delete_records(owned, before));
                }
            }
            Message::Producers(key, reply) => {
                let producers = self.logs.get(&key).map(|owned| owned.log.producers().cloned().collect());
                let _ = reply.send(producers.unwrap_or_default());
            }
            Message::Flush(key, reply) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    let flushed = timed(&*self.clock, &self.flushes, || owned.log.flush());
                    let outcome = flushed.inspect_err(|error| report_failure(&owned.partition, error));
                    let _ = reply.send(outcome);
                }
            }
            Message::FlushEnded(key, outcome) => {
                if let Some(owned) = self.logs.get_mut(&key)
                    && let Err(error) = owned.log.finish_flush(outcome)
                {
                    report_failure(&owned.partition, &error);
                }
            }
            Message::Delete(key, id, reply) => {
                if let Some(owned) = self.logs.remove(&key) {
                    let deleted = owned.log.delete(&id);
                    owned.partition.wake_waiters();
                    let _ = reply.send(deleted);
                }
            }
            Message::Care(care) => self.care(care, now_ms),
            // Both are taken out of the queue before this is called.
            Message::Append(pending) => self.gathered.push(pending),
            Message::Close(_) => {}
        }
    }

    fn open(&mut self, to_open: ToOpen) -> Result<(Arc<Partition>, RecoveryReport), OpenError> {
        let index = to_open.options.partition.partition;
        let now_ms = to_open.options.now_ms;
        let opened = Log::open(to_open.options)?;
        let mut log = opened.log;
        log.set_high_watermark(log.log_end_offset());
        log.begin_epoch(to_open.leader_epoch);
        let Some(queue) = self.handle.upgrade() else {
            // Nobody holds the thread's handle any more, so nobody waits for this answer.
            std::process::abort();
        };
        let partition = Arc::new(Partition::new(
            to_open.topic,
            index,
            to_open.leader_epoch,
            to_open.log_dir,
            log.reader(),
            LogThread { queue },
        ));
        partition.set_producer_count(log.producer_count());
        let end_at_retention = log.log_end_offset();
        let owned = OwnedLog {
            log,
            partition: partition.clone(),
            flushed_at_ms: now_ms,
            end_at_retention,
            refused_by_disk: false,
        };
        self.logs.insert(partition.key(), owned);
        Ok((partition, opened.report))
    }

    fn close(&mut self) -> Vec<Closed> {
        self.logs.drain().map(|(_, owned)| Closed { partition: owned.partition, outcome: owned.log.close() }).collect()
    }
}

/// Raises the log start offset; -1 stands for the high watermark (Kafka: DeleteRecordsRequest.HIGH_WATERMARK).
fn delete_records(owned: &mut OwnedLog, before: Offset) -> Result<Offset, LogError> {
    let before = if before == -1 { owned.log.high_watermark() } else { before };
    owned.log.advance_log_start(before).inspect(|_| owned.partition.wake_waiters())
}

/// Does work and notes how long it took.
fn timed<T>(clock: &dyn Clock, times: &DurationHistogram, work: impl FnOnce() -> T) -> T {
    let begun = clock.monotonic();
    let done = work();
    times.record(clock.monotonic().saturating_sub(begun));
    done
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
