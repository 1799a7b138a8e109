//! ListConfigResources (74), versions 0-1: names of what has settings. Version 0 is ListClientMetricsResources and knows
//! subscriptions to client metrics only (KIP-714, KIP-1142). Loggers of the broker are not served and not listed.

use cluster::{MetadataImage, ResourceKind};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ApiKey, ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome};
use crate::security::{Cluster, Operation};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<ListConfigResources>("ListConfigResources", 0..=1);

/// Kafka's type of the loggers of a broker.
const BROKER_LOGGER: i8 = 8;

struct ListConfigResources;

impl Api for ListConfigResources {
    const KEY: i16 = ApiKey::ListConfigResources as i16;
    type Request = ListConfigResourcesRequest;
    type Response = ListConfigResourcesResponse;

    async fn handle(ctx: Context, request: ListConfigResourcesRequest) -> Outcome<ListConfigResourcesResponse> {
        if ctx.may(Operation::DescribeConfigs, Cluster).is_err() {
            let code = ResponseError::ClusterAuthorizationFailed.code();
            return Outcome::Reply(ListConfigResourcesResponse::default().with_error_code(code));
        }
        let kinds = match kinds(ctx.version, &request.resource_types) {
            Ok(kinds) => kinds,
            Err(error) => return Outcome::Reply(ListConfigResourcesResponse::default().with_error_code(error.code())),
        };
        let image = ctx.node.image();
        let resources = kinds.into_iter().flat_map(|kind| {
            let names = names(&image, kind);
            names.into_iter().map(move |name| resource(ctx.version, kind, name))
        });
        Outcome::Reply(ListConfigResourcesResponse::default().with_config_resources(resources.collect()))
    }
}

/// Version 0 has no place for the type.
fn resource(version: i16, kind: ResourceKind, name: String) -> ConfigResource {
    let resource = ConfigResource::default().with_resource_name(StrBytes::from_string(name));
    if version >= 1 { resource.with_resource_type(kind as i8) } else { resource }
}

/// The kinds to list, in the order in which Kafka lists them.
fn kinds(version: i16, asked: &[i8]) -> Result<Vec<ResourceKind>, ResponseError> {
    const ALL: [ResourceKind; 4] =
        [ResourceKind::Group, ResourceKind::ClientMetrics, ResourceKind::Broker, ResourceKind::Topic];
    if version == 0 {
        return Ok(vec![ResourceKind::ClientMetrics]);
    }
    if asked.iter().any(|code| *code != BROKER_LOGGER && ResourceKind::from_code(*code).is_none()) {
        return Err(ResponseError::UnsupportedVersion);
    }
    Ok(ALL.into_iter().filter(|kind| asked.is_empty() || asked.contains(&(*kind as i8))).collect())
}

fn names(image: &MetadataImage, kind: ResourceKind) -> Vec<String> {
    match kind {
        ResourceKind::Topic => image.topics().map(|topic| topic.name.to_string()).collect(),
        ResourceKind::Broker => image.brokers().map(|broker| broker.id.to_string()).collect(),
        // Groups and subscriptions are listed when something is set for them.
        ResourceKind::Group | ResourceKind::ClientMetrics => image
            .configured()
            .filter(|(resource, _)| resource.kind == kind)
            .map(|(resource, _)| resource.name.to_string())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn no_type_means_every_type_and_one_that_does_not_exist_is_refused() {
        assert_eq!(kinds(1, &[]).map(|kinds| kinds.len()), Ok(4));
        assert_eq!(kinds(1, &[2]), Ok(vec![ResourceKind::Topic]));
        assert_eq!(kinds(1, &[BROKER_LOGGER]), Ok(Vec::new()));
        assert_eq!(kinds(1, &[99]), Err(ResponseError::UnsupportedVersion));
        assert_eq!(kinds(0, &[]), Ok(vec![ResourceKind::ClientMetrics]));
    }

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        for version in 0..=1 {
            let listed = vec![resource(version, ResourceKind::ClientMetrics, "a".to_owned())];
            let response = ListConfigResourcesResponse::default().with_config_resources(listed);
            let mut bytes = bytes::BytesMut::new();
            response.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), response.compute_size(version).unwrap());
        }
    }
}
