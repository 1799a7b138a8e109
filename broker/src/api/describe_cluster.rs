//! DescribeCluster (60), versions 0-2 (KIP-700, KIP-919, KIP-1073; Kafka: AuthHelper.computeDescribeClusterResponse).

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{ApiKey, BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::partition_view::some_broker;
use super::{Api, Context, Entry, Outcome};
use crate::security::{Cluster, Operation};
use crate::wire::text::message_text;

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeCluster>("DescribeCluster", 0..=2);

/// Kinds of endpoints (Kafka: EndpointType).
const BROKER: i8 = 1;
const CONTROLLER: i8 = 2;
/// First version that tells kinds of endpoints apart.
const ENDPOINT_TYPE_MIN: i16 = 1;
/// First version that may show fenced brokers.
const FENCED_MIN: i16 = 2;

struct DescribeCluster;

impl Api for DescribeCluster {
    const KEY: i16 = ApiKey::DescribeCluster as i16;
    type Request = DescribeClusterRequest;
    type Response = DescribeClusterResponse;

    async fn handle(ctx: Context, request: Self::Request) -> Outcome<Self::Response> {
        Outcome::Reply(match request.endpoint_type {
            BROKER => describe(&ctx, &request),
            other => refused(ctx.version, other),
        })
    }
}

fn refused(version: i16, endpoint_type: i8) -> DescribeClusterResponse {
    let (error, message) = match endpoint_type {
        CONTROLLER => (
            ResponseError::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                .to_owned(),
        ),
        other => (ResponseError::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
    };
    let error = if version < ENDPOINT_TYPE_MIN { ResponseError::InvalidRequest } else { error };
    DescribeClusterResponse::default()
        .with_error_code(error.code())
        .with_error_message(Some(StrBytes::from_string(message)))
}

fn describe(ctx: &Context, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    let image = ctx.node.image();
    let listener = &*ctx.session.listener;
    let with_fenced = ctx.version >= FENCED_MIN && request.include_fenced_brokers;
    let shown = image.brokers().filter(|broker| with_fenced || !broker.fenced);
    let brokers = shown.filter_map(|broker| {
        let endpoint = broker.endpoint(listener)?;
        let shown = DescribeClusterBroker::default()
            .with_broker_id(BrokerId(broker.id.0))
            .with_host(message_text(&endpoint.host))
            .with_port(i32::from(endpoint.port))
            .with_rack(broker.rack.as_deref().map(message_text));
        Some(if ctx.version >= FENCED_MIN { shown.with_is_fenced(broker.fenced) } else { shown })
    });
    let asked = request.include_cluster_authorized_operations;
    let operations = match asked && ctx.may(Operation::Describe, Cluster).is_err() {
        true => 0,
        false => ctx.allowed_operations(asked, &Cluster),
    };
    DescribeClusterResponse::default()
        .with_cluster_id(message_text(&ctx.node.cluster_id))
        .with_controller_id(BrokerId(some_broker(&image, listener, ctx.node.entropy.next_u64()).0))
        .with_brokers(brokers.collect())
        .with_cluster_authorized_operations(operations)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn every_answer_is_written_at_every_version() {
        for version in ENTRY.versions_served.0..=ENTRY.versions_served.1 {
            for answer in [refused(version, CONTROLLER), DescribeClusterResponse::default()] {
                answer.encode(&mut bytes::BytesMut::new(), version).unwrap();
            }
        }
    }

    #[test]
    fn bl_118_a_broker_is_no_controller_endpoint() {
        let mismatch = refused(1, CONTROLLER);
        assert_eq!(mismatch.error_code, ResponseError::MismatchedEndpointType.code());
        assert!(mismatch.error_message.is_some());
        assert_eq!(refused(1, 9).error_code, ResponseError::UnsupportedEndpointType.code());
        assert_eq!(refused(0, 9).error_code, ResponseError::InvalidRequest.code());
        assert_eq!(DescribeClusterResponse::default().endpoint_type, BROKER);
    }
}
