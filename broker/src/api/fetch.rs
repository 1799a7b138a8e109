//! Fetch (1), versions 4-18: records of many partitions in one answer. A fetch that finds less than it asked for waits for
//! an append; each wait is ended by the append itself or by `max_wait_ms` (KIP-74 limits, KIP-227 sessions, KIP-320
//! epochs, KIP-516 topic ids from version 13).

use std::time::Duration;

use base::TopicId;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::{ApiKey, FetchRequest, FetchResponse};
use kafka_protocol::protocol::StrBytes;
use partition_log::Bound;

use super::fetch_read::{Limits, Read, read_all};
use super::{Api, Context, Entry, Outcome};
use crate::observe::Wait;
use crate::runtime::fetch_sessions::{Kind, SessionError, Told, TopicKey, Wanted};
use crate::runtime::partition::Waiter;
use crate::wire::reply_frame::ReplyFrame;
use crate::wire::{self, WireError};

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
    type Response = FetchResponse;

    async fn handle(ctx: Context, request: FetchRequest) -> Outcome<FetchResponse> {
        let uses_topic_ids = ctx.version >= TOPIC_ID_VERSION;
        let session =
            if ctx.version >= SESSION_VERSION { (request.session_id, request.session_epoch) } else { (0, -1) };
        let (wanted, forgotten) = named_partitions(&ctx, &request, uses_topic_ids);
        let now = ctx.node.clock.monotonic();
        let begun = ctx.node.fetch_sessions.begin_request(session, uses_topic_ids, wanted, &forgotten, now);
        let (kind, wanted) = match begun {
            Ok(begun) => begun,
            Err(error) => return Outcome::Reply(FetchResponse::default().with_error_code(session_error(error).code())),
        };
        let bound =
            if request.isolation_level == READ_COMMITTED { Bound::LastStableOffset } else { Bound::HighWatermark };
        let limits = Limits {
            min_bytes: u64::try_from(request.min_bytes).unwrap_or(0),
            max_bytes: request.max_bytes.min(ctx.node.config.net.fetch_bytes_max).try_into().unwrap_or(0),
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
            bound,
        };
        let (reads, waited) = read_or_wait(&ctx, &wanted, &limits).await;
        Outcome::ReplyAfter(answer(&ctx, kind, uses_topic_ids, reads), waited)
    }

    fn encode(correlation_id: i32, version: i16, response: FetchResponse) -> Result<ReplyFrame, WireError> {
        wire::fetch_reply::encode(correlation_id, version, response)
    }
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
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let topic_key = key(&topic.topic, topic.topic_id);
        wanted.extend(topic.partitions.iter().map(|partition| Wanted {
            topic: topic_key.clone(),
            partition: partition.partition,
            fetch_offset: partition.fetch_offset,
            max_bytes: partition.partition_max_bytes,
            current_leader_epoch: partition.current_leader_epoch,
            last_fetched_epoch: partition.last_fetched_epoch,
        }));
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let topic_key = key(&topic.topic, topic.topic_id);
        forgotten.extend(topic.partitions.iter().map(|partition| (topic_key.clone(), *partition)));
    }
    (wanted, forgotten)
}

/// Reads; when that gives less than the least that the client wants, waits for appends and reads again. Tells how long it
/// has waited.
async fn read_or_wait(ctx: &Context, wanted: &[Wanted], limits: &Limits) -> (Vec<Read>, Duration) {
    let reads = read_all(ctx, wanted, limits).await;
    if limits.max_wait.is_zero() || wanted.is_empty() || is_enough(&reads, limits) {
        return (reads, Duration::ZERO);
    }
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

fn is_enough(reads: &[Read], limits: &Limits) -> bool {
    let bytes: u64 = reads.iter().map(|read| read.records.len() as u64).sum();
    bytes >= limits.min_bytes || reads.iter().any(|read| read.error.is_some() || read.diverging.is_some())
}

fn answer(ctx: &Context, kind: Kind, uses_topic_ids: bool, reads: Vec<Read>) -> FetchResponse {
    let told: Vec<(Wanted, Told, bool)> =
        reads.iter().map(|read| (read.wanted.clone(), read.told(), !read.records.is_empty())).collect();
    let (session_id, news) = match kind {
        Kind::Sessionless => (0, None),
        Kind::Begin => {
            let answered = told.into_iter().map(|(wanted, told, _)| (wanted, told)).collect();
            let random = || ctx.node.entropy.next_u64();
            let now = ctx.node.clock.monotonic();
            (ctx.node.fetch_sessions.begin_session(uses_topic_ids, answered, random, now), None)
        }
        Kind::Continue(id) => (id, Some(ctx.node.fetch_sessions.news(id, &told))),
    };
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    let mut keys: Vec<TopicKey> = Vec::new();
    for (at, read) in reads.into_iter().enumerate() {
        if news.as_ref().is_some_and(|news| !news[at]) {
            continue;
        }
        // Partitions of a topic nearly always stand next to each other.
        let known = keys.iter().rposition(|key| *key == read.wanted.topic);
        let index = known.unwrap_or_else(|| {
            keys.push(read.wanted.topic.clone());
            topics.push(topic_response(&read.wanted.topic));
            keys.len() - 1
        });
        topics[index].partitions.push(partition_data(ctx.version, read));
    }
    if ctx.version < SESSION_VERSION {
        return FetchResponse::default().with_responses(topics);
    }
    FetchResponse::default().with_session_id(session_id).with_responses(topics)
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
        // Never null: librdkafka refuses a length of -1.
        .with_records(Some(read.records))
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
