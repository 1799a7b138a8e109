//! Fetch (1), versions 4-18: records of many partitions in one answer. A fetch that finds less than it asked for waits for
//! an append; each wait is ended by the append itself or by `max_wait_ms` (KIP-74 limits, KIP-227 sessions, KIP-320
//! epochs, KIP-516 topic ids from version 13).

use std::time::Duration;

use base::TopicId;
use indexmap::IndexMap;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::{ApiKey, FetchRequest, FetchResponse};
use kafka_protocol::protocol::StrBytes;
use partition_log::{Bound, Records};

use super::fetch_incremental::read_news;
use super::fetch_read::{Limits, Read, read_all};
use super::{Api, Context, Entry, Outcome};
use crate::observe::{TopicCounter, Wait};
use crate::runtime::fetch_sessions::{Begun, SessionError, TopicKey, Wanted};
use crate::runtime::partition::Waiter;
use crate::wire::fetch_reply::FetchAnswer;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<Fetch>("Fetch", 4..=18);

/// First version with sessions.
const SESSION_VERSION: i16 = 7;
/// First version that names topics by id.
const TOPIC_ID_VERSION: i16 = 13;
/// `isolation_level` of readers that see committed records alone.
const READ_COMMITTED: i8 = 1;

struct Fetch;

impl Api for Fetch {
    const KEY: i16 = ApiKey::Fetch as i16;
    type Request = FetchRequest;
    type Response = FetchAnswer;

    async fn handle(ctx: Context, request: FetchRequest) -> Outcome<FetchAnswer> {
        let uses_topic_ids = ctx.version >= TOPIC_ID_VERSION;
        let session =
            if ctx.version >= SESSION_VERSION { (request.session_id, request.session_epoch) } else { (0, -1) };
        let (wanted, forgotten) = named_partitions(&ctx, &request, uses_topic_ids);
        let now = ctx.node.clock.monotonic();
        let begun = ctx.node.fetch_sessions.begin_request(session, uses_topic_ids, wanted, &forgotten, now);
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => return Outcome::Reply(refused(error)),
        };
        let limits = limits(&request, ctx.node.config.net.fetch_bytes_max);
        let (session_id, reads, waited) = match begun {
            Begun::Full { begins_session, wanted } => {
                let (reads, waited) = read_or_wait(&ctx, &wanted, &limits).await;
                (if begins_session { begin_session(&ctx, uses_topic_ids, &reads) } else { 0 }, reads, waited)
            }
            Begun::Incremental(session) => {
                let (news, waited) = read_news(&ctx, &session, &limits).await;
                (session.id(), news, waited)
            }
        };
        Outcome::ReplyAfter(answer(ctx.version, session_id, reads), waited)
    }
}

/// What bounds a Fetch on a node that answers with at most `fetch_bytes_max` bytes of records.
fn limits(request: &FetchRequest, fetch_bytes_max: i32) -> Limits {
    let committed_only = request.isolation_level == READ_COMMITTED;
    let max_bytes = request.max_bytes.min(fetch_bytes_max);
    Limits {
        // Nobody waits for more than the answer may hold (Kafka: KafkaApis.handleFetchRequest).
        min_bytes: u64::try_from(request.min_bytes.min(max_bytes)).unwrap_or(0),
        max_bytes: usize::try_from(max_bytes).unwrap_or(0),
        max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
        bound: if committed_only { Bound::LastStableOffset } else { Bound::HighWatermark },
    }
}

fn refused(error: SessionError) -> FetchAnswer {
    let response = FetchResponse::default().with_error_code(session_error(error).code());
    FetchAnswer { response, records: Vec::new() }
}

fn session_error(error: SessionError) -> ResponseError {
    match error {
        SessionError::NotFound => ResponseError::FetchSessionIdNotFound,
        SessionError::InvalidEpoch => ResponseError::InvalidFetchSessionEpoch,
        SessionError::TopicIds => ResponseError::FetchSessionTopicIdError,
    }
}

type Forgotten = Vec<(TopicKey, i32)>;

fn named_partitions(ctx: &Context, request: &FetchRequest, uses_topic_ids: bool) -> (Vec<Wanted>, Forgotten) {
    let key = |name: &StrBytes, id: uuid::Uuid| {
        if uses_topic_ids { TopicKey::Id(TopicId(id)) } else { TopicKey::Name(ctx.node.partitions.shared_name(name)) }
    };
    // A partition that is named twice is read once, as it was named last (Kafka: FetchRequest.toPartitionDataMap).
    let mut wanted = IndexMap::new();
    for topic in &request.topics {
        let topic_key = key(&topic.topic, topic.topic_id);
        let known_as = match &topic_key {
            TopicKey::Name(_) => None,
            TopicKey::Id(id) => ctx.node.partitions.name_of(*id),
        };
        wanted.extend(topic.partitions.iter().map(|partition| {
            let wanted = Wanted {
                topic: topic_key.clone(),
                known_as: known_as.clone(),
                partition: partition.partition,
                fetch_offset: partition.fetch_offset,
                max_bytes: partition.partition_max_bytes,
                current_leader_epoch: partition.current_leader_epoch,
                last_fetched_epoch: partition.last_fetched_epoch,
            };
            ((topic_key.clone(), partition.partition), wanted)
        }));
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let topic_key = key(&topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.iter().map(|partition| (topic_key.clone(), *partition)));
    }
    (wanted.into_values().collect(), forgotten)
}

