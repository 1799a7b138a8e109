//! ListGroups (16), versions 0-5: the groups that this node coordinates; by state from version 4 on (KIP-518), by type
//! from version 5 on (KIP-848).

use coordinator::group::command::{ListGroups as Filter, ListedGroup};
use kafka_protocol::messages::list_groups_response::ListedGroup as ResponseGroup;
use kafka_protocol::messages::{ApiKey, ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::runtime::coordinator::coordinator_code;
use crate::security::{Cluster, GroupId, Operation};
use crate::wire::text::message_text;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<ListGroups>("ListGroups", 0..=5);

/// First version that tells states.
const STATE_MIN: i16 = 4;
/// First version that tells types.
const TYPE_MIN: i16 = 5;

struct ListGroups;

impl Api for ListGroups {
    const KEY: i16 = ApiKey::ListGroups as i16;
    type Request = ListGroupsRequest;
    type Response = ListGroupsResponse;

    async fn handle(ctx: Context, request: ListGroupsRequest) -> Outcome<ListGroupsResponse> {
        let names = |names: &[StrBytes]| names.iter().map(|name| name.to_string()).collect();
        let filter = Filter { states: names(&request.states_filter), types: names(&request.types_filter) };
        let groups = match ctx.node.groups.list(&filter).await {
            Ok(groups) => groups,
            Err(error) => {
                return Outcome::Reply(ListGroupsResponse::default().with_error_code(coordinator_code(&error)));
            }
        };
        // Whoever may describe the cluster sees all groups; others see those that they may describe.
        let sees_all = ctx.may(Operation::Describe, Cluster).is_ok();
        let visible = groups
            .iter()
            .filter(|group| sees_all || ctx.may(Operation::Describe, GroupId(group.group_id.clone())).is_ok())
            .map(|group| response_group(ctx.version, group));
        Outcome::Reply(ListGroupsResponse::default().with_groups(visible.collect()))
    }
}

fn response_group(version: i16, group: &ListedGroup) -> ResponseGroup {
    let mut response = ResponseGroup::default()
        .with_group_id(message_text(&group.group_id).into())
        .with_protocol_type(message_text(&group.protocol_type));
    if version >= STATE_MIN {
        response = response.with_group_state(StrBytes::from_static_str(group.state));
    }
    if version >= TYPE_MIN {
        response = response.with_group_type(StrBytes::from_static_str(group.group_type));
    }
    response
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn the_answer_is_written_at_every_version() {
        let group = ListedGroup {
            group_id: "g".into(),
            protocol_type: "consumer".into(),
            state: "Stable",
            group_type: "classic",
        };
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            let answer = ListGroupsResponse::default().with_groups(vec![response_group(version, &group)]);
            answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
        }
    }
}
