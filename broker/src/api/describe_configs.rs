//! DescribeConfigs (32), versions 1-4: the settings of topics, of this broker or of all brokers, of groups and of
//! subscriptions to client metrics (KIP-133, KIP-226 synonyms, KIP-569 types and documentation). Loggers of the broker
//! (resource type 8) are not served.

use cluster::configs::describe::{self, DescribedEntry, Wanted};
use cluster::controller::{InvalidTopicName, validate_topic_name};
use cluster::{ConfigResource, MetadataImage, ResourceKind};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{ApiKey, DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::config_resources::{Refused, check_broker_name, may};
use super::{Api, Context, Entry, Outcome};
use crate::security::Operation;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeConfigs>("DescribeConfigs", 1..=4);

/// First version with the type and the documentation of a setting.
const WITH_TYPES: i16 = 3;

struct DescribeConfigs;

impl Api for DescribeConfigs {
    const KEY: i16 = ApiKey::DescribeConfigs as i16;
    type Request = DescribeConfigsRequest;
    type Response = DescribeConfigsResponse;

    async fn handle(ctx: Context, request: DescribeConfigsRequest) -> Outcome<DescribeConfigsResponse> {
        let image = ctx.node.image();
        let shown = Shown {
            synonyms: request.include_synonyms,
            types: ctx.version >= WITH_TYPES,
            documentation: ctx.version >= WITH_TYPES && request.include_documentation,
        };
        let describe_one = |resource: DescribeConfigsResource| {
            let (code, message, entries) = match entries(&ctx, &image, &resource) {
                Ok(entries) => (0, String::new(), entries),
                Err(refused) => (refused.code.code(), refused.message, Vec::new()),
            };
            DescribeConfigsResult::default()
                .with_error_code(code)
                // Kafka leaves the text empty here where other answers leave it out.
                .with_error_message(Some(StrBytes::from_string(message)))
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_configs(entries.into_iter().map(|entry| shown.entry(entry)).collect())
        };
        let results = request.resources.into_iter().map(describe_one).collect();
        Outcome::Reply(DescribeConfigsResponse::default().with_results(results))
    }
}

fn entries(
    ctx: &Context,
    image: &MetadataImage,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribedEntry>, Refused> {
    let name = resource.resource_name.as_str();
    let Some(kind) = ResourceKind::from_code(resource.resource_type) else {
        let reason = format!("Unexpected resource type {} for resource {name}", resource.resource_type);
        return Err(Refused::invalid_request(reason));
    };
    may(ctx, Operation::DescribeConfigs, kind, name)?;
    let keys: Vec<String> = resource.configuration_keys.iter().flatten().map(|key| key.to_string()).collect();
    let wanted = Wanted(&keys);
    let overrides = image.configs(&ConfigResource { kind, name: name.into() });
    match kind {
        ResourceKind::Topic => {
            validate_topic_name(name).map_err(invalid_topic)?;
            if image.topic(name).is_none() {
                return Err(Refused { code: ResponseError::UnknownTopicOrPartition, message: String::new() });
            }
            Ok(ctx.node.with_layers(|layers| describe::topic(wanted, overrides, layers)))
        }
        ResourceKind::Broker if name.is_empty() => {
            Ok(ctx.node.with_layers(|layers| describe::all_brokers(wanted, layers)))
        }
        ResourceKind::Broker => {
            let unexpected = |id| format!("Unexpected broker id, expected {id} or empty string, but received {name}");
            check_broker_name(name, ctx.node.node_id, "Broker", unexpected)?;
            Ok(ctx.node.with_layers(|layers| describe::broker(wanted, layers)))
        }
        ResourceKind::Group if name.is_empty() => Err(Refused::invalid_request("Group name must not be empty")),
        ResourceKind::Group => Ok(ctx.node.with_layers(|layers| describe::group(wanted, overrides, layers))),
        ResourceKind::ClientMetrics if name.is_empty() => {
            Err(Refused::invalid_request("Client metrics subscription name must not be empty"))
        }
        ResourceKind::ClientMetrics => Ok(describe::client_metrics(wanted, overrides)),
    }
}

fn invalid_topic(error: InvalidTopicName) -> Refused {
    Refused { code: ResponseError::InvalidTopicException, message: error.to_string() }
}

/// What the client asked to see of each setting, within what its version can carry.
#[derive(Clone, Copy)]
struct Shown {
    synonyms: bool,
    types: bool,
    documentation: bool,
}

impl Shown {
    fn entry(self, entry: DescribedEntry) -> DescribeConfigsResourceResult {
        let synonyms = entry.synonyms.into_iter().filter(|_| self.synonyms).map(|synonym| {
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_string(synonym.name))
                .with_value(synonym.value.map(StrBytes::from_string))
                .with_source(synonym.source.wire_id())
        });
        DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_string(entry.name))
            .with_value(entry.value.map(StrBytes::from_string))
            .with_read_only(entry.read_only)
            .with_config_source(entry.source.wire_id())
            .with_is_sensitive(entry.sensitive)
            .with_synonyms(synonyms.collect())
            .with_config_type(entry.value_type.filter(|_| self.types).map_or(0, |value_type| value_type.wire_id()))
            .with_documentation(entry.documentation.filter(|_| self.documentation).map(StrBytes::from_static_str))
    }
}

#[cfg(test)]
mod tests {
    use cluster::configs::BrokerLayers;
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        for version in 1..=4 {
            let types = version >= WITH_TYPES;
            let shown = Shown { synonyms: true, types, documentation: types };
            let entries = describe::broker(Wanted(&[]), &BrokerLayers::at_start(&()));
            let result = DescribeConfigsResult::default()
                .with_error_message(Some(StrBytes::default()))
                .with_configs(entries.into_iter().map(|entry| shown.entry(entry)).collect());
            let answer = DescribeConfigsResponse::default().with_results(vec![result]);
            let mut bytes = bytes::BytesMut::new();
            answer.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), answer.compute_size(version).unwrap(), "version {version}");
        }
    }
}
