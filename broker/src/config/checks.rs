//! Settings that must go together (Kafka: KafkaConfig.validateValues, in its words), and what this version cannot do.

use cluster::configs::broker::contradiction;

use super::{Config, ConfigError};

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    quorum(config)?;
    times(config)?;
    limits(config)
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::Rule { reason: reason() }) }
}

fn quorum(config: &Config) -> Result<(), ConfigError> {
    let id = config.node_id;
    let mut voters: Vec<String> = config.metadata.voters.iter().map(|voter| voter.id.to_string()).collect();
    voters.sort();
    voters.dedup();
    let set = format!("controller.quorum.voters=Set({})", voters.join(", "));
    let is_voter = config.metadata.voters.iter().any(|voter| voter.id == id);
    if config.roles.controller {
        require(voters.is_empty() || is_voter, || {
            format!(
                "If process.roles contains the 'controller' role, the node id {id} must be included in the set of voters {set}"
            )
        })?;
    } else {
        require(!is_voter, || {
            format!(
                "If process.roles contains just the 'broker' role, the node id {id} must not be included in the set of voters {set}"
            )
        })?;
    }
    require(config.roles.controller && config.roles.broker && voters.len() <= 1, || {
        format!(
            "a node serves as broker and controller of its own cluster only so far: set \
             process.roles=broker,controller, and name no other node in {set}"
        )
    })
}

fn times(config: &Config) -> Result<(), ConfigError> {
    if let Some(reason) = contradiction(&config.settings.layers()) {
        return Err(ConfigError::Rule { reason });
    }
    require(config.groups.session_timeout_min_ms <= config.groups.session_timeout_max_ms, || {
        "group.min.session.timeout.ms must not be greater than group.max.session.timeout.ms".to_owned()
    })
}

fn limits(config: &Config) -> Result<(), ConfigError> {
    let net = &config.net;
    require(net.queued_request_bytes_max >= i64::from(net.request_bytes_max), || {
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes".to_owned()
    })?;
    let codec = config.settings.layers().number("offsets.topic.compression.codec").unwrap_or_default();
    require((0..=4).contains(&codec), || format!("Unknown compression type id: {codec}"))?;
    require(!config.storage.log_dirs.iter().any(|dir| dir.as_os_str().is_empty()), || {
        "At least one log directory must be defined via log.dirs or log.dir.".to_owned()
    })
}
