//! ApiVersions (18), versions 0-5: what this node serves, computed from the table, and the cluster's features (KIP-584).
//! An unknown version is answered in the layout of version 0 on the same connection (KIP-511); the connection sees to
//! that with [`unsupported_version`]. Version 5 lets the client say which node it believes to speak to (KIP-1242).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiKey, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Api, Context, Entry, Outcome, TABLE};
use crate::wire::clamped::Clamped;
use crate::wire::messages::{self, ApiVersionsRequest};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<ApiVersions>("ApiVersions", 0..=5);

/// Error code of KIP-1242 that crate kafka-protocol does not know.
const REBOOTSTRAP_REQUIRED: i16 = 129;

struct ApiVersions;

impl Api for ApiVersions {
    const KEY: i16 = ApiKey::ApiVersions as i16;
    type Request = ApiVersionsRequest;
    type Response = messages::ApiVersionsResponse;

    async fn handle(ctx: Context, request: ApiVersionsRequest) -> Outcome<Self::Response> {
        let names_valid = ctx.version < 3
            || (is_software_name(&request.client_software_name) && is_software_name(&request.client_software_version));
        let answer = if !names_valid {
            refusal(ResponseError::InvalidRequest.code())
        } else if is_for_another_node(&ctx, &request) {
            refusal(REBOOTSTRAP_REQUIRED)
        } else {
            served(&ctx)
        };
        Outcome::Reply(Clamped(answer))
    }
}

/// The answer to a request of a version that is not served: the error, and the versions that are.
pub fn unsupported_version() -> ApiVersionsResponse {
    let own = ApiVersion::default()
        .with_api_key(ENTRY.key)
        .with_min_version(ENTRY.version_advertised_min)
        .with_max_version(ENTRY.versions_served.1);
    refusal(ResponseError::UnsupportedVersion.code()).with_api_keys(vec![own])
}

fn refusal(code: i16) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(code)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?` (Kafka: ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN).
fn is_software_name(name: &str) -> bool {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'.';
    let bytes = name.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

fn is_for_another_node(ctx: &Context, request: &ApiVersionsRequest) -> bool {
    let other_cluster = request.cluster_id.as_ref().is_some_and(|id| **id != *ctx.node.cluster_id);
    let other_node = request.node_id != -1 && request.node_id != ctx.node.node_id.0;
    request.cluster_id.is_some() && request.node_id != -1 && (other_cluster || other_node)
}

fn served(ctx: &Context) -> ApiVersionsResponse {
    let api_keys = TABLE
        .iter()
        .map(|entry| {
            ApiVersion::default()
                .with_api_key(entry.key)
                .with_min_version(entry.version_advertised_min)
                .with_max_version(entry.versions_served.1)
        })
        .collect();
    let features = ctx.node.features();
    ApiVersionsResponse::default()
        .with_api_keys(api_keys)
        .with_supported_features(
            features
                .supported
                .iter()
                // Clients before 3.8 fail on a minimum of 0, so that it first appears in version 4 (KAFKA-17011).
                .filter(|feature| feature.min > 0 || ctx.version >= 4)
                .map(|feature| {
                    SupportedFeatureKey::default()
                        .with_name(StrBytes::from_static_str(feature.name))
                        .with_min_version(feature.min)
                        .with_max_version(feature.max)
                })
                .collect(),
        )
        .with_finalized_features_epoch(features.epoch)
        .with_finalized_features(
            features
                .finalized
                .iter()
                .map(|(name, level)| {
                    FinalizedFeatureKey::default()
                        .with_name(StrBytes::from_string(name.clone()))
                        .with_max_version_level(*level)
                        .with_min_version_level(*level)
                })
                .collect(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_software_name_begins_and_ends_with_a_letter_or_digit() {
        for good in ["a", "apache-kafka-java", "4.4.0"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "a_b"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
