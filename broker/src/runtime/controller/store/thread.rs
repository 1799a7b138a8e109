//! The thread that owns the metadata log, the vote and the snapshots. It does one piece of work after the other; appends
//! that wait together are written together and synced once.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Offset, TimestampMs};
use bytes::Bytes;
use partition_log::{AppendScratch, FileCache, Log};
use tokio::sync::{mpsc, oneshot};

use super::{
    KeptSnapshot, QuorumState, Retention, SnapshotId, StoreError, StoreOptions, StoredBatch, quorum_state,
    read_batches, snapshot,
};
use crate::observe::DurationHistogram;
use crate::tasks::Tasks;

/// Pieces of work that may wait for the thread.
const WORK_QUEUE_LEN: usize = 1_024;
/// Bytes of appends that are synced together at most.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Told when an append is on disk, or never will be.
pub type Done = Box<dyn FnOnce(io::Result<()>) + Send>;

enum Work {
    Append { batches: Vec<Bytes>, done: Done },
    SaveVote { state: QuorumState, reply: oneshot::Sender<io::Result<()>> },
    Truncate { offset: Offset, reply: oneshot::Sender<io::Result<()>> },
    Restart { offset: Offset, reply: oneshot::Sender<io::Result<()>> },
    Trim { offset: Offset },
    Read { from: Offset, to: Offset, reply: oneshot::Sender<io::Result<Vec<StoredBatch>>> },
    Clean,
    WriteSnapshot { id: SnapshotId, bytes: Bytes, reply: oneshot::Sender<io::Result<()>> },
}

/// Gives the thread work as long as others do; does not keep the log open.
#[derive(Clone)]
pub struct WeakStoreHandle(mpsc::WeakSender<Work>);

impl WeakStoreHandle {
    /// The handle, unless the log is closed.
    pub fn upgrade(&self) -> Option<StoreHandle> {
        self.0.upgrade().map(|work| StoreHandle { work })
    }
}

/// Gives the thread its work. The thread closes the log when every handle is gone.
#[derive(Clone)]
pub struct StoreHandle {
    work: mpsc::Sender<Work>,
}

impl StoreHandle {
    /// A handle that does not keep the log open.
    pub fn downgrade(&self) -> WeakStoreHandle {
        WeakStoreHandle(self.work.downgrade())
    }

    /// Appends batches that carry their offsets and epochs; `done` hears when they are on disk.
    pub async fn append(&self, batches: Vec<Bytes>, done: Done) {
        if let Err(mpsc::error::SendError(Work::Append { done, .. })) =
            self.work.send(Work::Append { batches, done }).await
        {
            done(Err(gone()));
        }
    }

    /// Puts the vote on disk.
    pub async fn save_vote(&self, state: QuorumState) -> io::Result<()> {
        self.ask(|reply| Work::SaveVote { state, reply }).await
    }

    /// Removes everything from `offset` on.
    pub async fn truncate(&self, offset: Offset) -> io::Result<()> {
        self.ask(|reply| Work::Truncate { offset, reply }).await
    }

    /// Removes everything; the next record gets `offset`.
    pub async fn restart(&self, offset: Offset) -> io::Result<()> {
        self.ask(|reply| Work::Restart { offset, reply }).await
    }

    /// Says that nobody needs what lies before `offset`, which a snapshot covers. It goes when retention asks for it.
    pub async fn trim(&self, offset: Offset) {
        // A thread that is gone has nothing to trim.
        let _ = self.work.send(Work::Trim { offset }).await;
    }

    /// Removes what is past its retention.
    pub async fn clean(&self) {
        // A thread that is gone has nothing to clean.
        let _ = self.work.send(Work::Clean).await;
    }

    /// The batches from one offset to another.
    pub async fn read(&self, from: Offset, to: Offset) -> io::Result<Vec<StoredBatch>> {
        self.ask(|reply| Work::Read { from, to, reply }).await
    }

    /// Puts a snapshot on disk, and removes what is past its retention then.
    pub async fn write_snapshot(&self, id: SnapshotId, bytes: Bytes) -> io::Result<()> {
        self.ask(|reply| Work::WriteSnapshot { id, bytes, reply }).await
    }

