//! The settings that every broker of a test run starts with, written as a `server.properties`. Uses nothing.

use std::path::Path;

use crate::broker::Target;

/// What both brokers get: short periods, so that expiry and retention can be seen, and a small offsets topic.
const COMMON: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("num.partitions", "1"),
    ("offsets.topic.num.partitions", "4"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.num.partitions", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "500"),
    ("log.initial.task.delay.ms", "500"),
    ("log.retention.check.interval.ms", "500"),
    ("log.cleaner.backoff.ms", "200"),
    ("controlled.shutdown.enable", "false"),
];

/// The text of the settings file: `COMMON`, the addresses, then `own`, of which a later key wins.
/// `port + 1` is Kafka's controller listener and our HTTP listener.
pub fn properties(target: Target, port: u16, dir: &Path, own: &[(&str, &str)]) -> String {
    let side = port + 1;
    let mut all: Vec<(String, String)> = COMMON.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let mut put = |key: &str, value: String| {
        all.retain(|(k, _)| k != key);
        all.push((key.to_owned(), value));
    };
    put("log.dirs", dir.join("data").display().to_string());
    match target {
        Target::Ours => {
            put("listeners", format!("PLAINTEXT://127.0.0.1:{port}"));
            put("monedula.http.listen", format!("127.0.0.1:{side}"));
        }
        Target::Kafka => {
            put("listeners", format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{side}"));
            put("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{port}"));
            put("controller.quorum.voters", format!("1@127.0.0.1:{side}"));
            put("controller.listener.names", "CONTROLLER".to_owned());
            put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_owned());
        }
    }
    for (key, value) in own {
        put(key, (*value).to_owned());
    }
    all.iter().map(|(k, v)| format!("{k}={v}\n")).collect()
}
