//! IncrementalAlterConfigs (44), versions 0-1: sets, resets and edits single settings of topics, brokers, groups and
//! subscriptions to client metrics (KIP-339, KIP-1106 groups). Log levels of the broker (resource type 8) are not served.

use cluster::configs::{AlterOp, Alteration};
use cluster::controller::ConfigRequest;
use kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{ApiKey, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::change_configs::{Asked, Changed, change};
use super::config_resources::Refused;
use super::{Api, Context, Entry, Outcome};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<IncrementalAlterConfigs>("IncrementalAlterConfigs", 0..=1);

struct IncrementalAlterConfigs;

impl Api for IncrementalAlterConfigs {
    const KEY: i16 = ApiKey::IncrementalAlterConfigs as i16;
    type Request = IncrementalAlterConfigsRequest;
    type Response = IncrementalAlterConfigsResponse;

    async fn handle(ctx: Context, request: IncrementalAlterConfigsRequest) -> Outcome<IncrementalAlterConfigsResponse> {
        let asked = request.resources.into_iter().map(|one| Asked {
            resource_type: one.resource_type,
            name: one.resource_name,
            request: alterations(&one.configs).map(ConfigRequest::Incremental),
        });
        let responses = change(&ctx, asked.collect(), request.validate_only).await.map(answer);
        Outcome::Reply(IncrementalAlterConfigsResponse::default().with_responses(responses.collect()))
    }
}

fn alterations(configs: &[AlterableConfig]) -> Result<Vec<Alteration>, Refused> {
    let one = |config: &AlterableConfig| {
        let op = AlterOp::from_wire(config.config_operation)
            .ok_or_else(|| Refused::invalid_request(format!("Unknown operations type {}", config.config_operation)))?;
        let value = config.value.as_ref().map(|value| value.to_string());
        Ok(Alteration { name: config.name.to_string(), op, value })
    };
    configs.iter().map(one).collect()
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

    #[test]
    fn an_operation_that_does_not_exist_is_refused() {
        let config = AlterableConfig::default().with_name(StrBytes::from_static_str("a")).with_config_operation(9);
        let refused = alterations(&[config]).unwrap_err();
        assert_eq!(refused.message, "Unknown operations type 9");
    }

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        let refused = answer(Changed::new(2, StrBytes::from_static_str("a"), Err(Refused::invalid_request("why"))));
        let done = answer(Changed::new(2, StrBytes::from_static_str("b"), Ok(())));
        let response = IncrementalAlterConfigsResponse::default().with_responses(vec![refused, done]);
        for version in 0..=1 {
            let mut bytes = bytes::BytesMut::new();
            response.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), response.compute_size(version).unwrap());
        }
    }
}
