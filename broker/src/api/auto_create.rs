//! Topics that are made because somebody asked for them (Kafka: AutoTopicCreationManager). The one who asked is told
//! that the topic is not known, and finds it when it asks again.

use std::sync::Arc;

use base::TopicId;
use base::topics::{CLUSTER_METADATA_TOPIC, GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC};
use cluster::controller::{CreateTopics, NewTopic};

use crate::config::InternalTopicConfig;
use crate::node::Node;

/// Has the controller make these topics, whose names are valid. A topic that is being made already is made once.
pub fn begin(node: &Node, names: &[Arc<str>]) {
    // The log of the metadata is no topic, and its directory has that name. Nothing coordinates share groups yet, so that
    // nobody would own the records of their topic.
    let made = names.iter().filter(|name| ![CLUSTER_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC].contains(&&***name));
    let topics: Vec<NewTopic> = made.map(|name| new_topic(node, name)).collect();
    let accepted = topics.is_empty() || node.controller.submit(CreateTopics { topics, validate_only: false });
    if !accepted {
        tracing::warn!("the controller has too much to do; topics are made when clients ask again");
    }
}

fn new_topic(node: &Node, name: &str) -> NewTopic {
    let plain = NewTopic {
        name: name.to_owned(),
        id: TopicId(node.entropy.uuid()),
        partitions: -1,
        replication_factor: -1,
        ..NewTopic::default()
    };
    match name {
        GROUP_METADATA_TOPIC => internal(plain, &node.config.offsets_topic, "producer"),
        TRANSACTION_STATE_TOPIC => internal(plain, &node.config.transactions_topic, "uncompressed"),
        _ => plain,
    }
}

/// Settings of a coordinator's topic (Kafka: groupMetadataTopicConfigs, transactionTopicConfigs).
fn internal(topic: NewTopic, config: &InternalTopicConfig, compression: &str) -> NewTopic {
    let mut configs = vec![
        ("cleanup.policy", "compact".to_owned()),
        ("compression.type", compression.to_owned()),
        ("segment.bytes", config.segment_bytes.to_string()),
    ];
    if let Some(minimum) = config.min_insync_replicas {
        configs.push(("min.insync.replicas", minimum.to_string()));
        configs.push(("unclean.leader.election.enable", "false".to_owned()));
    }
    NewTopic {
        partitions: config.partitions,
        replication_factor: config.replication_factor,
        configs: configs.into_iter().map(|(name, value)| (name.to_owned(), Some(value))).collect(),
        ..topic
    }
}
