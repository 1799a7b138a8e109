//! The raft log on the metadata log. An entry is a batch; its index is counted in memory from the newest snapshot on. The
//! batches that were appended last stay in memory, for the state machine and for followers that keep up; older ones are
//! read back from the disk.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Clock, NodeId, Offset, TimestampMs};
use cluster::DirectoryId;
use cluster::records::control::{LeaderChangeMessage, LeaderVoter};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogId, LogState, Membership, RaftLogId, RaftLogReader, StorageError, StorageIOError, Vote};
use parking_lot::Mutex;

use super::types::{Content, Entry, Member, Types, epoch_of, log_id, voters_record};
use crate::runtime::controller::consensus::QuorumCounters;
use crate::runtime::controller::store::{Payload, QuorumState, StoreHandle, StoredBatch, batches};

/// Bytes of batches that are kept in memory.
const RECENT_BYTES_MAX: usize = 2 << 20;
/// Entries that one read gives at most.
const READ_ENTRIES_MAX: u64 = 1_000;

/// Where the entries are.
#[derive(Debug, Default)]
struct Entries {
    /// Last offset and epoch of each entry, from `first_index` on.
    places: VecDeque<Place>,
    first_index: u64,
    /// The entry before the first.
    purged: Option<LogId<NodeId>>,
    /// Offset that the next record gets.
    end_offset: Offset,
    recent: BTreeMap<u64, Entry>,
    recent_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    base_offset: Offset,
    last_offset: Offset,
    log_id: LogId<NodeId>,
}

impl Entries {
    fn push(&mut self, entry: Entry, batch: &StoredBatch) {
        let index = entry.log_id.index;
        if self.places.is_empty() {
            self.first_index = index;
        }
        self.places.push_back(Place {
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            log_id: entry.log_id,
        });
        self.end_offset = batch.last_offset + 1;
        self.recent_bytes += batch.bytes.len();
        self.recent.insert(index, entry);
        while self.recent_bytes > RECENT_BYTES_MAX && self.recent.len() > 1 {
            if let Some((_, oldest)) = self.recent.pop_first() {
                self.recent_bytes -= stored_len(&oldest);
            }
        }
    }

    fn last(&self) -> Option<LogId<NodeId>> {
        self.places.back().map(|place| place.log_id).or(self.purged)
    }

    fn place(&self, index: u64) -> Option<Place> {
        let nth = usize::try_from(index.checked_sub(self.first_index)?).ok()?;
        self.places.get(nth).copied()
    }

    /// Forgets the entries from `index` on; gives the offset where they began.
    fn truncate(&mut self, index: u64) -> Option<Offset> {
        let cut = self.place(index)?;
        self.places.truncate(usize::try_from(index - self.first_index).ok()?);
        for (_, entry) in self.recent.split_off(&index) {
            self.recent_bytes -= stored_len(&entry);
        }
        self.end_offset = cut.base_offset;
        Some(cut.base_offset)
    }

    /// Forgets the entries up to and including `upto`; gives the offset after them.
    fn purge(&mut self, upto: LogId<NodeId>) -> Option<Offset> {
        let after = self.place(upto.index).map(|place| place.last_offset + 1);
        while self.places.front().is_some_and(|place| place.log_id.index <= upto.index) {
            self.places.pop_front();
        }
        self.first_index = upto.index + 1;
        let kept = self.recent.split_off(&self.first_index);
        self.recent_bytes = kept.values().map(stored_len).sum();
        self.recent = kept;
        self.purged = Some(upto);
        after
    }
}

fn stored_len(entry: &Entry) -> usize {
    entry.stored.as_ref().map_or(0, |batch| batch.bytes.len())
}

/// What the log was when the node started.
pub struct LogStart {
    /// The entry that the snapshot ends with.
    pub purged: Option<LogId<NodeId>>,
    /// The quorum of the snapshot.
    pub membership: Option<Membership<NodeId, Member>>,
    /// The batches after it.
    pub batches: Vec<StoredBatch>,
    /// Offset that the next record gets.
    pub end_offset: Offset,
    /// The vote.
    pub quorum_state: Option<QuorumState>,
}

/// The writer, which only the raft core has.
pub struct LogStore {
    node_id: NodeId,
    directory_id: DirectoryId,
    clock: Arc<dyn Clock>,
    store: StoreHandle,
    entries: Arc<Mutex<Entries>>,
    vote: Option<Vote<NodeId>>,
    membership: Membership<NodeId, Member>,
    counters: Arc<QuorumCounters>,
}

