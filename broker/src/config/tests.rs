//! The loader as a whole: order of the sources, defaults, warnings and refusals.

use super::*;

fn load(
    file: Option<(&str, &str)>,
    environment: &[(&str, &str)],
    overrides: &[&str],
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let file = file.map(|(name, text)| SettingsFile { path: name.into(), content: text.as_bytes().to_vec() });
    let environment = environment.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect();
    let overrides: Vec<String> = overrides.iter().map(|text| String::from(*text)).collect();
    let read = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    Config::load(Inputs { file, environment, overrides: &overrides, read: &read, hostname: "machine.test" })
}

fn config(overrides: &[&str]) -> Config {
    load(None, &[], overrides).unwrap().0
}

fn refused(overrides: &[&str]) -> String {
    load(None, &[], overrides).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_node_without_a_file_is_a_cluster_of_its_own_on_this_machine() {
    let (config, warnings) = load(None, &[], &[]).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(config.node_id, NodeId(1));
    assert_eq!(config.roles, Roles { broker: true, controller: true });
    assert_eq!(config.listeners.broker[0].to_string(), "PLAINTEXT://localhost:9092");
    assert_eq!(config.listeners.advertised, config.listeners.broker);
    assert!(config.listeners.controller.is_empty());
    assert_eq!(config.storage.log_dirs, [PathBuf::from("./data")]);
    assert_eq!(config.offsets_topic.replication_factor, 1);
    assert!(config.topics.auto_create);
    assert_eq!(config.http_listen.as_deref(), Some("localhost:9644"));
}

#[test]
fn overrides_beat_the_environment_beats_the_file_beats_the_defaults() {
    let file = Some(("a.yaml", "num.partitions: 2"));
    let environment = [("KAFKA_NUM_PARTITIONS", "3")];
    let partitions = |loaded: Result<(Config, Vec<Warning>), ConfigError>| loaded.unwrap().0.topics.partitions;
    assert_eq!(partitions(load(None, &[], &[])), 1);
    assert_eq!(partitions(load(file, &[], &[])), 2);
    assert_eq!(partitions(load(file, &environment, &[])), 3);
    assert_eq!(partitions(load(file, &environment, &["num.partitions=4"])), 4);
}

#[test]
fn a_server_properties_of_kafka_starts_unchanged() {
    let text = "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n\
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n\
        advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
        controller.listener.names=CONTROLLER\n\
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
        num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n\
        socket.request.max.bytes=104857600\nlog.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\n\
        num.recovery.threads.per.data.dir=1\noffsets.topic.replication.factor=1\n\
        share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n\
        transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\nlog.retention.hours=168\n\
        log.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n";
    let (config, warnings) = load(Some(("server.properties", text)), &[], &[]).unwrap();
    assert_eq!(config.listeners.broker.len(), 1);
    assert_eq!(config.listeners.controller[0].to_string(), "CONTROLLER://:9093");
    assert_eq!(config.listeners.advertised[0].to_string(), "PLAINTEXT://localhost:9092");
    assert_eq!(config.metadata.voters.len(), 1);
    // Values that are Kafka's defaults need no warning.
    let names: Vec<String> = warnings.iter().map(|warning| warning.to_string()).collect();
    assert!(names.iter().all(|name| !name.starts_with("num.io.threads")), "{names:?}");
    assert!(warnings.iter().all(|warning| matches!(warning, Warning::NotActedOn { .. })));
}

#[test]
fn with_a_file_the_replication_of_internal_topics_is_kafkas() {
    let (config, _) = load(Some(("a.yaml", "num.partitions: 1")), &[], &[]).unwrap();
    assert_eq!(config.offsets_topic.replication_factor, 3);
    assert_eq!(config.listeners.advertised[0].host, "machine.test");
}

#[test]
fn an_unknown_key_and_one_without_effect_warn_once_each() {
    let (_, warnings) = load(Some(("a.yaml", "no.such: 1\nnum.replica.fetchers: 3")), &[], &[]).unwrap();
    let texts: Vec<String> = warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        texts,
        [
            "no.such (a.yaml): no such setting, ignored",
            "num.replica.fetchers (a.yaml): accepted, but without effect yet",
            "offsets.topic.replication.factor is 3: one node cannot make __consumer_offsets like that, and without it \
             no group works; set it to 1"
        ]
    );
}

#[test]
fn a_bad_value_stops_the_start_with_key_value_and_what_is_allowed() {
    let error = load(Some(("a.yaml", "log.retention.hours: soon")), &[], &[]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "a.yaml: Invalid value soon for configuration log.retention.hours: Not a number of type INT");
    assert_eq!(
        refused(&["num.partitions=0"]),
        "--override: Invalid value 0 for configuration num.partitions: Value must be at least 1 (allowed: at least 1)"
    );
    assert_eq!(refused(&["num.partitions"]), "--override num.partitions: name=value is expected");
    assert_eq!(refused(&["=1"]), "--override =1: name=value is expected");
    assert!(refused(&["node.id=soon"]).starts_with("--override: Invalid value soon for configuration node.id: "));
    assert!(refused(&["broker.id=soon"]).starts_with("--override: Invalid value soon for configuration broker.id: "));
}

