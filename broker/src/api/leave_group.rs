//! LeaveGroup (13), versions 0-5: members leave a classic group; from version 3 on several at once, static ones by
//! their instance id (KIP-345).

use coordinator::group::command::{Leave, Leaving, Left};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{ApiKey, LeaveGroupRequest, LeaveGroupResponse};

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{coordinator_code, group_code, group_code_or_none};
use crate::security::{GroupId, Operation};
use crate::wire::text::{kept, kept_option, message_text, message_text_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<LeaveGroup>("LeaveGroup", 0..=5);

/// First version that names several members.
const MEMBERS_MIN: i16 = 3;

struct LeaveGroup;

impl Api for LeaveGroup {
    const KEY: i16 = ApiKey::LeaveGroup as i16;
    type Request = LeaveGroupRequest;
    type Response = LeaveGroupResponse;

    async fn handle(ctx: Context, request: LeaveGroupRequest) -> Outcome<LeaveGroupResponse> {
        Outcome::Reply(match answer(&ctx, &request).await {
            Ok(left) => response(ctx.version, &left),
            Err(code) => LeaveGroupResponse::default().with_error_code(code),
        })
    }
}

async fn answer(ctx: &Context, request: &LeaveGroupRequest) -> Result<Vec<Left>, i16> {
    let group = ctx
        .may(Operation::Read, GroupId(kept(&request.group_id)))
        .map_err(|_| ResponseError::GroupAuthorizationFailed.code())?;
    let members = if ctx.version < MEMBERS_MIN {
        vec![Leaving { member_id: kept(&request.member_id), instance_id: None }]
    } else {
        let leaving = request.members.iter().map(|member| Leaving {
            member_id: kept(&member.member_id),
            instance_id: kept_option(member.group_instance_id.as_ref()),
        });
        leaving.collect()
    };
    let leave = Leave { group_id: group.get().0.clone(), members };
    if leave.group_id.is_empty() {
        return Err(ResponseError::InvalidGroupId.code());
    }
    let handle = ctx.node.groups.group(&group).map_err(|error| coordinator_code(&error))?;
    handle.leave(leave).await.map_err(|error| coordinator_code(&error))?.map_err(|error| group_code(&error))
}

fn response(version: i16, left: &[Left]) -> LeaveGroupResponse {
    if version < MEMBERS_MIN {
        // The one member's outcome is that of the request.
        let error = left.first().and_then(|left| left.error.as_ref());
        return LeaveGroupResponse::default().with_error_code(group_code_or_none(error));
    }
    let members = left.iter().map(|left| {
        MemberResponse::default()
            .with_member_id(message_text(&left.member.member_id))
            .with_group_instance_id(message_text_option(left.member.instance_id.as_deref()))
            .with_error_code(group_code_or_none(left.error.as_ref()))
    });
    LeaveGroupResponse::default().with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use coordinator::group::GroupError;
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn the_answer_is_written_at_every_version_and_an_old_one_carries_the_member_s_error() {
        let member = Leaving { member_id: "m".into(), instance_id: Some("i".into()) };
        let error = GroupError::UnknownMember { group_id: "g".into(), member_id: "m".into() };
        let left = [Left { member, error: Some(error) }];
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let answer = response(version, &left);
            assert_eq!(answer.error_code != 0, version < MEMBERS_MIN);
            answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }
}
