//! DescribeConfigs (32), IncrementalAlterConfigs (44), AlterConfigs (33), ListConfigResources (74). Uses the harness.

use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::messages::{
    AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest,
};
use protocol_tests::ops::*;
use protocol_tests::{Broker, Client, codes, eventually};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn resource(kind: i8, name: &str) -> DescribeConfigsResource {
    DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(s(name))
        .with_configuration_keys(None)
}

/// All configs of one resource with synonyms.
pub fn describe(client: &mut Client, kind: i8, name: &str) -> DescribeConfigsResult {
    let request =
        DescribeConfigsRequest::default().with_resources(vec![resource(kind, name)]).with_include_synonyms(true);
    client.call(4, &request).results.remove(0)
}

/// Value and source of one config; the value is empty when it is null.
pub fn value(client: &mut Client, kind: i8, name: &str, key: &str) -> (String, i8) {
    let config = entry(client, kind, name, key);
    (config.value.map(|v| v.to_string()).unwrap_or_default(), config.config_source)
}

fn entry(client: &mut Client, kind: i8, name: &str, key: &str) -> DescribeConfigsResourceResult {
    let found = describe(client, kind, name).configs.into_iter().find(|c| c.name.as_str() == key);
    found.unwrap_or_else(|| panic!("{key} is not described"))
}

/// Sets one config and waits until it is described.
pub fn set(client: &mut Client, kind: i8, name: &str, key: &str, to: &str) {
    assert_eq!(alter_configs(client, kind, name, &[(key, SET, Some(to))]).0, codes::NONE);
    eventually("the config is seen", SOON, || (value(client, kind, name, key).0 == to).then_some(()));
}

fn replace(client: &mut Client, version: i16, topic: &str, configs: &[(&str, &str)]) -> (i16, Option<String>) {
    let config = |(k, v): &(&str, &str)| AlterableConfig::default().with_name(s(k)).with_value(Some(s(v)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(s(topic))
        .with_configs(configs.iter().map(config).collect());
    let mut answer = client.call(version, &AlterConfigsRequest::default().with_resources(vec![resource]));
    let result = answer.responses.remove(0);
    (result.error_code, result.error_message.map(|m| m.to_string()))
}

#[test]
fn bl_121_alter_configs_replaces_what_is_not_named() {
    let mut client = Broker::shared().client();
    for version in 0..=2 {
        let topic = fresh_topic(&mut client, &[("retention.ms", "1000000"), ("segment.bytes", "1048576")]);
        assert_eq!(replace(&mut client, version, &topic, &[("segment.bytes", "2097152")]).0, codes::NONE);
        eventually("the default is back", SOON, || {
            (value(&mut client, TOPIC, &topic, "retention.ms") == ("604800000".into(), 5)).then_some(())
        });
        assert_eq!(value(&mut client, TOPIC, &topic, "segment.bytes"), ("2097152".into(), 1));
    }
}

#[test]
fn bl_121_incremental_alter_configs_keeps_the_rest() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("retention.ms", "1000000"), ("segment.bytes", "1048576")]);
    set(&mut client, TOPIC, &topic, "segment.bytes", "2097152");
    assert_eq!(value(&mut client, TOPIC, &topic, "retention.ms"), ("1000000".into(), 1));
    let (code, _) = alter_configs(&mut client, TOPIC, &topic, &[("segment.bytes", DELETE, None)]);
    assert_eq!(code, codes::NONE);
    eventually("the default is back", SOON, || {
        (value(&mut client, TOPIC, &topic, "segment.bytes").1 == 5).then_some(())
    });
}

#[test]
fn lists_grow_by_append_and_shrink_by_subtract() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("cleanup.policy", "delete")]);
    let mut now = |operation, change: &str, wanted: &str| {
        let (code, message) = alter_configs(&mut client, TOPIC, &topic, &[("cleanup.policy", operation, Some(change))]);
        assert_eq!(code, codes::NONE, "{message:?}");
        eventually(wanted, SOON, || (value(&mut client, TOPIC, &topic, "cleanup.policy").0 == wanted).then_some(()));
    };
    now(APPEND, "compact", "delete,compact");
    now(SUBTRACT, "delete", "compact");
    let (code, _) = alter_configs(&mut client, TOPIC, &topic, &[("retention.ms", APPEND, Some("1"))]);
    assert_eq!(code, codes::INVALID_CONFIG, "not a list");
}

