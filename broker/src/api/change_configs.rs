//! The way of AlterConfigs and IncrementalAlterConfigs once their requests are read: refuse what cannot be asked of this
//! broker, hand the rest to the controller as one command, put the results in the order of the request
//! (Kafka: ConfigAdminManager).

use cluster::configs::{AlterError, ConfigKind, alter};
use cluster::controller::{AlterConfigs, AlterConfigsError, ConfigRequest, ConfigTarget};
use cluster::{ConfigResource, ResourceKind};
use kafka_protocol::ResponseError;
use kafka_protocol::protocol::StrBytes;

use super::Context;
use super::config_resources::{Refused, check_broker_name, may, refused};
use crate::security::Operation;

/// A resource as the request names it, and what to do with it.
pub(super) struct Asked {
    /// Kafka's ConfigResource.Type, which may be one that does not exist.
    pub(super) resource_type: i8,
    /// Its name.
    pub(super) name: StrBytes,
    /// What to do, or why that makes no sense.
    pub(super) request: Result<ConfigRequest, Refused>,
}

/// What became of a resource, in the fields that both answers have.
pub(super) struct Changed {
    /// As in the request.
    pub(super) resource_type: i8,
    /// As in the request.
    pub(super) name: StrBytes,
    /// Kafka's code, 0 for done.
    pub(super) error_code: i16,
    /// Why not; none when it is done.
    pub(super) error_message: Option<StrBytes>,
}

impl Changed {
    pub(super) fn new(resource_type: i8, name: StrBytes, result: Result<(), Refused>) -> Changed {
        let (error_code, error_message) = match result {
            Ok(()) => (0, None),
            Err(refused) => (refused.code.code(), Some(StrBytes::from_string(refused.message))),
        };
        Changed { resource_type, name, error_code, error_message }
    }
}

/// Changes the settings of all resources that can be changed; one outcome for each, in the order of the request.
pub(super) async fn change(
    ctx: &Context,
    asked: Vec<Asked>,
    validate_only: bool,
) -> impl Iterator<Item = Changed> + use<> {
    let resources: Vec<(i8, StrBytes)> = asked.iter().map(|one| (one.resource_type, one.name.clone())).collect();
    let results = results(ctx, asked, validate_only).await;
    resources.into_iter().zip(results).map(|((kind, name), result)| Changed::new(kind, name, result))
}

async fn results(ctx: &Context, asked: Vec<Asked>, validate_only: bool) -> Vec<Result<(), Refused>> {
    let repeated: Vec<bool> = asked
        .iter()
        .map(|one| {
            asked.iter().filter(|other| (other.resource_type, &other.name) == (one.resource_type, &one.name)).count()
                > 1
        })
        .collect();
    let checked: Vec<Result<ConfigTarget, Refused>> = asked
        .into_iter()
        .zip(repeated)
        .map(|(one, repeated)| {
            if repeated {
                return Err(Refused::invalid_request("Each resource must appear at most once."));
            }
            check(ctx, one)
        })
        .collect();
    let targets: Vec<ConfigTarget> = checked.iter().filter_map(|one| one.as_ref().ok().cloned()).collect();
    let mut decided = decide(ctx, targets, validate_only).await.into_iter();
    checked
        .into_iter()
        .map(|one| match one {
            Ok(_) => decided.next().unwrap_or_else(|| Err(not_decided("no result"))),
            Err(refused) => Err(refused),
        })
        .collect()
}

async fn decide(ctx: &Context, targets: Vec<ConfigTarget>, validate_only: bool) -> Vec<Result<(), Refused>> {
    if targets.is_empty() {
        return Vec::new();
    }
    let count = targets.len();
    match ctx.node.controller.run(AlterConfigs { targets, validate_only }).await {
        Ok(results) => {
            // The client that asks next sees what it was told.
            ctx.node.settled().await;
            results.into_iter().map(|result| result.map_err(|error| refused(&error))).collect()
        }
        Err(error) => vec![Err(not_decided(&error.to_string())); count],
    }
}

/// The client asks again, which is right for a controller that changes or stops.
fn not_decided(reason: &str) -> Refused {
    Refused { code: ResponseError::NotController, message: reason.to_owned() }
}

fn check(ctx: &Context, asked: Asked) -> Result<ConfigTarget, Refused> {
    let Some(kind) = ResourceKind::from_code(asked.resource_type) else {
        return Err(Refused::invalid_request(format!("Unknown resource type {}", asked.resource_type)));
    };
    may(ctx, Operation::AlterConfigs, kind, &asked.name)?;
    let request = asked.request?;
    check_form(kind, &request)?;
    if kind == ResourceKind::Broker && !asked.name.is_empty() {
        let name = &asked.name;
        let unexpected = |id| format!("Unexpected broker id, expected {id}, but received {name}");
        check_broker_name(name, ctx.node.node_id, "Node", unexpected)?;
    }
    Ok(ConfigTarget { resource: ConfigResource { kind, name: asked.name.to_string().into() }, request })
}

/// Repeated settings and missing values are refused before the resource is looked up, as Kafka's broker does it.
fn check_form(kind: ResourceKind, request: &ConfigRequest) -> Result<(), Refused> {
    let kind = match kind {
        ResourceKind::Topic => ConfigKind::Topic,
        ResourceKind::Broker => ConfigKind::Broker,
        ResourceKind::ClientMetrics => ConfigKind::ClientMetrics,
        ResourceKind::Group => ConfigKind::Group,
    };
    let form = match request {
        ConfigRequest::Incremental(asked) => alter::incremental(kind, &(), asked),
        ConfigRequest::Replacement(wanted) => alter::replacement(kind, &(), wanted),
    };
    match form {
        Err(error @ (AlterError::DuplicateKeys | AlterError::NullValues { .. })) => {
            Err(refused(&AlterConfigsError::Alter(error)))
        }
        // Everything else depends on what is set, which the controller knows.
        _ => Ok(()),
    }
}