#[test]
fn placeholders_are_resolved_in_every_source() {
    let (config, _) = load(None, &[("RACK", "r1")], &["broker.rack=${env:RACK}"]).unwrap();
    assert_eq!(config.rack.as_deref(), Some("r1"));
    assert_eq!(refused(&["broker.rack=${env:NONE}"]), "--override: broker.rack: ${env:NONE}: the variable is not set");
}

#[test]
fn the_listeners_of_the_official_image_follow_the_advertised_ones() {
    let (config, _) = load(None, &[("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://kafka.test:9192")], &[]).unwrap();
    assert_eq!(config.listeners.broker[0].to_string(), "PLAINTEXT://:9192");
    assert_eq!(config.listeners.advertised[0].to_string(), "PLAINTEXT://kafka.test:9192");
}

#[test]
fn listeners_are_refused_in_kafkas_words() {
    let listed = "'[PLAINTEXT://localhost:9092, CONTROLLER://localhost:9092]'";
    assert_eq!(
        refused(&["listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9092"]),
        format!(
            "Error creating broker listeners from {listed}: Each listener must have a different port, listeners: {}",
            &listed[1..listed.len() - 1]
        )
    );
    assert_eq!(
        refused(&["listeners=FOO://localhost:9092"]),
        "Error creating broker listeners from '[FOO://localhost:9092]': No security protocol defined for listener FOO"
    );
    assert_eq!(
        refused(&["listeners=localhost:9092"]),
        "Error creating broker listeners from '[localhost:9092]': Unable to parse localhost:9092 to a broker endpoint"
    );
    assert_eq!(
        refused(&["listeners=PLAINTEXT://0.0.0.0:9092"]),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
    );
    assert_eq!(
        refused(&["inter.broker.listener.name=EXTERNAL"]),
        "Listener with name EXTERNAL defined in inter.broker.listener.name not found in listener.security.protocol.map."
    );
    assert_eq!(
        refused(&["advertised.listeners=SSL://h:9092"]),
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on currently configured listeners are SSL"
    );
    assert_eq!(
        refused(&["listener.security.protocol.map=A:B"]),
        "Invalid security protocol `B` defined in listener.security.protocol.map"
    );
}

#[test]
fn a_listener_with_its_own_name_takes_its_protocol_from_the_map() {
    let config = config(&[
        "listeners=INSIDE://127.0.0.1:19092,OUTSIDE://[::1]:9092",
        "advertised.listeners=inside://a:1,outside://b:2",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name=inside",
    ]);
    assert_eq!(config.listeners.broker[1].to_string(), "OUTSIDE://[::1]:9092");
    assert_eq!(config.listeners.advertised[1].to_string(), "OUTSIDE://b:2");
    assert_eq!(config.listeners.inter_broker, "INSIDE");
}

#[test]
fn a_listener_is_never_served_without_the_protection_it_asks_for() {
    let error = refused(&["listeners=PLAINTEXT://localhost:9092,SSL://localhost:9093"]);
    assert_eq!(error, "listener SSL: security protocol SSL is not served yet; use PLAINTEXT");
}

#[test]
fn a_node_that_is_not_its_own_only_voter_is_refused() {
    assert!(refused(&["controller.quorum.voters=2@localhost:9093"]).contains("must be included in the set of voters"));
    assert!(refused(&["controller.quorum.voters=1@a:9093,2@b:9093"]).contains("of its own cluster only"));
    assert!(refused(&["process.roles=broker"]).contains("of its own cluster only"));
}

#[test]
fn broker_id_is_an_older_name_of_node_id() {
    assert_eq!(config(&["broker.id=7"]).node_id, NodeId(7));
    assert!(
        refused(&["broker.id=7", "node.id=8"]).starts_with("`node.id` and `broker.id` must be set to the same value")
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    assert!(refused(&["log.retention.ms=0"]).starts_with("log.retention.ms must be unlimited"));
    assert!(refused(&["log.roll.ms=0"]).starts_with("log.roll.ms must be"));
    assert!(refused(&["queued.max.request.bytes=10"]).starts_with("queued.max.request.bytes must be larger"));
    assert!(refused(&["max.connections.per.ip=0"]).starts_with("max.connections.per.ip can be set to zero only"));
    assert!(refused(&["max.connections.per.ip.overrides=a:b"]).contains("host:count"));
    assert!(refused(&["offsets.topic.compression.codec=9"]).starts_with("Unknown compression type id: 9"));
}

#[test]
fn many_directories_and_one_for_the_metadata() {
    let storage = config(&["log.dirs=/a, /b", "metadata.log.dir=/m"]).storage;
    assert_eq!(storage.all_dirs(), [PathBuf::from("/a"), PathBuf::from("/b"), PathBuf::from("/m")]);
    assert_eq!(config(&["log.dir=/only"]).storage.metadata_log_dir, PathBuf::from("/only"));
}