/// A reader.
#[derive(Clone)]
pub struct LogView {
    store: StoreHandle,
    entries: Arc<Mutex<Entries>>,
}

impl LogStore {
    /// Goes on with what was found at the start; `place` is the node and the directory of its log.
    pub fn new(
        place: (NodeId, DirectoryId),
        clock: Arc<dyn Clock>,
        store: StoreHandle,
        start: LogStart,
        counters: Arc<QuorumCounters>,
    ) -> LogStore {
        let (node_id, directory_id) = place;
        let first_index = start.purged.map_or(0, |purged| purged.index + 1);
        let mut entries =
            Entries { first_index, purged: start.purged, end_offset: start.end_offset, ..Entries::default() };
        let mut membership = start.membership.unwrap_or_default();
        for (index, batch) in (first_index..).zip(start.batches) {
            let entry = Entry::from_stored(index, batch.clone());
            if let Content::Membership(now) = &entry.content {
                membership = now.clone();
            }
            entries.push(entry, &batch);
        }
        let vote = start.quorum_state.map(|state| vote_at_start(&state));
        counters.log_end_offset.store(entries.end_offset, Ordering::Relaxed);
        let entries = Arc::new(Mutex::new(entries));
        LogStore { node_id, directory_id, clock, store, entries, vote, membership, counters }
    }

    /// True when this node is the whole quorum.
    pub fn is_only_voter(&self) -> bool {
        self.membership.voter_ids().eq([self.node_id])
    }

    fn quorum_state(&self, vote: &Vote<NodeId>) -> QuorumState {
        let id = vote.leader_id();
        let (leader, voted) = match id.voted_for() {
            Some(leader) if vote.is_committed() => (Some(leader), None),
            Some(candidate) => (None, Some((candidate, self.directory_of(candidate)))),
            None => (None, None),
        };
        QuorumState { epoch: epoch_of(id.get_term()), leader, voted }
    }

    fn directory_of(&self, node: NodeId) -> DirectoryId {
        match self.membership.get_node(&node) {
            Some(member) => member.directory_id,
            None if node == self.node_id => self.directory_id,
            None => DirectoryId::ZERO,
        }
    }

    fn leader_change(&self) -> LeaderChangeMessage {
        let voter = |id| LeaderVoter { voter_id: id, voter_directory_id: self.directory_of(id) };
        let voters: Vec<LeaderVoter> = self.membership.voter_ids().map(voter).collect();
        let granting_voters = if voters.len() == 1 { voters.clone() } else { vec![voter(self.node_id)] };
        // Kafka's tools read version 0 only, whatever the value says of itself (Kafka: ControlRecordUtils).
        LeaderChangeMessage { version: 0, leader_id: self.node_id, voters, granting_voters }
    }

    fn store_batch(&self, entry: &Entry, base_offset: Offset, now_ms: TimestampMs) -> io::Result<StoredBatch> {
        let payload = match &entry.content {
            Content::Blank => Payload::Leader(self.leader_change()),
            Content::Membership(membership) => Payload::Voters(voters_record(membership)),
            Content::Records(records) => Payload::Records(Arc::clone(records)),
        };
        batches::build(base_offset, epoch_of(entry.log_id.leader_id.term), now_ms, payload).map_err(io::Error::other)
    }
}

/// The vote with which a node starts. A leader that starts again is none any more: it stands for election in a new epoch,
/// as in Kafka, so that no two runs of a process write in the same epoch.
fn vote_at_start(state: &QuorumState) -> Vote<NodeId> {
    let term = u64::from(state.epoch.max(0).unsigned_abs());
    match state.leader.or(state.voted.map(|(candidate, _)| candidate)) {
        Some(node) => Vote::new(term, node),
        None => Vote { leader_id: openraft::LeaderId { term, voted_for: None }, committed: false },
    }
}

