//! A log in memory that can hold, fail and be garbage, and a shard of groups on top of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::{Clock, Offset, TimestampMs};
use bytes::Bytes;
use coordinator::group::command::{CommitOffsets, FetchOffsets, OffsetToCommit};
use coordinator::group::{Answer, Command, GroupConfig, GroupMachine};
use parking_lot::Mutex;
use record_batch::BatchMut;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::error::CoordinatorError;
use super::log::{ShardLog, ShardLogError};
use super::shard::{Shard, ShardOwnership, start_shard};
use crate::tasks::Tasks;

/// The paused time of the test runtime.
pub struct TestClock(tokio::time::Instant);

impl Default for TestClock {
    fn default() -> Self {
        TestClock(tokio::time::Instant::now())
    }
}

impl Clock for TestClock {
    fn wall_ms(&self) -> TimestampMs {
        1_700_000_000_000 + self.0.elapsed().as_millis() as i64
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

pub struct MemoryLog {
    batches: Mutex<Vec<(Offset, Vec<u8>)>>,
    held: watch::Sender<bool>,
    fails: AtomicBool,
}

impl Default for MemoryLog {
    fn default() -> Self {
        MemoryLog { batches: Mutex::default(), held: watch::Sender::new(false), fails: AtomicBool::new(false) }
    }
}

impl MemoryLog {
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    pub fn release(&self) {
        self.held.send_replace(false);
    }

    pub fn fail_next(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    pub fn batch_count(&self) -> usize {
        self.batches.lock().len()
    }

    pub fn put_garbage(&self) {
        self.batches.lock().push((0, vec![0xff; 100]));
    }
}

impl ShardLog for MemoryLog {
    async fn append(&self, mut batch: Vec<u8>) -> Result<(), ShardLogError> {
        if self.fails.swap(false, Ordering::SeqCst) {
            return Err(ShardLogError::Unavailable("told to".into()));
        }
        let mut edit = BatchMut::parse(&mut batch).unwrap();
        {
            let mut batches = self.batches.lock();
            let offset = batches.last().map_or(0, |(next_offset, _)| *next_offset);
            edit.set_base_offset(offset);
            let next_offset = edit.header().next_offset();
            batches.push((next_offset, batch));
        }
        // The sender lives as long as this log does.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        Ok(())
    }

    async fn read(&self, offset: Offset, bytes_max: usize) -> Result<Bytes, ShardLogError> {
        let mut read = Vec::new();
        for (next_offset, batch) in self.batches.lock().iter() {
            if (*next_offset > offset || *next_offset == 0) && read.len() < bytes_max {
                read.extend_from_slice(batch);
            }
        }
        Ok(read.into())
    }

    fn log_start_offset(&self) -> Offset {
        0
    }

    fn batch_bytes_max(&self) -> usize {
        10_000
    }
}

pub struct Bed {
    pub log: Arc<MemoryLog>,
    pub shard: Shard<GroupMachine>,
    ownership: Option<ShardOwnership>,
    _tasks: Tasks,
}

impl Bed {
    pub fn over(log: Arc<MemoryLog>) -> Self {
        let tasks = Tasks::new();
        let clock = Arc::new(TestClock::default());
        let machine = || GroupMachine::new(GroupConfig::default());
        let (shard, ownership) = start_shard(&tasks, "test".into(), log.clone(), machine, clock);
        Bed { log, shard, ownership: Some(ownership), _tasks: tasks }
    }

    pub async fn loaded() -> Self {
        let bed = Bed::over(Arc::new(MemoryLog::default()));
        bed.shard.loaded().await;
        bed
    }

    pub async fn call(&self, command: Command) -> Result<Answer, CoordinatorError> {
        self.shard.call(command).await
    }

    #[allow(clippy::disallowed_methods, reason = "a test may start a task of its own")]
    pub fn begin(&self, command: Command) -> JoinHandle<Result<Answer, CoordinatorError>> {
        let shard = self.shard.clone();
        let call = async move { shard.call(command).await };
        tokio::spawn(call)
    }

    pub fn unload(&mut self) {
        self.ownership = None;
    }
}

/// True while the call has no answer, although everything that could run has run.
pub async fn is_pending<T>(call: &mut JoinHandle<T>) -> bool {
    tokio::time::timeout(Duration::from_millis(1), call).await.is_err()
}

pub fn commit(group_id: &str, offset: i64) -> Command {
    Command::CommitOffsets(CommitOffsets {
        group_id: group_id.into(),
        member_id: "".into(),
        instance_id: None,
        generation: -1,
        retention_ms: None,
        knows_group_not_found: true,
        offsets: vec![OffsetToCommit {
            topic: "t".into(),
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: "".into(),
        }],
    })
}

pub fn fetch(group_id: &str) -> Command {
    Command::FetchOffsets(FetchOffsets { group_id: group_id.into(), topics: None, require_stable: false })
}

pub fn unknown_delete() -> Command {
    Command::DeleteGroups(vec!["none".into()])
}

/// The only offset of an answer.
pub fn fetched(answer: Result<Answer, CoordinatorError>) -> i64 {
    match answer {
        Ok(Answer::Fetch(topics)) => topics[0].partitions[0].offset,
        other => panic!("no offsets: {other:?}"),
    }
}
