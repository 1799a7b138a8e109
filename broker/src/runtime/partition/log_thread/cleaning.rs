//! What the cleaner asks of a log's owner: what there is to clean, to begin, and to put the results in place. The reading
//! and writing in between is not done here.

use base::Offset;
use partition_log::{
    CleanError, Cleanable, CleanedGroup, CleaningJob, CleaningOptions, CleaningProgress, Log, LogError,
};
use tokio::sync::oneshot;

use super::failures::report_failure;
use super::owner::Owner;
use super::{LogThread, Message};
use crate::runtime::partition::live::PartitionKey;

/// A log to look at.
#[derive(Debug, Clone, Copy)]
pub(in crate::runtime::partition) struct LookAt {
    pub key: PartitionKey,
    /// The log's entry in `cleaner-offset-checkpoint`.
    pub checkpoint: Option<Offset>,
}

/// What a log thread does for the cleaner.
pub(in crate::runtime::partition) enum CleaningStep {
    /// For each log what can be cleaned; `None` for one that is closed or has failed.
    Look(Vec<LookAt>, oneshot::Sender<Vec<Option<Cleanable>>>),
    Begin(PartitionKey, Cleanable, CleaningOptions, oneshot::Sender<Result<Option<Box<CleaningJob>>, LogError>>),
    Finish(PartitionKey, Box<Result<CleanedGroup, CleanError>>, oneshot::Sender<Result<CleaningProgress, LogError>>),
}

impl LogThread {
    async fn step<R>(&self, step: impl FnOnce(oneshot::Sender<R>) -> CleaningStep) -> Option<R> {
        self.ask(|reply| Message::Clean(step(reply))).await
    }

    /// Whether both are handles to one thread.
    pub(in crate::runtime::partition) fn is_same(&self, other: &LogThread) -> bool {
        self.queue.same_channel(&other.queue)
    }

    /// Looks at logs, in their order; empty when the thread has stopped.
    pub(in crate::runtime::partition) async fn look(&self, logs: Vec<LookAt>) -> Vec<Option<Cleanable>> {
        self.step(|reply| CleaningStep::Look(logs, reply)).await.unwrap_or_default()
    }

    /// Begins a cleaning. `None` when the log is closed.
    pub(in crate::runtime::partition) async fn begin_cleaning(
        &self,
        key: PartitionKey,
        cleanable: Cleanable,
        options: CleaningOptions,
    ) -> Option<Result<Option<Box<CleaningJob>>, LogError>> {
        self.step(|reply| CleaningStep::Begin(key, cleanable, options, reply)).await
    }

    /// Puts the outcome of a job in place. `None` when the log is closed.
    pub(in crate::runtime::partition) async fn finish_cleaning(
        &self,
        key: PartitionKey,
        outcome: Result<CleanedGroup, CleanError>,
    ) -> Option<Result<CleaningProgress, LogError>> {
        self.step(|reply| CleaningStep::Finish(key, Box::new(outcome), reply)).await
    }
}

impl Owner {
    pub(super) fn clean(&mut self, step: CleaningStep, now_ms: i64) {
        // The one who asked may have stopped meanwhile.
        match step {
            CleaningStep::Look(logs, reply) => {
                let looked = logs.into_iter().map(|at| self.look_at(at, now_ms)).collect();
                let _ = reply.send(looked);
            }
            CleaningStep::Begin(key, cleanable, options, reply) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    let _ = reply.send(owned.log.begin_cleaning(&cleanable, &options));
                }
            }
            CleaningStep::Finish(key, outcome, reply) => {
                if let Some(owned) = self.logs.get_mut(&key) {
                    let progress = owned.log.finish_cleaning(*outcome, now_ms);
                    if let Err(error) = &progress {
                        report_failure(&owned.partition, error);
                    }
                    let _ = reply.send(progress);
                }
            }
        }
    }

    fn look_at(&mut self, at: LookAt, now_ms: i64) -> Option<Cleanable> {
        let owned = self.logs.get_mut(&at.key)?;
        let looked = look(&mut owned.log, at.checkpoint, now_ms);
        looked.inspect_err(|error| tracing::debug!(partition = %owned.log.partition(), %error, "not cleaned")).ok()
    }
}

/// Compacted logs are looked through for old segments as often as for what can be cleaned, not only at
/// `log.retention.check.interval.ms` (Kafka: LogCleaner.cleanFilthiestLog).
fn look(log: &mut Log, checkpoint: Option<Offset>, now_ms: i64) -> Result<Cleanable, LogError> {
    log.apply_retention(now_ms)?;
    log.roll_for_compaction(now_ms)?;
    log.cleanable(checkpoint, now_ms)
}
