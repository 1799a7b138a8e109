//! JoinGroup (11), versions 0-9: a member joins the next generation of a classic group. Version 4 brings
//! MEMBER_ID_REQUIRED (KIP-394), 5 static members (KIP-345), 9 leaders that need not assign (KIP-814).

use coordinator::group::GroupError;
use coordinator::group::command::{Join, JoinRefused, Joined, Protocol};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{ApiKey, JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::observe::Wait;
use crate::runtime::coordinator::{coordinator_code, group_code};
use crate::security::{GroupId, Operation};
use crate::wire::text::{kept, kept_option, message_text, message_text_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<JoinGroup>("JoinGroup", 0..=9);

/// First version whose clients understand MEMBER_ID_REQUIRED.
const MEMBER_ID_REQUIRED_MIN: i16 = 4;
/// First version with the instance ids of members.
const INSTANCE_MIN: i16 = 5;
/// First version in which the protocol may be null and its type is told.
const PROTOCOL_TYPE_MIN: i16 = 7;
/// First version whose leaders understand that they need not assign.
const SKIP_ASSIGNMENT_MIN: i16 = 9;

struct JoinGroup;

impl Api for JoinGroup {
    const KEY: i16 = ApiKey::JoinGroup as i16;
    type Request = JoinGroupRequest;
    type Response = JoinGroupResponse;

    async fn handle(ctx: Context, request: JoinGroupRequest) -> Outcome<JoinGroupResponse> {
        let Ok(group) = ctx.may(Operation::Read, GroupId(kept(&request.group_id))) else {
            let code = ResponseError::GroupAuthorizationFailed.code();
            return Outcome::Reply(refusal(ctx.version, StrBytes::default(), code));
        };
        let join = command(&ctx, &request);
        if join.group_id.is_empty() {
            return Outcome::Reply(refusal(ctx.version, request.member_id, group_code(&GroupError::InvalidGroupId)));
        }
        let begun = ctx.node.clock.monotonic();
        let answer = match ctx.node.groups.group(&group) {
            Ok(group) => {
                let _waiting = ctx.node.metrics.wait(Wait::Rebalance);
                group.join(join).await
            }
            Err(error) => Err(error),
        };
        let waited = ctx.node.clock.monotonic().saturating_sub(begun);
        let response = match answer {
            Ok(Ok(joined)) => response(ctx.version, &joined),
            Ok(Err(JoinRefused { member_id, error })) => {
                tracing::debug!(group = %&*request.group_id, member = %member_id, %error, "join refused");
                refusal(ctx.version, message_text(&member_id), group_code(&error))
            }
            Err(error) => refusal(ctx.version, request.member_id, coordinator_code(&error)),
        };
        Outcome::ReplyAfter(response, waited)
    }
}

fn command(ctx: &Context, request: &JoinGroupRequest) -> Join {
    let protocol = |protocol: &kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol| Protocol {
        name: kept(&protocol.name),
        // A copy, because it stays as long as the member does and the frame shall not.
        metadata: bytes::Bytes::copy_from_slice(&protocol.metadata),
    };
    Join {
        group_id: kept(&request.group_id),
        member_id: kept(&request.member_id),
        instance_id: kept_option(request.group_instance_id.as_ref()),
        client_id: ctx.session.client_id.clone(),
        client_host: ctx.session.client_host().into(),
        protocol_type: kept(&request.protocol_type),
        protocols: request.protocols.iter().map(protocol).collect(),
        session_timeout_ms: request.session_timeout_ms,
        // Version 0 has one time-out for both.
        rebalance_timeout_ms: match ctx.version {
            0 => request.session_timeout_ms,
            _ => request.rebalance_timeout_ms,
        },
        member_id_required: ctx.version >= MEMBER_ID_REQUIRED_MIN,
        may_skip_assignment: ctx.version >= SKIP_ASSIGNMENT_MIN,
        unique: ctx.node.entropy.uuid(),
    }
}

fn response(version: i16, joined: &Joined) -> JoinGroupResponse {
    let with_instance = version >= INSTANCE_MIN;
    let members = joined.members.iter().map(|member| {
        let instance_id = member.instance_id.as_deref().filter(|_| with_instance);
        JoinGroupResponseMember::default()
            .with_member_id(message_text(&member.member_id))
            .with_group_instance_id(message_text_option(instance_id))
            .with_metadata(member.metadata.clone())
    });
    JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_type(protocol_type(version, joined.protocol_type.as_deref()))
        .with_protocol_name(protocol_name(version, joined.protocol_name.as_deref()))
        .with_leader(message_text(&joined.leader))
        .with_skip_assignment(joined.skip_assignment)
        .with_member_id(message_text(&joined.member_id))
        .with_members(members.collect())
}

fn refusal(version: i16, member_id: StrBytes, code: i16) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(code)
        .with_generation_id(-1)
        .with_protocol_name(protocol_name(version, None))
        .with_member_id(member_id)
}

fn protocol_type(version: i16, name: Option<&str>) -> Option<StrBytes> {
    if version >= PROTOCOL_TYPE_MIN { message_text_option(name) } else { None }
}

fn protocol_name(version: i16, name: Option<&str>) -> Option<StrBytes> {
    match name {
        None if version < PROTOCOL_TYPE_MIN => Some(StrBytes::default()),
        name => message_text_option(name),
    }
}

#[cfg(test)]
mod tests {
    use coordinator::group::command::JoinedMember;
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let member = JoinedMember {
                member_id: "m".into(),
                instance_id: Some("i".into()),
                metadata: bytes::Bytes::from_static(b"x"),
            };
            let joined = Joined {
                member_id: "m".into(),
                generation: 3,
                protocol_type: Some("consumer".into()),
                protocol_name: Some("range".into()),
                leader: "m".into(),
                skip_assignment: version >= SKIP_ASSIGNMENT_MIN,
                members: vec![member],
            };
            for answer in [response(version, &joined), refusal(version, StrBytes::default(), 25)] {
                assert!(answer.compute_size(version).is_ok(), "version {version}");
                answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
            }
        }
    }
}
