//! Fetch sessions (KIP-227): what a client fetches is remembered, so that its requests name only what changed and the
//! answers hold only partitions with news. The cache owns the sessions; a request borrows one for the moments in which
//! it reads or changes it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use indexmap::IndexMap;
use parking_lot::Mutex;

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

struct InSession {
    wanted: Wanted,
    told: Option<Told>,
}

type Key = (TopicKey, PartitionIndex);

/// One session.
struct Session {
    /// Epoch that the next request must have.
    next_epoch: i32,
    uses_topic_ids: bool,
    partitions: IndexMap<Key, InSession>,
    used_at: Duration,
}

/// What a request is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No session: everything asked is answered.
    Sessionless,
    /// Everything is answered, and a session begins if there is room.
    Begin,
    /// Only news are answered, within this session.
    Continue(i32),
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
    sessions: Mutex<HashMap<i32, Session>>,
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

    /// Takes a request with its session id and epoch. Returns what it is and all partitions to be read, in the order in
    /// which they are to be served.
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
    ) -> Result<(Kind, Vec<Wanted>), SessionError> {
        let mut sessions = self.sessions.lock();
        if epoch == FINAL_EPOCH || epoch == INITIAL_EPOCH {
            // Either way the client has no use for the old one any more.
            sessions.remove(&id);
            return Ok((if epoch == INITIAL_EPOCH { Kind::Begin } else { Kind::Sessionless }, wanted));
        }
        let session = sessions.get_mut(&id).ok_or(SessionError::NotFound)?;
        if session.next_epoch != epoch {
            return Err(SessionError::InvalidEpoch);
        }
        if session.uses_topic_ids != uses_topic_ids {
            return Err(SessionError::TopicIds);
        }
        session.next_epoch = next_epoch(epoch);
        session.used_at = now;
        for key in forgotten {
            session.partitions.shift_remove(key);
        }
        for wanted in wanted {
            let key = (wanted.topic.clone(), wanted.partition);
            match session.partitions.get_mut(&key) {
                Some(known) => {
                    let known_as = known.wanted.known_as.take().or_else(|| wanted.known_as.clone());
                    known.wanted = Wanted { known_as, ..wanted };
                }
                None => {
                    session.partitions.insert(key, InSession { wanted, told: None });
                }
            }
        }
        Ok((Kind::Continue(id), session.partitions.values().map(|partition| partition.wanted.clone()).collect()))
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
        let partitions = answered
            .into_iter()
            .map(|(wanted, told)| {
                let key = (wanted.topic.clone(), wanted.partition);
                (key, InSession { wanted, told: Some(told) })
            })
            .collect();
        sessions
            .insert(id, Session { next_epoch: next_epoch(INITIAL_EPOCH), uses_topic_ids, partitions, used_at: now });
        id
    }

    /// Says which of the read partitions are news to the client, and remembers what it is told. Partitions that had
    /// records go behind the others, so that with small limits each gets its turn.
    pub fn news(&self, id: i32, read: &[(Wanted, Told, bool)]) -> Vec<bool> {
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.get_mut(&id) else { return vec![true; read.len()] };
        let mut news = Vec::with_capacity(read.len());
        for (wanted, told, has_records) in read {
            let key = (wanted.topic.clone(), wanted.partition);
            let Some(known) = session.partitions.get_mut(&key) else {
                news.push(true);
                continue;
            };
            let is_news = *has_records || told.error_code != 0 || known.told != Some(*told);
            // An error is told again with every answer, and so is the first answer after it.
            known.told = (told.error_code == 0).then_some(*told);
            news.push(is_news);
            if *has_records && let Some(moved) = session.partitions.shift_remove(&key) {
                session.partitions.insert(key, moved);
            }
        }
        news
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
fn evict(sessions: &mut HashMap<i32, Session>, now: Duration) -> bool {
    let oldest = sessions.iter().min_by_key(|(_, session)| session.used_at);
    match oldest.map(|(id, session)| (*id, session.used_at)) {
        Some((id, used_at)) if now.saturating_sub(used_at) >= EVICTION_IDLE => sessions.remove(&id).is_some(),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(partition: i32) -> Wanted {
        Wanted {
            topic: TopicKey::Name("t".into()),
            known_as: None,
            partition,
            fetch_offset: 0,
            max_bytes: 1,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
        }
    }

    const TOLD: Told = Told { error_code: 0, high_watermark: 5, last_stable_offset: 5, log_start_offset: 0 };

    fn begun(sessions: &FetchSessions) -> i32 {
        sessions.begin_session(false, vec![(wanted(0), TOLD), (wanted(1), TOLD)], || 7, Duration::ZERO)
    }

    fn go_on(sessions: &FetchSessions, id: i32, epoch: i32) -> Result<(Kind, Vec<Wanted>), SessionError> {
        sessions.begin_request((id, epoch), false, Vec::new(), &[], Duration::ZERO)
    }

    #[test]
    fn bl_040_a_request_must_have_the_next_epoch_of_a_known_session() {
        let sessions = FetchSessions::new(10);
        let id = begun(&sessions);
        assert_eq!(go_on(&sessions, id, 7), Err(SessionError::InvalidEpoch));
        assert_eq!(go_on(&sessions, id + 1, 1), Err(SessionError::NotFound));
        assert_eq!(go_on(&sessions, id, 1), Ok((Kind::Continue(id), vec![wanted(0), wanted(1)])));
        assert_eq!(go_on(&sessions, id, 1), Err(SessionError::InvalidEpoch));
        assert_eq!(go_on(&sessions, id, -1), Ok((Kind::Sessionless, Vec::new())));
        assert_eq!(go_on(&sessions, id, 2), Err(SessionError::NotFound));
    }

    #[test]
    fn bl_041_a_forgotten_partition_does_not_come_back() {
        let sessions = FetchSessions::new(10);
        let id = begun(&sessions);
        let forgotten = [(TopicKey::Name("t".into()), 1)];
        let (_, left) = sessions.begin_request((id, 1), false, Vec::new(), &forgotten, Duration::ZERO).unwrap();
        assert_eq!(left, [wanted(0)]);
    }

    #[test]
    fn bl_074_a_session_remembers_the_name_that_an_id_had_first() {
        let sessions = FetchSessions::new(10);
        let named = |known_as: Option<&str>, fetch_offset| Wanted {
            topic: TopicKey::Id(TopicId(uuid::Uuid::from_u128(7))),
            known_as: known_as.map(Into::into),
            fetch_offset,
            ..wanted(0)
        };
        let id = sessions.begin_session(true, vec![(named(Some("t"), 0), TOLD)], || 7, Duration::ZERO);
        let again = sessions.begin_request((id, 1), true, vec![named(None, 5)], &[], Duration::ZERO);
        assert_eq!(again.unwrap().1, [named(Some("t"), 5)]);
    }

    #[test]
    fn only_what_changed_is_news() {
        let sessions = FetchSessions::new(10);
        let id = begun(&sessions);
        let moved = Told { high_watermark: 6, ..TOLD };
        assert_eq!(sessions.news(id, &[(wanted(0), TOLD, false), (wanted(1), moved, false)]), [false, true]);
        assert_eq!(sessions.news(id, &[(wanted(1), moved, false)]), [false]);
        assert_eq!(sessions.news(id, &[(wanted(0), TOLD, true)]), [true]);
        assert_eq!(go_on(&sessions, id, 1).unwrap().1, [wanted(1), wanted(0)]);
    }

    #[test]
    fn a_full_cache_begins_no_session_until_one_was_idle_for_two_minutes() {
        let sessions = FetchSessions::new(1);
        begun(&sessions);
        let begin = |at| sessions.begin_session(false, Vec::new(), || 9, Duration::from_secs(at));
        assert_eq!(begin(119), 0);
        assert_eq!(begin(120), 9);
    }
}
