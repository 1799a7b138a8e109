//! One file for each Kafka API, and the table of them. What is not in the table is not advertised. ApiVersions, the
//! labels of the request metrics and docs/protocol.md are computed from it.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::protocol::{Decodable, HeaderVersion};

use crate::node::Node;
use crate::security::{Authorized, Denied, Operation, Resource, Session};
use crate::wire::error_codes::ErrorCodes;
use crate::wire::reply_frame::ReplyFrame;
use crate::wire::{self, Reply};

mod alter_configs;
pub mod api_versions;
mod auto_create;
mod change_configs;
mod config_resources;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_topic_partitions;
mod epochs;
mod errors;
mod fetch;
mod fetch_incremental;
mod fetch_read;
mod find_coordinator;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod partition_view;
mod produce;
mod sync_group;
mod topic_errors;
#[cfg(test)]
mod written;

/// Every API that this node serves, in the order of their keys.
pub const TABLE: &[Entry] = &[
    produce::ENTRY,
    fetch::ENTRY,
    list_offsets::ENTRY,
    metadata::ENTRY,
    offset_commit::ENTRY,
    offset_fetch::ENTRY,
    find_coordinator::ENTRY,
    join_group::ENTRY,
    heartbeat::ENTRY,
    leave_group::ENTRY,
    sync_group::ENTRY,
    describe_groups::ENTRY,
    list_groups::ENTRY,
    api_versions::ENTRY,
    create_topics::ENTRY,
    delete_topics::ENTRY,
    delete_records::ENTRY,
    init_producer_id::ENTRY,
    offset_for_leader_epoch::ENTRY,
    describe_configs::ENTRY,
    alter_configs::ENTRY,
    describe_log_dirs::ENTRY,
    create_partitions::ENTRY,
    delete_groups::ENTRY,
    incremental_alter_configs::ENTRY,
    offset_delete::ENTRY,
    describe_cluster::ENTRY,
    describe_producers::ENTRY,
    list_config_resources::ENTRY,
    describe_topic_partitions::ENTRY,
];

/// One Kafka API: how its requests are read, answered and written.
pub trait Api: 'static {
    /// Kafka's key of the API.
    const KEY: i16;
    /// The request as a type.
    type Request: Decodable + HeaderVersion + Send;
    /// The answer as a type.
    type Response: Reply + Send;

    /// Answers a request: translates it, makes one call, translates the result.
    fn handle(ctx: Context, request: Self::Request) -> impl Future<Output = Outcome<Self::Response>> + Send;
}

/// What becomes of a request.
pub enum Outcome<R> {
    /// The answer.
    Reply(R),
    /// The answer, after so much time of waiting for what other clients do.
    ReplyAfter(R, Duration),
    /// The client wants no answer (Produce with acks=0).
    Silent,
    /// The connection has to be closed, for this reason (Produce with acks=0 that failed).
    Close(String),
}

/// The order in which requests of one connection may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Begins when every earlier request of the connection is answered, as in Kafka.
    Alone,
    /// May begin while earlier requests of the same kind are under way; the handler queues its work in the order of
    /// the requests before it first waits. Answers leave in order all the same.
    Pipelined,
}

/// A row of the table.
pub struct Entry {
    /// Kafka's key.
    pub key: i16,
    /// Name as Kafka writes it, used as metric label.
    pub name: &'static str,
    /// Versions that are answered.
    pub versions_served: (i16, i16),
    /// Lowest version advertised; differs from the lowest served for Produce alone (KAFKA-18659).
    pub version_advertised_min: i16,
    /// How its requests may overlap on one connection.
    pub order: Order,
    request_header_version: fn(i16) -> i16,
    run: fn(Context, Bytes, usize) -> Started,
    decode: fn(Bytes, i16, usize) -> Result<usize, wire::WireError>,
}

/// A request under way.
pub type Running = Pin<Box<dyn Future<Output = Finished> + Send>>;

/// A request that was handled.
pub struct Finished {
    /// The frame of its answer, if it wants one.
    pub frame: Result<Option<ReplyFrame>, CloseReason>,
    /// Time of waiting for what other clients do.
    pub waited: Duration,
}

impl From<Result<Option<ReplyFrame>, CloseReason>> for Finished {
    fn from(frame: Result<Option<ReplyFrame>, CloseReason>) -> Finished {
        Finished { frame, waited: Duration::ZERO }
    }
}

/// A request that was decoded.
pub struct Started {
    /// Its answer, under way.
    pub running: Running,
    /// What it takes in memory beyond its frame, in bytes.
    pub cost: usize,
}

