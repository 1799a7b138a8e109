//! One cleaning from begin to end: the log's owner begins it and puts the results in place, the reading and writing is
//! done on threads that may wait.

use std::ops::ControlFlow;
use std::sync::Arc;

use partition_log::{CleanError, Cleanable, CleaningOptions, CleaningProgress, CleaningReport};

use super::pace::{Cancel, Pace};
use crate::runtime::partition::live::Partition;
use crate::tasks::Tasks;

/// A log to clean.
pub(super) struct Order {
    pub partition: Arc<Partition>,
    pub cleanable: Cleanable,
    pub options: CleaningOptions,
    pub pace: Arc<Pace>,
    pub cancel: Arc<Cancel>,
}

/// How a cleaning ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Everything up to the end that it names is clean.
    Done(CleaningReport),
    /// There was nothing to do, or the log is closed or has failed, which its owner has told.
    Nothing,
    /// It was told to stop, or the log has changed under it.
    Interrupted,
    /// The disk refused; it may be better later.
    Refused(CleanError),
    /// It will not be better by itself.
    Hopeless(String),
}

pub(super) async fn clean(order: Order) -> Ended {
    let thread = order.partition.thread();
    let key = order.partition.key();
    let Some(Ok(Some(mut job))) = thread.begin_cleaning(key, order.cleanable, order.options).await else {
        return Ended::Nothing;
    };
    loop {
        let (partition, pace, cancel) = (order.partition.clone(), order.pace.clone(), order.cancel.clone());
        let run = Tasks::run_aside(move || {
            job.run(&mut |bytes| {
                pace.charge(bytes, &cancel);
                let compacted = partition.topic().config.load().cleanup_compact;
                if cancel.is_cancelled() || !compacted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        let Some(outcome) = run.await else {
            // The owner removes what was written.
            thread.finish_cleaning(key, Err(CleanError::Stopped)).await;
            return Ended::Hopeless("the cleaner broke off; this is a fault of this program".to_owned());
        };
        match thread.finish_cleaning(key, outcome).await {
            Some(Ok(CleaningProgress::More(next))) => job = next,
            Some(Ok(CleaningProgress::Done(report))) => return Ended::Done(report),
            Some(Ok(CleaningProgress::Ended(error))) => return ended_with(error),
            Some(Err(_)) | None => return Ended::Nothing,
        }
    }
}

fn ended_with(error: CleanError) -> Ended {
    match error {
        CleanError::Stopped | CleanError::Overtaken => Ended::Interrupted,
        CleanError::Storage(_) => Ended::Refused(error),
        CleanError::MapTooSmall { .. } => Ended::Hopeless(format!("{error}; raise log.cleaner.dedupe.buffer.size")),
        CleanError::Corrupt { .. } | CleanError::SegmentFull { .. } => Ended::Hopeless(error.to_string()),
    }
}
