//! AlterConfigs (33), versions 0-2: replaces all settings of a resource; what is not named goes back to its default
//! (KIP-133). Kafka keeps it for old clients; newer ones use IncrementalAlterConfigs.

use cluster::controller::ConfigRequest;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse, ApiKey};

use super::change_configs::{Asked, Changed, change};
use super::{Api, Context, Entry, Outcome};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<AlterConfigs>("AlterConfigs", 0..=2);

struct AlterConfigs;

impl Api for AlterConfigs {
    const KEY: i16 = ApiKey::AlterConfigs as i16;
    type Request = AlterConfigsRequest;
    type Response = AlterConfigsResponse;

    async fn handle(ctx: Context, request: AlterConfigsRequest) -> Outcome<AlterConfigsResponse> {
        let asked = request.resources.into_iter().map(|one| {
            let wanted = one.configs.iter();
            let wanted = wanted.map(|config| (config.name.to_string(), config.value.as_ref().map(|v| v.to_string())));
            Asked {
                resource_type: one.resource_type,
                name: one.resource_name,
                request: Ok(ConfigRequest::Replacement(wanted.collect())),
            }
        });
        let responses = change(&ctx, asked.collect(), request.validate_only).await.map(answer);
        Outcome::Reply(AlterConfigsResponse::default().with_responses(responses.collect()))
    }
}

fn answer(changed: Changed) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse::default()
        .with_resource_type(changed.resource_type)
        .with_resource_name(changed.name)
        .with_error_code(changed.error_code)
        .with_error_message(changed.error_message)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::{Encodable, StrBytes};

    use super::*;
    use crate::api::config_resources::Refused;

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        let refused = answer(Changed::new(2, StrBytes::from_static_str("a"), Err(Refused::invalid_request("why"))));
        let done = answer(Changed::new(2, StrBytes::from_static_str("b"), Ok(())));
        let response = AlterConfigsResponse::default().with_responses(vec![refused, done]);
        for version in 0..=2 {
            let mut bytes = bytes::BytesMut::new();
            response.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), response.compute_size(version).unwrap());
        }
    }
}
