//! Fetch sessions (KIP-227): what a client fetches is remembered, so that its requests name only what changed and the
//! answers hold only partitions with news. A session hears of the changes of its partitions, so that a request looks at
//! those that changed and costs nothing for the others, however many there are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use parking_lot::Mutex;

use super::partition::{Partition, Ready, Subscription};

/// A session that was not used for so long may give way to another
/// (`min.incremental.fetch.session.eviction.ms`).
const EVICTION_IDLE: Duration = Duration::from_secs(120);

/// How a session names a topic: as the client does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// Before version 13 of Fetch.
    Name(Arc<str>),
    /// From version 13 on.
    Id(TopicId),
}

/// A partition that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Topic.
    pub topic: TopicKey,
    /// Name that the topic had when the client first named it by its id (Kafka: CachedPartition.maybeSetTopicName).
    pub known_as: Option<Arc<str>>,
    /// Partition.
    pub partition: PartitionIndex,
    /// First offset wanted.
    pub fetch_offset: Offset,
    /// Most bytes wanted of this partition.
    pub max_bytes: i32,
    /// Leader epoch that the client believes in; -1 for none.
    pub current_leader_epoch: LeaderEpoch,
    /// Epoch of the last record that the client has; -1 for none.
    pub last_fetched_epoch: LeaderEpoch,
}

/// What an answer said of a partition last; the next one leaves the partition out when nothing of it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Error code.
    pub error_code: i16,
    /// High watermark.
    pub high_watermark: Offset,
    /// Last stable offset.
    pub last_stable_offset: Offset,
    /// Log start offset.
    pub log_start_offset: Offset,
}

type Key = (TopicKey, PartitionIndex);

/// A partition in a session.
struct Slot {
    wanted: Wanted,
    told: Option<Told>,
    /// Whose changes it hears of.
    partition: Weak<Partition>,
    subscription: Arc<Subscription>,
}

/// What a session remembers.
#[derive(Default)]
struct State {
    /// Epoch that the next request must have.
    next_epoch: i32,
    used_at: Duration,
    numbers: HashMap<Key, u32>,
    slots: HashMap<u32, Slot>,
    next_number: u32,
}

/// One session.
pub struct Session {
    id: i32,
    uses_topic_ids: bool,
    state: Mutex<State>,
    ready: Arc<Ready>,
}

/// What a request is.
pub enum Begun {
    /// All that it names is answered; after a first answer a session may begin.
    Full {
        /// A session is wanted.
        begins_session: bool,
        /// What it names.
        wanted: Vec<Wanted>,
    },
    /// It continues a session: news are answered.
    Incremental(Arc<Session>),
}

/// The request does not fit a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The session ended, or never was.
    #[error("the fetch session does not exist")]
    NotFound,
    /// A request was lost or sent twice.
    #[error("the fetch session epoch is not the expected one")]
    InvalidEpoch,
    /// The session names topics in another way.
    #[error("the fetch session names topics in another way than the request")]
    TopicIds,
}

/// All sessions of the node.
pub struct FetchSessions {
    sessions: Mutex<HashMap<i32, Arc<Session>>>,
    sessions_max: usize,
}

impl FetchSessions {
    /// Room for `sessions_max` sessions (`max.incremental.fetch.session.cache.slots`).
    pub fn new(sessions_max: usize) -> Self {
        FetchSessions { sessions: Mutex::new(HashMap::new()), sessions_max }
    }

    /// Number of sessions now.
    pub fn len(&self) -> usize {
        self.sessions.lock().len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a request with its session id and epoch, what it names and what it forgets.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn begin_request(
        &self,
        (id, epoch): (i32, i32),
        uses_topic_ids: bool,
        wanted: Vec<Wanted>,
        forgotten: &[Key],
        now: Duration,
    ) -> Result<Begun, SessionError> {
        if epoch == FINAL_EPOCH || epoch == INITIAL_EPOCH {
            // Either way the client has no use for the old one any more.
            self.sessions.lock().remove(&id);
            return Ok(Begun::Full { begins_session: epoch == INITIAL_EPOCH, wanted });
        }
        let session = self.sessions.lock().get(&id).cloned().ok_or(SessionError::NotFound)?;
        session.go_on(epoch, uses_topic_ids, wanted, forgotten, now)?;
        Ok(Begun::Incremental(session))
    }

    /// Begins a session with what a full answer told; returns its id, or 0 when there is no room.
    pub fn begin_session(
        &self,
        uses_topic_ids: bool,
        answered: Vec<(Wanted, Told)>,
        random: impl Fn() -> u64,
        now: Duration,
    ) -> i32 {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= self.sessions_max && !evict(&mut sessions, now) {
            return 0;
        }
        let id = loop {
            // Positive, as Kafka's are; 0 means no session.
            let id = (random() & 0x7fff_ffff) as i32;
            if id != 0 && !sessions.contains_key(&id) {
                break id;
            }
        };
        let state = State { next_epoch: next_epoch(INITIAL_EPOCH), used_at: now, ..State::default() };
        let session = Session { id, uses_topic_ids, state: Mutex::new(state), ready: Arc::default() };
        {
            let mut state = session.state.lock();
            answered.into_iter().for_each(|(wanted, told)| state.put(&session.ready, wanted, Some(told)));
        }
        sessions.insert(id, Arc::new(session));
        id
    }
}

impl State {
    /// Adds a partition or changes what is wanted of it; either way it is looked at next.
    fn put(&mut self, ready: &Arc<Ready>, wanted: Wanted, told: Option<Told>) {
        let key = (wanted.topic.clone(), wanted.partition);
        if let Some(slot) = self.numbers.get(&key).and_then(|number| self.slots.get_mut(number)) {
            let known_as = slot.wanted.known_as.take().or_else(|| wanted.known_as.clone());
            slot.wanted = Wanted { known_as, ..wanted };
            slot.subscription.mark();
            return;
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let subscription = Subscription::new(number, ready.clone());
        subscription.mark();
        self.numbers.insert(key, number);
        self.slots.insert(number, Slot { wanted, told, partition: Weak::new(), subscription });
    }
}

/// Slots that a request looks at. What it has not settled when it ends, because its client has gone, is looked at by the
/// next request.
pub struct Taken {
    session: Arc<Session>,
    waiting: VecDeque<u32>,
    looked_at: Vec<u32>,
}

impl Session {
    /// Its id.
    pub fn id(&self) -> i32 {
        self.id
    }

