//! What every coordinator is to its host. Knows nothing of groups or transactions.

use base::{ProducerId, TimestampMs};
use bytes::Bytes;

/// The time of a decision: the wall clock for what is stored, the monotonic clock for what is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time; goes into records.
    pub wall_ms: TimestampMs,
    /// Milliseconds since an arbitrary start, never stepping back; deadlines are expressed in it.
    pub monotonic_ms: i64,
}

/// Names one caller who waits for an answer. The host gives each command a ticket of its own and never reuses one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One step of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<Record, Soft> {
    /// Goes to the log first and then to [`Machine::replay`].
    Record(Record),
    /// Changes what is not in the log (parked callers, deadlines) and is lost with the host.
    Soft(Soft),
}

/// What a machine wants done about a command, in order.
#[derive(Debug)]
pub struct Decision<M: Machine + ?Sized> {
    /// Steps to apply, records and soft ones in the order in which they take effect.
    pub events: Vec<Event<M::Record, M::Soft>>,
    /// Callers to answer once every record of this decision and of those before it is committed. A command whose own
    /// ticket is not among them is parked: a later decision answers it.
    pub answers: Vec<(Ticket, M::Answer)>,
}

impl<M: Machine + ?Sized> Default for Decision<M> {
    fn default() -> Self {
        Decision { events: Vec::new(), answers: Vec::new() }
    }
}

impl<M: Machine + ?Sized> Decision<M> {
    /// A decision that only answers.
    pub fn answer(ticket: Ticket, answer: M::Answer) -> Self {
        Decision { events: Vec::new(), answers: vec![(ticket, answer)] }
    }

    /// The records among the events.
    pub fn records(&self) -> impl Iterator<Item = &M::Record> {
        self.events.iter().filter_map(|event| match event {
            Event::Record(record) => Some(record),
            Event::Soft(_) => None,
        })
    }
}

/// A record as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// Key; compaction keeps the last record of each key.
    pub key: Bytes,
    /// Value; `None` is a tombstone.
    pub value: Option<Bytes>,
}

/// A record of the log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the field does.
    #[error("{schema}: the record ends within field {field}")]
    Truncated {
        /// Kafka's name of the schema.
        schema: &'static str,
        /// Name of the field.
        field: &'static str,
    },
    /// The version is newer than any that Kafka 4.4 writes.
    #[error("{schema}: version {version} is not known")]
    UnknownVersion {
        /// Kafka's name of the schema.
        schema: &'static str,
        /// Version found in the record.
        version: i16,
    },
    /// A field holds what its type does not allow.
    #[error("{schema}: field {field} is invalid")]
    Invalid {
        /// Kafka's name of the schema.
        schema: &'static str,
        /// Name of the field.
        field: &'static str,
    },
}

/// A coordinator's state and rules. `decide` and `expire` take `&self`: state changes through `replay`, `soft` and
/// `load` alone.
pub trait Machine: Send + 'static {
    /// What is asked.
    type Command: Send;
    /// What a caller gets.
    type Answer: Send;
    /// What is stored.
    type Record: Send;
    /// What is remembered only while the host lives.
    type Soft: Send;

    /// Answers a command or parks it.
    fn decide(&self, ticket: Ticket, command: Self::Command, now: Now) -> Decision<Self>;
    /// What the passing of time asks for; called at or after [`Machine::next_deadline_ms`].
    fn expire(&self, now: Now) -> Decision<Self>;
    /// Monotonic time at which `expire` has something to do, or earlier; `None` when nothing is waited for.
    fn next_deadline_ms(&self) -> Option<i64>;

    /// Takes a record that this machine decided.
    fn replay(&mut self, record: Self::Record);
    /// Takes a soft change that this machine decided.
    fn soft(&mut self, change: Self::Soft);

    /// Takes a record from the log; `producer_id` is -1 outside transactions.
    ///
    /// # Errors
    /// The bytes are not a record that this machine or a later Kafka protocol wrote.
    fn load(&mut self, key: &[u8], value: Option<&[u8]>, producer_id: ProducerId) -> Result<(), RecordError>;
    /// Takes the end of a transaction from the log.
    fn load_marker(&mut self, producer_id: ProducerId, committed: bool);
    /// What to do once the whole log is loaded: deadlines start now.
    fn loaded(&self, now: Now) -> Decision<Self>;

    /// The bytes of a record.
    fn encode(record: &Self::Record) -> RawRecord;
}
