//! A thread that owns logs. It drains its queue, writes what is there in one go, wakes readers, answers, and does the
//! slow work of its logs (rolling, retention, deletion), so that the async runtime never waits for a disk.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Clock, Offset};
use partition_log::{AppendError, Appended, Log, LogError, OpenError, RecoveryReport};
use tokio::sync::mpsc;

use super::failures::{first_refusal, report_failure, report_refusal};
use super::{Closed, LogThread, Message, ToOpen};
use crate::observe::DurationHistogram;
use crate::runtime::partition::appends::{AppendReply, Gathered, Pending};
use crate::runtime::partition::live::{Partition, PartitionKey};
use crate::tasks::Tasks;

/// Most appends that are gathered into one go.
const GATHER_MAX: usize = 1024;

pub(super) struct OwnedLog {
    pub log: Log,
    pub partition: Arc<Partition>,
    pub flushed_at_ms: i64,
    /// Where the log ended at the last retention run.
    pub end_at_retention: Offset,
    /// True from the first append that the disk refused until one succeeds.
    refused_by_disk: bool,
}

pub(super) struct Owner {
    pub logs: HashMap<PartitionKey, OwnedLog>,
    gathered: Gathered,
    pub clock: Arc<dyn Clock>,
    tasks: Tasks,
    /// Times of syncing a log.
    pub flushes: Arc<DurationHistogram>,
    handle: mpsc::WeakSender<Message>,
}

impl Owner {
    pub fn new(
        clock: Arc<dyn Clock>,
        tasks: Tasks,
        flushes: Arc<DurationHistogram>,
        handle: mpsc::WeakSender<Message>,
    ) -> Owner {
        Owner { logs: HashMap::new(), gathered: Gathered::default(), clock, tasks, flushes, handle }
    }

    pub fn run(mut self, mut queue: mpsc::Receiver<Message>) {
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
            Message::Clean(step) => self.clean(step, now_ms),
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
pub(super) fn timed<T>(clock: &dyn Clock, times: &DurationHistogram, work: impl FnOnce() -> T) -> T {
    let begun = clock.monotonic();
    let done = work();
    times.record(clock.monotonic().saturating_sub(begun));
    done
}
