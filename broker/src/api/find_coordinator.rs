//! FindCoordinator (10), versions 0-6: which node coordinates a group; from version 4 on several keys at once (KIP-699).
//! The topic that holds the groups is made when it is first asked for. Transactions and share groups are not
//! coordinated here: their keys are refused as Kafka refuses a kind of coordinator that it does not run.

use std::sync::Arc;

use base::hash::coordinator_partition;
use base::topics::GROUP_METADATA_TOPIC;
use cluster::MetadataImage;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{ApiKey, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::security::{GroupId, Operation, TransactionalId};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<FindCoordinator>("FindCoordinator", 0..=6);

/// First version that asks for several keys.
const KEYS_MIN: i16 = 4;
/// First version with an error message.
const MESSAGE_MIN: i16 = 1;
/// Kinds of coordinators (Kafka: FindCoordinatorRequest.CoordinatorType).
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

struct FindCoordinator;

impl Api for FindCoordinator {
    const KEY: i16 = ApiKey::FindCoordinator as i16;
    type Request = FindCoordinatorRequest;
    type Response = FindCoordinatorResponse;

    async fn handle(ctx: Context, request: FindCoordinatorRequest) -> Outcome<FindCoordinatorResponse> {
        if ctx.version < KEYS_MIN {
            let found = find(&ctx, request.key_type, &request.key);
            return Outcome::Reply(single(ctx.version, found));
        }
        let coordinators = request.coordinator_keys.into_iter().map(|key| {
            let found = find(&ctx, request.key_type, &key);
            one_of_many(key, found)
        });
        Outcome::Reply(FindCoordinatorResponse::default().with_coordinators(coordinators.collect()))
    }
}

/// Where a node is reached.
struct Place {
    node_id: i32,
    host: StrBytes,
    port: i32,
}

/// Why no coordinator is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    /// The topic is being made, or nobody leads the partition now.
    #[error("The coordinator is not available.")]
    NotAvailable,
    /// The session may not see the group.
    #[error("Group authorization failed.")]
    GroupDenied,
    /// The session may not see the transactional id.
    #[error("Transactional Id authorization failed.")]
    TransactionDenied,
    /// Shown by clients as the reason for which a transactional producer cannot start.
    #[error("This broker does not coordinate transactions.")]
    NoTransactions,
    /// A kind of coordinator that does not exist here.
    #[error("This broker does not run a coordinator of that kind.")]
    UnknownKind,
}

impl Refusal {
    fn code(self) -> i16 {
        let error = match self {
            Refusal::NotAvailable => ResponseError::CoordinatorNotAvailable,
            Refusal::GroupDenied => ResponseError::GroupAuthorizationFailed,
            Refusal::TransactionDenied => ResponseError::TransactionalIdAuthorizationFailed,
            Refusal::NoTransactions | Refusal::UnknownKind => ResponseError::InvalidRequest,
        };
        error.code()
    }
}

fn find(ctx: &Context, key_type: i8, key: &StrBytes) -> Result<Place, Refusal> {
    match key_type {
        GROUP => {
            let group = ctx.may(Operation::Describe, GroupId(kept(key))).map_err(|_| Refusal::GroupDenied)?;
            let image = ctx.node.image.load();
            if image.topic(GROUP_METADATA_TOPIC).is_none() {
                ctx.node.groups.want_topic();
            }
            leader_for(&image, &group.get().0, &ctx.session.listener).ok_or(Refusal::NotAvailable)
        }
        TRANSACTION => {
            ctx.may(Operation::Describe, TransactionalId(kept(key))).map_err(|_| Refusal::TransactionDenied)?;
            Err(Refusal::NoTransactions)
        }
        _ => Err(Refusal::UnknownKind),
    }
}

/// The node that leads the partition of the group, if it is there and alive.
fn leader_for(image: &MetadataImage, group_id: &Arc<str>, listener: &str) -> Option<Place> {
    let partitions = image.topic(GROUP_METADATA_TOPIC)?.partitions();
    let index = coordinator_partition(group_id, i32::try_from(partitions.len()).ok().filter(|count| *count > 0)?);
    let leader = partitions.get(usize::try_from(index).ok()?)?.leader;
    if !image.is_active(leader) {
        return None;
    }
    let endpoint = image.broker(leader)?.endpoint(listener)?;
    Some(Place { node_id: leader.0, host: message_text(&endpoint.host), port: i32::from(endpoint.port) })
}

fn single(version: i16, found: Result<Place, Refusal>) -> FindCoordinatorResponse {
    // On success Kafka's message is the name of its code 0.
    let message = match &found {
        Ok(_) => "NONE".to_owned(),
        Err(error) => error.to_string(),
    };
    let (code, place) = split(found);
    FindCoordinatorResponse::default()
        .with_error_code(code)
        .with_error_message((version >= MESSAGE_MIN).then(|| StrBytes::from_string(message)))
        .with_node_id(place.node_id.into())
        .with_host(place.host)
        .with_port(place.port)
}

fn one_of_many(key: StrBytes, found: Result<Place, Refusal>) -> Coordinator {
    // Kafka leaves the message empty where the code says all.
    let message = match &found {
        Err(refusal @ (Refusal::NoTransactions | Refusal::UnknownKind)) => refusal.to_string(),
        Ok(_) | Err(Refusal::NotAvailable | Refusal::GroupDenied | Refusal::TransactionDenied) => String::new(),
    };
    let (code, place) = split(found);
    Coordinator::default()
        .with_key(key)
        .with_error_code(code)
        .with_error_message(Some(StrBytes::from_string(message)))
        .with_node_id(place.node_id.into())
        .with_host(place.host)
        .with_port(place.port)
}

/// The code, and the place; that of no node when there is an error.
fn split(found: Result<Place, Refusal>) -> (i16, Place) {
    match found {
        Ok(place) => (0, place),
        Err(error) => (error.code(), Place { node_id: -1, host: StrBytes::default(), port: -1 }),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let outcomes = || {
                let place = Place { node_id: 1, host: StrBytes::from_static_str("localhost"), port: 9092 };
                [Ok(place), Err(Refusal::NotAvailable)]
            };
            for found in outcomes() {
                let answer = if version < KEYS_MIN {
                    single(version, found)
                } else {
                    let one = one_of_many(StrBytes::from_static_str("g"), found);
                    FindCoordinatorResponse::default().with_coordinators(vec![one])
                };
                answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
            }
        }
    }

    #[test]
    fn the_answers_are_kafkas_bytes() {
        let place = || Place { node_id: 1, host: StrBytes::from_static_str("localhost"), port: 21200 };
        let mut written = bytes::BytesMut::new();
        single(2, Ok(place())).encode(&mut written, 2).unwrap();
        assert_eq!(written, &b"\0\0\0\0\0\0\0\x04NONE\0\0\0\x01\0\tlocalhost\0\0R\xd0"[..]);
        let one = one_of_many(StrBytes::from_static_str("g"), Ok(place()));
        let mut written = bytes::BytesMut::new();
        FindCoordinatorResponse::default().with_coordinators(vec![one]).encode(&mut written, 4).unwrap();
        assert_eq!(written, &b"\0\0\0\0\x02\x02g\0\0\0\x01\nlocalhost\0\0R\xd0\0\0\x01\0\0"[..]);
    }
}