impl RaftLogReader<Types> for LogView {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError<NodeId>> {
        let (from_disk, mut found) = {
            let entries = self.entries.lock();
            let last = entries.last().map_or(0, |last| last.index + 1);
            let start = match range.start_bound() {
                Bound::Included(start) => *start,
                Bound::Excluded(start) => *start + 1,
                Bound::Unbounded => 0,
            };
            let end = match range.end_bound() {
                Bound::Included(end) => *end + 1,
                Bound::Excluded(end) => *end,
                Bound::Unbounded => last,
            };
            let (start, end) = (start.max(entries.first_index), end.min(last));
            let recent = entries.recent.first_key_value().map_or(last, |(first, _)| *first);
            let from_disk = (start < end.min(recent)).then(|| {
                let place = |index| entries.place(index);
                Some((start, place(start)?.base_offset, place(end.min(recent) - 1)?.last_offset + 1))
            });
            let found: Vec<Entry> = if start.max(recent) < end {
                entries.recent.range(start.max(recent)..end).map(|(_, entry)| entry.clone()).collect()
            } else {
                Vec::new()
            };
            (from_disk.flatten(), found)
        };
        if let Some((index, from, to)) = from_disk {
            let stored = self.store.read(from, to).await.map_err(|error| StorageIOError::read_logs(&error))?;
            let mut all: Vec<Entry> = (index..).zip(stored).map(|(i, batch)| Entry::from_stored(i, batch)).collect();
            all.append(&mut found);
            found = all;
        }
        Ok(found)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError<NodeId>> {
        self.try_get_log_entries(start..end.min(start + READ_ENTRIES_MAX)).await
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError<NodeId>> {
        self.get_log_reader().await.try_get_log_entries(range).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogView;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError<NodeId>> {
        let entries = self.entries.lock();
        Ok(LogState { last_purged_log_id: entries.purged, last_log_id: entries.last() })
    }

    async fn get_log_reader(&mut self) -> LogView {
        LogView { store: self.store.clone(), entries: self.entries.clone() }
    }

    async fn save_vote(&mut self, vote: &Vote<NodeId>) -> Result<(), StorageError<NodeId>> {
        self.vote = Some(*vote);
        let state = self.quorum_state(vote);
        Ok(self.store.save_vote(state).await.map_err(|error| StorageIOError::write_vote(&error))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<NodeId>>, StorageError<NodeId>> {
        Ok(self.vote)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError<NodeId>>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let now_ms = self.clock.wall_ms();
        let mut written = Vec::new();
        for mut entry in entries {
            if let Content::Membership(membership) = &entry.content {
                self.membership = membership.clone();
            }
            let batch = match &entry.stored {
                // A follower keeps the leader's bytes.
                Some(batch) => Arc::clone(batch),
                None => {
                    let base_offset = self.entries.lock().end_offset;
                    let batch = self.store_batch(&entry, base_offset, now_ms);
                    Arc::new(batch.map_err(|error| StorageIOError::write_log_entry(*entry.get_log_id(), &error))?)
                }
            };
            entry.stored = Some(Arc::clone(&batch));
            written.push(batch.bytes.clone());
            self.counters.log_end_offset.store(batch.last_offset + 1, Ordering::Relaxed);
            self.entries.lock().push(entry, &batch);
        }
        self.store.append(written, Box::new(|outcome| callback.log_io_completed(outcome))).await;
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<NodeId>) -> Result<(), StorageError<NodeId>> {
        let offset = self.entries.lock().truncate(from.index);
        match offset {
            Some(offset) => {
                self.counters.log_end_offset.store(offset, Ordering::Relaxed);
                Ok(self.store.truncate(offset).await.map_err(|error| StorageIOError::write_logs(&error))?)
            }
            None => Ok(()),
        }
    }

    async fn purge(&mut self, upto: LogId<NodeId>) -> Result<(), StorageError<NodeId>> {
        let after = self.entries.lock().purge(upto);
        if let Some(offset) = after {
            self.store.trim(offset).await;
        }
        Ok(())
    }
}

impl LogView {
    /// Forgets everything: a snapshot that ends at `end_offset` has taken the log's place.
    pub async fn restart(&self, last: LogId<NodeId>, end_offset: Offset) -> io::Result<()> {
        let covered = self.entries.lock().place(last.index).is_some_and(|place| place.log_id == last);
        if covered {
            return Ok(());
        }
        *self.entries.lock() =
            Entries { first_index: last.index + 1, purged: Some(last), end_offset, ..Entries::default() };
        self.store.restart(end_offset).await
    }
}

/// The id of the last entry that a snapshot covers. A snapshot of Kafka counts records only: its entries are taken to be
/// one for each record, which every node that starts from the same snapshot does alike.
pub fn snapshot_log_id(end_offset: Offset, epoch: base::LeaderEpoch, raft_index: Option<u64>) -> LogId<NodeId> {
    log_id(epoch, raft_index.unwrap_or(end_offset.max(1).unsigned_abs() - 1))
}