#[test]
fn bl_113_wrong_configs_are_refused_with_a_reason_and_change_nothing() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let before = describe(&mut client, TOPIC, &topic).configs;
    let wrong = [
        ("replication.factor", "2"),
        ("foo", "bar"),
        ("retention.ms", "abc"),
        ("cleanup.policy", "burn"),
        ("segment.bytes", "1"),
        ("compression.type", "rar"),
        ("min.insync.replicas", "0"),
    ];
    for (key, to) in wrong {
        let (code, message) = alter_configs(&mut client, TOPIC, &topic, &[(key, SET, Some(to))]);
        assert_eq!(code, codes::INVALID_CONFIG, "{key}");
        assert!(message.is_some_and(|m| !m.is_empty()), "{key}");
        let (code, message) = replace(&mut client, 2, &topic, &[(key, to)]);
        assert_eq!(code, codes::INVALID_CONFIG, "{key}");
        assert!(message.is_some_and(|m| !m.is_empty()), "{key}");
    }
    assert_eq!(describe(&mut client, TOPIC, &topic).configs, before);
}

#[test]
fn one_wrong_config_spoils_its_resource_only() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let (code, _) =
        alter_configs(&mut client, TOPIC, &topic, &[("retention.ms", SET, Some("5")), ("foo", SET, Some("1"))]);
    assert_eq!(code, codes::INVALID_CONFIG);
    assert_eq!(value(&mut client, TOPIC, &topic, "retention.ms").1, 5);
}

#[test]
fn altering_a_missing_topic_says_so() {
    let mut client = Broker::shared().client();
    let (code, _) = alter_configs(&mut client, TOPIC, "no-such-topic", &[("retention.ms", SET, Some("5"))]);
    assert_eq!(code, codes::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(replace(&mut client, 2, "no-such-topic", &[("retention.ms", "5")]).0, codes::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn validate_only_changes_nothing() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    use kafka_protocol::messages::incremental_alter_configs_request as incremental;
    let change = incremental::AlterableConfig::default().with_name(s("retention.ms")).with_value(Some(s("77")));
    let resource = incremental::AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(s(&topic))
        .with_configs(vec![change]);
    for version in [0, 1] {
        let request =
            IncrementalAlterConfigsRequest::default().with_resources(vec![resource.clone()]).with_validate_only(true);
        assert_eq!(client.call(version, &request).responses[0].error_code, codes::NONE);
    }
    assert_eq!(value(&mut client, TOPIC, &topic, "retention.ms").1, 5);
}

#[test]
fn bl_122_every_config_described_may_be_set_again() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("retention.ms", "1000000")]);
    let all = describe(&mut client, TOPIC, &topic).configs;
    let own: Vec<(&str, i8, Option<&str>)> =
        all.iter().filter_map(|c| c.value.as_deref().map(|v| (c.name.as_str(), SET, Some(v)))).collect();
    let changed: Vec<_> = own.iter().filter(|(n, ..)| *n == "retention.ms").copied().collect();
    for round in [changed, own] {
        let (code, message) = alter_configs(&mut client, TOPIC, &topic, &round);
        assert_eq!(code, codes::NONE, "{message:?}");
    }
}

#[test]
fn bl_124_synonyms_go_from_topic_to_default_by_kafkas_names() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[("segment.bytes", "1048576")]);
    let config = entry(&mut client, TOPIC, &topic, "segment.bytes");
    let synonyms: Vec<_> = config.synonyms.iter().map(|y| (y.name.to_string(), y.source)).collect();
    assert_eq!(synonyms, [("segment.bytes".to_owned(), 1), ("log.segment.bytes".to_owned(), 5)]);
    let config = entry(&mut client, TOPIC, &topic, "retention.bytes");
    let synonyms: Vec<_> = config.synonyms.iter().map(|y| (y.name.to_string(), y.source)).collect();
    assert_eq!(synonyms, [("log.retention.bytes".to_owned(), 5)]);
}

#[test]
fn bl_124_named_keys_missing_resources_types_and_documentation() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let one = resource(TOPIC, &topic).with_configuration_keys(Some(vec![s("retention.ms"), s("no.such.key")]));
    for version in 1..=4 {
        let mut request =
            DescribeConfigsRequest::default().with_resources(vec![one.clone(), resource(TOPIC, "no-such-topic")]);
        if version >= 3 {
            request = request.with_include_documentation(true);
        }
        let answer = client.call(version, &request);
        let (known, unknown) = (&answer.results[0], &answer.results[1]);
        assert_eq!((known.error_code, known.configs.len()), (codes::NONE, 1), "version {version}");
        assert_eq!(unknown.error_code, codes::UNKNOWN_TOPIC_OR_PARTITION);
        assert!(unknown.configs.is_empty());
        assert!(known.configs[0].synonyms.is_empty(), "none were asked for");
        if version >= 3 {
            assert_eq!(known.configs[0].config_type, 5, "LONG");
            assert!(known.configs[0].documentation.as_ref().is_some_and(|d| d.len() > 20));
        }
    }
}