    async fn ask<T>(&self, work: impl FnOnce(oneshot::Sender<io::Result<T>>) -> Work) -> io::Result<T> {
        let (reply, answer) = oneshot::channel();
        self.work.send(work(reply)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> io::Error {
    io::Error::other("the metadata log is closed")
}

struct Owner {
    log: Log,
    directory: PathBuf,
    files: Arc<FileCache>,
    clock: Arc<dyn Clock>,
    retention: Retention,
    flushes: Arc<DurationHistogram>,
    /// Snapshots in the directory, oldest first.
    kept: Vec<KeptSnapshot>,
    /// Nobody reads what lies before it.
    unread_before: Offset,
    scratch: AppendScratch,
}

/// Starts the thread. `kept` are the snapshots in the directory; nobody reads the log before `unread_before`.
pub fn start(
    log: Log,
    directory: PathBuf,
    kept: Vec<KeptSnapshot>,
    unread_before: Offset,
    options: &StoreOptions,
) -> io::Result<StoreHandle> {
    let (work, queue) = mpsc::channel(WORK_QUEUE_LEN);
    let owner = Owner {
        log,
        directory,
        files: options.files.clone(),
        clock: options.clock.clone(),
        retention: options.retention,
        flushes: options.flushes.clone(),
        kept,
        unread_before,
        scratch: AppendScratch::default(),
    };
    Tasks::spawn_owner_thread("metadata-log", move || owner.run(queue))?;
    Ok(StoreHandle { work })
}

impl Owner {
    fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let mut next = queue.blocking_recv();
        while let Some(work) = next.take() {
            match work {
                Work::Append { batches, done } => next = self.append_group(batches, done, &mut queue),
                other => self.run_one(other),
            }
            if next.is_none() {
                next = queue.blocking_recv();
            }
        }
        if let Err(error) = self.log.close() {
            tracing::error!(%error, "the metadata log was not closed in order; the next start checks it");
        }
    }

    /// Writes this append and those that wait behind it, and syncs once. Gives back the work that ended the group.
    fn append_group(&mut self, batches: Vec<Bytes>, done: Done, queue: &mut mpsc::Receiver<Work>) -> Option<Work> {
        let mut group = vec![done];
        let mut bytes = batches.iter().map(Bytes::len).sum::<usize>();
        let mut outcome = self.write(&batches);
        let mut rest = None;
        while outcome.is_ok() && bytes < GROUP_BYTES_MAX {
            match queue.try_recv() {
                Ok(Work::Append { batches, done }) => {
                    bytes += batches.iter().map(Bytes::len).sum::<usize>();
                    group.push(done);
                    outcome = self.write(&batches);
                }
                Ok(other) => {
                    rest = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let outcome = outcome.and_then(|()| self.flush());
        for done in group {
            done(outcome.as_ref().copied().map_err(|error| io::Error::other(error.to_string())));
        }
        rest
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = self.clock.monotonic();
        let flushed = self.log.flush().map(|_| ()).map_err(io::Error::other);
        self.flushes.record(self.clock.monotonic().saturating_sub(begun));
        flushed
    }

    fn write(&mut self, batches: &[Bytes]) -> io::Result<()> {
        let now_ms = self.clock.wall_ms();
        for batch in batches {
            self.log.append_as_follower(&mut self.scratch, batch, now_ms).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn run_one(&mut self, work: Work) {
        let now_ms = self.clock.wall_ms();
        let disk = self.files.disk().clone();
        // A caller that does not wait any more is no reason to stop.
        match work {
            Work::Append { batches, done } => done(self.write(&batches)),
            Work::SaveVote { state, reply } => {
                let _ = reply.send(quorum_state::write(disk.as_ref(), &self.directory, &state));
            }
            Work::Truncate { offset, reply } => {
                let outcome = self.log.truncate_to(offset, now_ms).map(|_| ()).map_err(io::Error::other);
                let _ = reply.send(outcome);
            }
            Work::Restart { offset, reply } => {
                let outcome = self.log.truncate_fully_and_start_at(offset, now_ms).map_err(io::Error::other);
                let _ = reply.send(outcome);
            }
            Work::Trim { offset } => {
                self.log.set_high_watermark(offset);
                self.unread_before = self.unread_before.max(offset);
            }
            Work::Clean => self.clean(now_ms),
            Work::Read { from, to, reply } => {
                let outcome =
                    read_batches(&self.log.reader(), from, to).map_err(|error: StoreError| io::Error::other(error));
                let _ = reply.send(outcome);
            }
            Work::WriteSnapshot { id, bytes, reply } => {
                let written = snapshot::write_file(disk.as_ref(), &self.directory, id, &bytes);
                let last_timestamp_ms = snapshot::last_timestamp_ms(&bytes);
                if written.is_ok() {
                    self.kept.retain(|kept| kept.id != id);
                    self.kept.push(KeptSnapshot { id, bytes: bytes.len() as u64, last_timestamp_ms });
                    self.kept.sort_unstable_by_key(|kept| kept.id);
                }
                let _ = reply.send(written);
                self.clean(now_ms);
            }
        }
    }

    /// Removes snapshots and segments until retention asks for nothing more. What does not go now goes later.
    fn clean(&mut self, now_ms: TimestampMs) {
        if let Err(error) = self.log.remove_expired_files(now_ms) {
            tracing::warn!(%error, "files of the metadata log that were cut off stay");
        }
        while let Some(start) = self.retention.next_start(&self.kept, self.log.size_bytes(), now_ms) {
            if let Err(error) = self.delete_before(start, now_ms) {
                tracing::warn!(%error, "the metadata log keeps records that its snapshot covers");
                return;
            }
        }
    }

    /// Lets the log begin where a snapshot ends, unless somebody reads what lies before it, and removes older snapshots.
    fn delete_before(&mut self, start: SnapshotId, now_ms: TimestampMs) -> io::Result<()> {
        let offset = start.end_offset.min(self.unread_before).max(self.log.log_start_offset());
        if self.retention.bytes.is_some_and(|most| self.log.size_bytes() > most) {
            // The active segment alone may be larger than what is to be kept; only whole segments go.
            self.log.roll(now_ms).map_err(io::Error::other)?;
        }
        self.log.set_high_watermark(self.log.high_watermark().max(offset));
        self.log.advance_log_start(offset).map_err(io::Error::other)?;
        self.log.apply_retention(now_ms).map_err(io::Error::other)?;
        let disk = self.files.disk();
        while let Some(oldest) = self.kept.first().filter(|kept| kept.id < start) {
            snapshot::remove_file(disk.as_ref(), &self.directory, oldest.id)?;
            tracing::info!(snapshot = %oldest.id, "a metadata snapshot past its retention was removed");
            self.kept.remove(0);
        }
        Ok(())
    }
}
