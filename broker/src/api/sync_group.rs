//! SyncGroup (14), versions 0-5: a member of a classic group gets its assignment, the leader brings those of all. From
//! version 5 on the member names type and protocol of the group (KIP-559).

use coordinator::group::command::{Sync, Synced};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, SyncGroupRequest, SyncGroupResponse};

use super::{Api, Context, Entry, Outcome};
use crate::observe::Wait;
use crate::runtime::coordinator::{coordinator_code, group_code};
use crate::security::{GroupId, Operation};
use crate::wire::text::{kept, kept_option, message_text_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<SyncGroup>("SyncGroup", 0..=5);

/// First version in which type and protocol of the group must be named, and are told.
const PROTOCOL_MIN: i16 = 5;

struct SyncGroup;

impl Api for SyncGroup {
    const KEY: i16 = ApiKey::SyncGroup as i16;
    type Request = SyncGroupRequest;
    type Response = SyncGroupResponse;

    async fn handle(ctx: Context, request: SyncGroupRequest) -> Outcome<SyncGroupResponse> {
        let begun = ctx.node.clock.monotonic();
        let response = match answer(&ctx, &request).await {
            Ok(synced) => response(ctx.version, &synced),
            Err(code) => SyncGroupResponse::default().with_error_code(code),
        };
        Outcome::ReplyAfter(response, ctx.node.clock.monotonic().saturating_sub(begun))
    }
}

async fn answer(ctx: &Context, request: &SyncGroupRequest) -> Result<Synced, i16> {
    if ctx.version >= PROTOCOL_MIN && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return Err(ResponseError::InconsistentGroupProtocol.code());
    }
    let group = ctx
        .may(Operation::Read, GroupId(kept(&request.group_id)))
        .map_err(|_| ResponseError::GroupAuthorizationFailed.code())?;
    let assignments = request.assignments.iter().map(|assignment| {
        // A copy, because it stays as long as the generation does and the frame shall not.
        (kept(&assignment.member_id), bytes::Bytes::copy_from_slice(&assignment.assignment))
    });
    let sync = Sync {
        group_id: group.get().0.clone(),
        member_id: kept(&request.member_id),
        instance_id: kept_option(request.group_instance_id.as_ref()),
        generation: request.generation_id,
        protocol_type: kept_option(request.protocol_type.as_ref()),
        protocol_name: kept_option(request.protocol_name.as_ref()),
        assignments: assignments.collect(),
    };
    if sync.group_id.is_empty() {
        return Err(ResponseError::InvalidGroupId.code());
    }
    let handle = ctx.node.groups.group(&group).map_err(|error| coordinator_code(&error))?;
    let _waiting = ctx.node.metrics.wait(Wait::Rebalance);
    handle.sync(sync).await.map_err(|error| coordinator_code(&error))?.map_err(|error| group_code(&error))
}

fn response(version: i16, synced: &Synced) -> SyncGroupResponse {
    let told = version >= PROTOCOL_MIN;
    SyncGroupResponse::default()
        .with_protocol_type(message_text_option(synced.protocol_type.as_deref().filter(|_| told)))
        .with_protocol_name(message_text_option(synced.protocol_name.as_deref().filter(|_| told)))
        .with_assignment(synced.assignment.clone())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn the_answer_is_written_at_every_version() {
        let synced = Synced {
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignment: bytes::Bytes::from_static(b"x"),
        };
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            response(version, &synced).encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }
}
