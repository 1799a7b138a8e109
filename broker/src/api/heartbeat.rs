//! Heartbeat (12), versions 0-4: a member of a classic group lives and learns whether it must join anew.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{ApiKey, HeartbeatRequest, HeartbeatResponse};

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::{CoordinatorError, coordinator_code, group_code};
use crate::security::{GroupId, Operation};
use crate::wire::text::{kept, kept_option};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<Heartbeat>("Heartbeat", 0..=4);

struct Heartbeat;

impl Api for Heartbeat {
    const KEY: i16 = ApiKey::Heartbeat as i16;
    type Request = HeartbeatRequest;
    type Response = HeartbeatResponse;

    async fn handle(ctx: Context, request: HeartbeatRequest) -> Outcome<HeartbeatResponse> {
        Outcome::Reply(HeartbeatResponse::default().with_error_code(answer(&ctx, &request).await))
    }
}

async fn answer(ctx: &Context, request: &HeartbeatRequest) -> i16 {
    let Ok(group) = ctx.may(Operation::Read, GroupId(kept(&request.group_id))) else {
        return ResponseError::GroupAuthorizationFailed.code();
    };
    let heartbeat = coordinator::group::command::Heartbeat {
        group_id: group.get().0.clone(),
        member_id: kept(&request.member_id),
        instance_id: kept_option(request.group_instance_id.as_ref()),
        generation: request.generation_id,
    };
    let answer = match ctx.node.groups.group(&group) {
        Ok(group) => group.heartbeat(heartbeat).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => group_code(&error),
        // A member shall not leave its group because the coordinator has just restarted (GroupCoordinatorService).
        Err(CoordinatorError::LoadInProgress) => 0,
        Err(error) => coordinator_code(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::read_back;
    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        let code = ResponseError::RebalanceInProgress.code();
        for (version, read) in read_back(&ENTRY, |_| HeartbeatResponse::default().with_error_code(code)) {
            assert_eq!(read.error_code, code, "version {version}");
        }
    }
}
