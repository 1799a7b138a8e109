//! DescribeGroups (15), versions 0-6: classic groups with their members. A group that does not exist is `Dead`; from
//! version 6 on it is GROUP_ID_NOT_FOUND as well (KIP-1043).

use coordinator::group::command::{DescribedGroup, DescribedMember};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_groups_response::{
    DescribedGroup as ResponseGroup, DescribedGroupMember as ResponseMember,
};
use kafka_protocol::messages::{ApiKey, DescribeGroupsRequest, DescribeGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{CoordinatorError, coordinator_code};
use crate::security::{Authorized, GroupId, Operation};
use crate::wire::text::{kept, message_text, message_text_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeGroups>("DescribeGroups", 0..=6);

/// First version with the authorized operations (KIP-430).
const OPERATIONS_MIN: i16 = 3;
/// First version with the instance ids of members.
const INSTANCE_MIN: i16 = 4;
/// First version in which a group that does not exist is an error.
const NOT_FOUND_MIN: i16 = 6;

struct DescribeGroups;

impl Api for DescribeGroups {
    const KEY: i16 = ApiKey::DescribeGroups as i16;
    type Request = DescribeGroupsRequest;
    type Response = DescribeGroupsResponse;

    async fn handle(ctx: Context, request: DescribeGroupsRequest) -> Outcome<DescribeGroupsResponse> {
        let mut groups: Vec<ResponseGroup> = Vec::with_capacity(request.groups.len());
        let mut allowed: Vec<Authorized<GroupId>> = Vec::with_capacity(request.groups.len());
        for group_id in &request.groups {
            match ctx.may(Operation::Describe, GroupId(kept(group_id))) {
                Ok(group) => allowed.push(group),
                Err(_) => groups.push(failed(group_id.0.clone(), ResponseError::GroupAuthorizationFailed.code())),
            }
        }
        let described = ctx.node.groups.describe(&allowed).await;
        for (group, described) in allowed.into_iter().zip(described) {
            let operations = ctx.allowed_operations(request.include_authorized_operations, group.get());
            groups.push(response(ctx.version, &group.get().0, described, operations));
        }
        Outcome::Reply(DescribeGroupsResponse::default().with_groups(groups))
    }
}

fn failed(group_id: StrBytes, code: i16) -> ResponseGroup {
    ResponseGroup::default().with_group_id(group_id.into()).with_error_code(code)
}

fn response(
    version: i16,
    name: &str,
    described: Result<DescribedGroup, CoordinatorError>,
    operations: i32,
) -> ResponseGroup {
    let group_id = message_text(name);
    let described = match described {
        Ok(described) => described,
        Err(error) => return failed(group_id, coordinator_code(&error)),
    };
    let mut response = ResponseGroup::default()
        .with_group_id(group_id.into())
        .with_group_state(StrBytes::from_static_str(described.state))
        .with_protocol_type(message_text(&described.protocol_type))
        .with_protocol_data(message_text(&described.protocol_name))
        .with_members(described.members.iter().map(|member| response_member(version, member)).collect());
    if described.error.is_some() && version >= NOT_FOUND_MIN {
        let message = format!("Group {name} not found.");
        return response
            .with_error_code(ResponseError::GroupIdNotFound.code())
            .with_error_message(Some(StrBytes::from_string(message)));
    }
    if version >= OPERATIONS_MIN {
        response = response.with_authorized_operations(operations);
    }
    response
}

fn response_member(version: i16, member: &DescribedMember) -> ResponseMember {
    let instance_id = member.instance_id.as_deref().filter(|_| version >= INSTANCE_MIN);
    ResponseMember::default()
        .with_member_id(message_text(&member.member_id))
        .with_group_instance_id(message_text_option(instance_id))
        .with_client_id(message_text(&member.client_id))
        .with_client_host(message_text(&member.client_host))
        .with_member_metadata(member.metadata.clone())
        .with_member_assignment(member.assignment.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coordinator::group::GroupError;
    use kafka_protocol::protocol::Encodable;

    use super::*;

    fn described(error: Option<GroupError>) -> DescribedGroup {
        let member = DescribedMember {
            member_id: "m".into(),
            instance_id: Some("i".into()),
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            metadata: bytes::Bytes::from_static(b"x"),
            assignment: bytes::Bytes::new(),
        };
        DescribedGroup {
            group_id: "g".into(),
            state: "Stable",
            protocol_type: "consumer".into(),
            protocol_name: Arc::from("range"),
            members: vec![member],
            error,
        }
    }

    #[test]
    fn every_answer_is_written_at_every_version() {
        let missing = || Some(GroupError::GroupNotFound { group_id: "g".into() });
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let groups = vec![
                response(version, "g", Ok(described(None)), 0xd48),
                response(version, "g", Ok(described(missing())), 0xd48),
                response(version, "g", Err(CoordinatorError::NotCoordinator), 0xd48),
            ];
            assert_eq!(groups[1].error_code != 0, version >= NOT_FOUND_MIN);
            let answer = DescribeGroupsResponse::default().with_groups(groups);
            answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }
}