/// Reads; when that gives less than the least that the client wants, waits for appends and reads again. Tells how long it
/// has waited.
async fn read_or_wait(ctx: &Context, wanted: &[Wanted], limits: &Limits) -> (Vec<Read>, Duration) {
    let mut reads = read_all(ctx, wanted, limits).await;
    if limits.max_wait.is_zero() || wanted.is_empty() || is_enough(&reads, limits) {
        return (reads, Duration::ZERO);
    }
    // They are read again, and would only fill the memory until then.
    reads.iter_mut().for_each(|read| read.records = Records::default());
    let begun = ctx.node.clock.monotonic();
    wait_for_enough(ctx, &reads, limits).await;
    let waited = ctx.node.clock.monotonic().saturating_sub(begun);
    (read_all(ctx, wanted, limits).await, waited)
}

/// Waits until there is enough, or something else to tell, or no time left.
async fn wait_for_enough(ctx: &Context, reads: &[Read], limits: &Limits) {
    let _waiting = ctx.node.metrics.wait(Wait::Fetch);
    let deadline = tokio::time::Instant::now() + limits.max_wait;
    let waiter = Waiter::new();
    loop {
        let partitions = reads.iter().filter_map(|read| read.partition.as_ref());
        partitions.for_each(|partition| partition.add_waiter(&waiter));
        // What was appended between the read and now has woken nobody.
        let available: u64 = reads.iter().map(|read| read.available(limits.bound)).sum();
        let timed_out = available < limits.min_bytes.max(1)
            && !reads.iter().any(Read::is_closed)
            && tokio::time::timeout_at(deadline, waiter.changed()).await.is_err();
        let available: u64 = reads.iter().map(|read| read.available(limits.bound)).sum();
        if timed_out || available >= limits.min_bytes.max(1) || reads.iter().any(Read::is_closed) {
            return;
        }
    }
}

/// True if the answer can go out now.
fn is_enough(reads: &[Read], limits: &Limits) -> bool {
    let bytes: u64 = reads.iter().map(|read| read.records.len() as u64).sum();
    bytes >= limits.min_bytes || reads.iter().any(Read::is_urgent) || reads.iter().all(Read::is_unknown)
}

fn begin_session(ctx: &Context, uses_topic_ids: bool, reads: &[Read]) -> i32 {
    let answered = reads.iter().map(|read| (read.wanted.clone(), read.told())).collect();
    let random = || ctx.node.entropy.next_u64();
    ctx.node.fetch_sessions.begin_session(uses_topic_ids, answered, random, ctx.node.clock.monotonic())
}

/// Partitions under their topics, in the order in which the topics first come.
fn answer(version: i16, session_id: i32, reads: Vec<Read>) -> FetchAnswer {
    // An answer may name as many topics as fit a request, so that each is found without a look at all of them.
    let mut topics: IndexMap<TopicKey, (FetchableTopicResponse, Vec<Records>)> = IndexMap::new();
    for mut read in reads {
        if let Some(partition) = &read.partition {
            partition.topic().metrics.add(TopicCounter::BytesOut, read.records.len() as u64);
        }
        let (topic, records) = match topics.get_mut(&read.wanted.topic) {
            Some(topic) => topic,
            None => {
                let key = read.wanted.topic.clone();
                topics.entry(key).or_insert_with_key(|key| (topic_response(key), Vec::new()))
            }
        };
        records.push(std::mem::take(&mut read.records));
        topic.partitions.push(partition_data(version, read));
    }
    let (topics, records): (Vec<_>, Vec<_>) = topics.into_values().unzip();
    let mut response = FetchResponse::default().with_responses(topics);
    if version >= SESSION_VERSION {
        response = response.with_session_id(session_id);
    }
    FetchAnswer { response, records: records.into_iter().flatten().collect() }
}

fn topic_response(key: &TopicKey) -> FetchableTopicResponse {
    match key {
        TopicKey::Name(name) => {
            FetchableTopicResponse::default().with_topic(StrBytes::from_string(name.to_string()).into())
        }
        TopicKey::Id(id) => FetchableTopicResponse::default().with_topic_id(id.0),
    }
}

fn partition_data(version: i16, read: Read) -> PartitionData {
    let told = read.told();
    let mut data = PartitionData::default()
        .with_partition_index(read.wanted.partition)
        .with_error_code(told.error_code)
        .with_high_watermark(told.high_watermark)
        .with_last_stable_offset(told.last_stable_offset)
        .with_aborted_transactions(read.aborted.map(|aborted| {
            let one = |txn: partition_log::AbortedTxn| {
                AbortedTransaction::default()
                    .with_producer_id(txn.producer_id.into())
                    .with_first_offset(txn.first_offset)
            };
            aborted.into_iter().map(one).collect()
        }));
    if version >= 5 {
        data = data.with_log_start_offset(told.log_start_offset);
    }
    if version >= 11 {
        data = data.with_preferred_read_replica((-1).into());
    }
    if version >= 12
        && let Some(end) = read.diverging
    {
        data =
            data.with_diverging_epoch(EpochEndOffset::default().with_epoch(end.epoch).with_end_offset(end.end_offset));
    }
    data
}
