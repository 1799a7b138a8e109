//! AlterConfigs (33), versions 0-2: replaces all settings of a resource; what is not named goes back to its default
//! (KIP-133). Kafka keeps it for old clients; newer ones use IncrementalAlterConfigs.

use cluster::controller::ConfigRequest;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse, ApiKey};
use kafka_protocol::protocol::StrBytes;

use super::change_configs::{Asked, change};
use super::config_resources::Refused;
use super::{Api, Context, Entry, Outcome};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<AlterConfigs>("AlterConfigs", 0..=2);

struct AlterConfigs;

impl Api for AlterConfigs {
    const KEY: i16 = ApiKey::AlterConfigs as i16;
    type Request = AlterConfigsRequest;
    type Response = AlterConfigsResponse;

    async fn handle(ctx: Context, request: AlterConfigsRequest) -> Outcome<AlterConfigsResponse> {
        let resources: Vec<(i8, StrBytes)> =
            request.resources.iter().map(|one| (one.resource_type, one.resource_name.clone())).collect();
        let asked = request.resources.into_iter().map(|one| {
            let wanted = one.configs.iter();
            let wanted = wanted.map(|config| (config.name.to_string(), config.value.as_ref().map(|v| v.to_string())));
            Asked {
                resource_type: one.resource_type,
                name: one.resource_name.to_string(),
                request: Ok(ConfigRequest::Replacement(wanted.collect())),
            }
        });
        let results = change(&ctx, asked.collect(), request.validate_only).await;
        let responses = resources.into_iter().zip(results).map(|((kind, name), result)| answer(kind, name, result));
        Outcome::Reply(AlterConfigsResponse::default().with_responses(responses.collect()))
    }
}

fn answer(resource_type: i8, name: StrBytes, result: Result<(), Refused>) -> AlterConfigsResourceResponse {
    let answer = AlterConfigsResourceResponse::default().with_resource_type(resource_type).with_resource_name(name);
    match result {
        Ok(()) => answer.with_error_message(None),
        Err(refused) => {
            answer.with_error_code(refused.code.code()).with_error_message(Some(StrBytes::from_string(refused.message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        let refused = answer(2, StrBytes::from_static_str("a"), Err(Refused::invalid_request("why")));
        let done = answer(2, StrBytes::from_static_str("b"), Ok(()));
        let response = AlterConfigsResponse::default().with_responses(vec![refused, done]);
        for version in 0..=2 {
            let mut bytes = bytes::BytesMut::new();
            response.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), response.compute_size(version).unwrap());
        }
    }
}
