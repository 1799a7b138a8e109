//! InitProducerId (22), versions 0-5, for producers that are idempotent and not transactional: each gets a new id at
//! epoch 0, whatever id it had before (Kafka: TransactionCoordinator.handleInitProducerId). There is no coordinator of
//! transactions yet, and a producer with a transactional id is told so.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, InitProducerIdRequest, InitProducerIdResponse};

use super::{Api, Context, Entry, Outcome};
use crate::runtime::producer_ids::ProducerIdError;
use crate::security::{Cluster, Operation, TransactionalId};
use crate::wire::text::kept;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<InitProducerId>("InitProducerId", 0..=5);

/// No id, no epoch.
const NONE: i64 = -1;

struct InitProducerId;

impl Api for InitProducerId {
    const KEY: i16 = ApiKey::InitProducerId as i16;
    type Request = InitProducerIdRequest;
    type Response = InitProducerIdResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        let response = match init(&ctx, &request).await {
            Ok(id) => InitProducerIdResponse::default().with_producer_id(id.into()).with_producer_epoch(0),
            Err(error) => InitProducerIdResponse::default()
                .with_error_code(error.code())
                .with_producer_id(NONE.into())
                .with_producer_epoch(-1),
        };
        Outcome::Reply(response)
    }
}

async fn init(ctx: &Context, request: &InitProducerIdRequest) -> Result<i64, ResponseError> {
    match &request.transactional_id {
        Some(id) => {
            ctx.may(Operation::Write, TransactionalId(kept(&id.0)))
                .map_err(|_| ResponseError::TransactionalIdAuthorizationFailed)?;
        }
        None => {
            ctx.may(Operation::IdempotentWrite, Cluster).map_err(|_| ResponseError::ClusterAuthorizationFailed)?;
        }
    }
    if (request.producer_id.0 == NONE) != (request.producer_epoch == -1) {
        return Err(ResponseError::InvalidRequest);
    }
    match request.transactional_id.as_ref().map(|id| id.is_empty()) {
        Some(true) => Err(ResponseError::InvalidRequest),
        Some(false) => Err(ResponseError::CoordinatorNotAvailable),
        None => ctx.node.producer_ids.next().await.map_err(|error| match error {
            // Both pass: the client asks again, as it does while Kafka waits for a block.
            ProducerIdError::Controller(_) | ProducerIdError::Refused(_) => ResponseError::CoordinatorLoadInProgress,
        }),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let answer = InitProducerIdResponse::default().with_producer_id(7.into()).with_producer_epoch(0);
            answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }
}