    fn go_on(
        &self,
        epoch: i32,
        uses_topic_ids: bool,
        wanted: Vec<Wanted>,
        forgotten: &[Key],
        now: Duration,
    ) -> Result<(), SessionError> {
        let mut state = self.state.lock();
        if state.next_epoch != epoch {
            return Err(SessionError::InvalidEpoch);
        }
        if self.uses_topic_ids != uses_topic_ids {
            return Err(SessionError::TopicIds);
        }
        state.next_epoch = next_epoch(epoch);
        state.used_at = now;
        for key in forgotten {
            if let Some(number) = state.numbers.remove(key) {
                state.slots.remove(&number);
            }
        }
        wanted.into_iter().for_each(|wanted| state.put(&self.ready, wanted, None));
        Ok(())
    }

    /// Partitions that it holds.
    pub fn partition_count(&self) -> usize {
        self.state.lock().slots.len()
    }

    /// Returns when one of its partitions changed since the last return.
    pub async fn changed(&self) {
        self.ready.changed().await;
    }

    /// Takes the slots that may have news, in the order in which they are to be served.
    pub fn take(self: &Arc<Self>) -> Taken {
        Taken { session: self.clone(), waiting: self.ready.take(), looked_at: Vec::new() }
    }

    /// Ties a slot to the partition that is behind it now.
    pub fn subscribe(&self, number: u32, partition: &Arc<Partition>) {
        let mut state = self.state.lock();
        let Some(slot) = state.slots.get_mut(&number) else { return };
        if !std::ptr::eq(slot.partition.as_ptr(), Arc::as_ptr(partition)) {
            slot.partition = Arc::downgrade(partition);
            partition.subscribe(&slot.subscription);
        }
    }

    /// Says whether what was read of a slot is news to the client, and remembers what it is told. A slot that `goes_on`,
    /// because it had records or has no partition to hear of, is looked at by the next request, after all others, so
    /// that with small limits each gets its turn.
    pub fn settle(&self, number: u32, told: &Told, has_records: bool, goes_on: bool) -> bool {
        let mut state = self.state.lock();
        let Some(slot) = state.slots.get_mut(&number) else { return false };
        let is_news = has_records || told.error_code != 0 || slot.told != Some(*told);
        // An error is told again with every answer, and so is the first answer after it.
        slot.told = (told.error_code == 0).then_some(*told);
        if goes_on {
            slot.subscription.mark();
        }
        is_news
    }
}

impl Taken {
    /// The next slot and what is wanted of it.
    pub fn next_slot(&mut self) -> Option<(u32, Wanted)> {
        let state = self.session.state.lock();
        loop {
            let number = self.waiting.pop_front()?;
            // A slot that the client has forgotten meanwhile is passed over.
            if let Some(slot) = state.slots.get(&number) {
                slot.subscription.unmark();
                self.looked_at.push(number);
                return Some((number, slot.wanted.clone()));
            }
        }
    }

    /// Takes the slots that have changed since.
    pub fn take_more(&mut self) {
        self.waiting.append(&mut self.session.ready.take());
    }

    /// The slots that were not looked at yet.
    pub fn waiting(&self) -> impl Iterator<Item = &u32> {
        self.waiting.iter()
    }

    /// Says that everything that was looked at is settled.
    pub fn settled(mut self) {
        self.looked_at.clear();
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.session.ready.put_first(self.waiting.drain(..));
        let state = self.session.state.lock();
        self.looked_at.iter().filter_map(|number| state.slots.get(number)).for_each(|slot| slot.subscription.mark());
    }
}

/// Epoch of a request that begins a session.
const INITIAL_EPOCH: i32 = 0;
/// Epoch of a request outside of sessions, and of one that ends its session.
const FINAL_EPOCH: i32 = -1;

/// Epochs go round from the largest to 1 (Kafka: FetchMetadata.nextEpoch).
fn next_epoch(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}

/// Makes room by ending the session that was idle longest, if it was idle long enough.
fn evict(sessions: &mut HashMap<i32, Arc<Session>>, now: Duration) -> bool {
    let used_at = |session: &Session| session.state.lock().used_at;
    let oldest = sessions.iter().map(|(id, session)| (*id, used_at(session))).min_by_key(|(_, used_at)| *used_at);
    match oldest {
        Some((id, used_at)) if now.saturating_sub(used_at) >= EVICTION_IDLE => sessions.remove(&id).is_some(),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests;
