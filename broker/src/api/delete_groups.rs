//! DeleteGroups (42), versions 0-3: groups without members are removed with their offsets (KIP-229).

use std::collections::BTreeSet;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{coordinator_code, group_code_or_none};
use crate::security::{Authorized, GroupId, Operation};
use crate::wire::messages::delete_groups::DeletableGroupResult;
use crate::wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use crate::wire::text::{kept, message_text};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DeleteGroups>("DeleteGroups", 0..=3);

struct DeleteGroups;

impl Api for DeleteGroups {
    const KEY: i16 = ApiKey::DeleteGroups as i16;
    type Request = DeleteGroupsRequest;
    type Response = DeleteGroupsResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<DeleteGroupsResponse> {
        let names: BTreeSet<_> = request.0.groups_names.into_iter().map(|name| name.0).collect();
        // Kafka leaves the message null even when there is an error.
        let result = |group_id, error_code| DeletableGroupResult { group_id, error_code, error_message: None };
        let mut results = Vec::with_capacity(names.len());
        let mut allowed: Vec<Authorized<GroupId>> = Vec::with_capacity(names.len());
        for name in names {
            match ctx.may(Operation::Delete, GroupId(kept(&name))) {
                Ok(group) => allowed.push(group),
                Err(_) => results.push(result(name, ResponseError::GroupAuthorizationFailed.code())),
            }
        }
        let deleted = ctx.node.groups.delete(&allowed).await;
        for (group, deleted) in allowed.iter().zip(deleted) {
            let code = match deleted {
                Ok(error) => group_code_or_none(error.as_ref()),
                Err(error) => coordinator_code(&error),
            };
            results.push(result(message_text(&group.get().0), code));
        }
        Outcome::Reply(DeleteGroupsResponse { throttle_time_ms: 0, results })
    }
}