#[test]
fn bl_125_every_static_broker_config_is_described() {
    let mut client = Broker::shared().client();
    let all = describe(&mut client, BROKER, "1");
    assert_eq!(all.error_code, codes::NONE);
    let wanted = [
        "num.partitions",
        "default.replication.factor",
        "message.max.bytes",
        "auto.create.topics.enable",
        "log.retention.ms",
        "log.retention.hours",
        "min.insync.replicas",
        "offsets.retention.minutes",
        "offsets.topic.num.partitions",
        "transaction.max.timeout.ms",
        "node.id",
        "log.dirs",
        "listeners",
        "advertised.listeners",
        "group.initial.rebalance.delay.ms",
    ];
    for key in wanted {
        assert!(all.configs.iter().any(|c| c.name.as_str() == key), "{key} is missing");
    }
    let find = |key: &str| all.configs.iter().find(|c| c.name.as_str() == key).unwrap();
    assert_eq!((find("node.id").config_source, find("node.id").read_only), (4, true));
    assert_eq!((find("num.partitions").config_source, find("num.partitions").value.as_deref()), (4, Some("1")));
    assert_eq!((find("message.max.bytes").config_source, find("message.max.bytes").read_only), (5, false));
    assert!(all.configs.iter().filter(|c| c.is_sensitive).all(|c| c.value.is_none()));
}

#[test]
fn a_broker_that_does_not_exist_is_an_invalid_request() {
    let mut client = Broker::shared().client();
    for name in ["99", "abc"] {
        assert_eq!(describe(&mut client, BROKER, name).error_code, codes::INVALID_REQUEST, "{name}");
    }
}

#[test]
fn broker_configs_change_at_run_time_for_one_broker_and_for_all() {
    let broker = Broker::start(&[]);
    let mut client = broker.client();
    let topic = fresh_topic(&mut client, &[]);
    set(&mut client, BROKER, "1", "message.max.bytes", "2000000");
    let own = entry(&mut client, BROKER, "1", "message.max.bytes");
    assert_eq!(own.config_source, 2, "dynamic config of this broker");
    let (code, _) = alter_configs(&mut client, BROKER, "", &[("message.max.bytes", SET, Some("3000000"))]);
    assert_eq!(code, codes::NONE);
    eventually("the default of the cluster is described", SOON, || {
        let sources: Vec<_> =
            entry(&mut client, BROKER, "1", "message.max.bytes").synonyms.iter().map(|y| y.source).collect();
        (sources == [2, 3, 5]).then_some(())
    });
    // A topic follows the broker: its max.message.bytes is the synonym message.max.bytes.
    assert_eq!(value(&mut client, TOPIC, &topic, "max.message.bytes").0, "2000000");
    let (code, _) = alter_configs(&mut client, BROKER, "1", &[("message.max.bytes", DELETE, None)]);
    assert_eq!(code, codes::NONE);
    eventually("the topic follows the cluster", SOON, || {
        (value(&mut client, TOPIC, &topic, "max.message.bytes") == ("3000000".into(), 3)).then_some(())
    });
}

#[test]
fn read_only_broker_configs_are_refused() {
    let mut client = Broker::shared().client();
    for key in ["node.id", "log.dirs", "num.partitions"] {
        let (code, _) = alter_configs(&mut client, BROKER, "1", &[(key, SET, Some("3"))]);
        assert_eq!(code, codes::INVALID_REQUEST, "{key}");
    }
}

#[test]
fn config_resources_are_listed_by_type() {
    let mut client = Broker::shared().client();
    let topic = fresh_topic(&mut client, &[]);
    let answer = client.call(0, &ListConfigResourcesRequest::default());
    assert_eq!((answer.error_code, answer.config_resources.len()), (codes::NONE, 0), "v0 lists client metrics only");
    let answer = client.call(1, &ListConfigResourcesRequest::default().with_resource_types(vec![TOPIC, BROKER]));
    let got: Vec<_> = answer.config_resources.iter().map(|r| (r.resource_type, r.resource_name.to_string())).collect();
    assert!(got.contains(&(TOPIC, topic)) && got.contains(&(BROKER, "1".into())), "{got:?}");
    let all = client.call(1, &ListConfigResourcesRequest::default());
    assert!(all.config_resources.iter().any(|r| r.resource_type == TOPIC));
    let answer = client.call(1, &ListConfigResourcesRequest::default().with_resource_types(vec![99]));
    assert_eq!(answer.error_code, codes::UNSUPPORTED_VERSION);
}

#[test]
fn bl_128_the_internal_topics_of_connect_report_exactly_compact() {
    let mut client = Broker::shared().client();
    for partitions in [1, 5, 25] {
        let topic = protocol_tests::unique("topic");
        create_topic(&mut client, &topic, partitions, &[("cleanup.policy", "compact")]);
        assert_eq!(value(&mut client, TOPIC, &topic, "cleanup.policy"), ("compact".into(), 1));
        assert_eq!(metadata(&mut client, &[&topic]).topics[0].partitions.len(), partitions as usize);
    }
    let topic = fresh_topic(&mut client, &[]);
    assert_eq!(value(&mut client, TOPIC, &topic, "cleanup.policy"), ("delete".into(), 5));
}