/// Why a connection is closed after a request.
#[derive(Debug, thiserror::Error)]
pub enum CloseReason {
    /// The request is one that cannot be answered.
    #[error("{0}")]
    BadRequest(String),
    /// The message does not fit its version.
    #[error(transparent)]
    Wire(#[from] wire::WireError),
}

impl Entry {
    /// The row of `A`, served at `versions`.
    pub const fn of<A: Api>(name: &'static str, versions: RangeInclusive<i16>) -> Entry {
        Entry {
            key: A::KEY,
            name,
            versions_served: (*versions.start(), *versions.end()),
            version_advertised_min: *versions.start(),
            order: Order::Alone,
            request_header_version: <A::Request as HeaderVersion>::header_version,
            run: run::<A>,
            decode: |body, version, cost_max| Ok(wire::decode_body::<A::Request>(body, version, cost_max)?.1),
        }
    }

    /// The same row, advertised from a lower version than is served.
    pub const fn advertised_from(mut self, version: i16) -> Entry {
        self.version_advertised_min = version;
        self
    }

    /// The same row, whose requests may overlap.
    pub const fn pipelined(mut self) -> Entry {
        self.order = Order::Pipelined;
        self
    }

    /// True if requests at `version` are answered.
    pub fn serves(&self, version: i16) -> bool {
        (self.versions_served.0..=self.versions_served.1).contains(&version)
    }

    /// True if the request header at `version` carries tagged fields.
    pub fn has_flexible_head(&self, version: i16) -> bool {
        (self.request_header_version)(version) >= 2
    }

    /// Decodes a request and does nothing with it; returns what it takes in memory beyond its frame, in bytes.
    ///
    /// # Errors
    /// See [`wire::decode_body`].
    pub fn decode_only(&self, version: i16, body: Bytes, cost_max: usize) -> Result<usize, wire::WireError> {
        (self.decode)(body, version, cost_max)
    }

    /// Decodes a request, whose body may cost `cost_max` bytes beyond the frame, and begins to answer it.
    pub fn run(&self, ctx: Context, body: Bytes, cost_max: usize) -> Started {
        (self.run)(ctx, body, cost_max)
    }
}

/// The row of an API, with its index in the table.
pub fn entry(key: i16) -> Option<(usize, &'static Entry)> {
    static BY_KEY: OnceLock<Vec<Option<u8>>> = OnceLock::new();
    let by_key = BY_KEY.get_or_init(|| {
        let mut by_key = vec![None; TABLE.iter().map(|e| e.key as usize + 1).max().unwrap_or(0)];
        for (index, entry) in TABLE.iter().enumerate() {
            by_key[entry.key as usize] = u8::try_from(index).ok();
        }
        by_key
    });
    let index = usize::from((*by_key.get(usize::try_from(key).ok()?)?)?);
    Some((index, &TABLE[index]))
}

fn run<A: Api>(ctx: Context, body: Bytes, cost_max: usize) -> Started {
    let version = ctx.version;
    let correlation_id = ctx.correlation_id;
    let (request, cost) = match wire::decode_body::<A::Request>(body, version, cost_max) {
        Ok(decoded) => decoded,
        Err(error) => return Started { running: Box::pin(std::future::ready(Err(error.into()).into())), cost: 0 },
    };
    let metrics = ctx.node.metrics.clone();
    let running = Box::pin(async move {
        let (response, waited) = match A::handle(ctx, request).await {
            Outcome::Reply(response) => (response, Duration::ZERO),
            Outcome::ReplyAfter(response, waited) => (response, waited),
            Outcome::Silent => return Ok(None).into(),
            Outcome::Close(reason) => return Err(CloseReason::BadRequest(reason)).into(),
        };
        if let Some((index, _)) = entry(A::KEY) {
            response.error_codes(&mut |code| metrics.answered_with(index, code));
        }
        let frame = response.into_frame(correlation_id, version).map(Some).map_err(CloseReason::from);
        Finished { frame, waited }
    });
    Started { running, cost }
}

/// What a handler gets beside the request.
#[derive(Clone)]
pub struct Context {
    /// The node and its owners of state.
    pub node: Arc<Node>,
    /// Who asks.
    pub session: Session,
    /// Version of the request and so of the answer.
    pub version: i16,
    /// Number of the request on its connection.
    pub correlation_id: i32,
}

impl Context {
    /// Asks whether the session may do `operation` on `resource`.
    ///
    /// # Errors
    /// It may not.
    pub fn may<R: Resource>(&self, operation: Operation, resource: R) -> Result<Authorized<R>, Denied> {
        self.node.authorizer.may(&self.session, operation, resource)
    }

    /// Bit field of what the session may do on `resource`, or Kafka's "not asked" value.
    pub fn allowed_operations<R: Resource>(&self, asked: bool, resource: &R) -> i32 {
        if asked { self.node.authorizer.allowed_operations(&self.session, resource) } else { i32::MIN }
    }
}
