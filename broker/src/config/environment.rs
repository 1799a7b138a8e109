//! Settings from `KAFKA_*` variables, by the rule of Kafka's official image (KafkaDockerWrapper): the prefix goes, letters
//! become small, `___` becomes a hyphen, `__` an underscore and `_` a dot. `KAFKA_CFG_*`, which another image made common,
//! means the same and wins.

use std::collections::BTreeMap;

/// Variables of the images that are no settings.
const NOT_SETTINGS: [&str; 13] = [
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_HOME",
];

/// Names and values that the variables set.
pub fn settings(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut plain = BTreeMap::new();
    let mut with_cfg = BTreeMap::new();
    for (variable, value) in variables {
        let Some(rest) = variable.strip_prefix("KAFKA_") else { continue };
        if NOT_SETTINGS.contains(&variable.as_str()) || is_service_link(&variable, &value) {
            continue;
        }
        match rest.strip_prefix("CFG_") {
            Some(rest) => with_cfg.insert(setting_name(rest), value),
            None => plain.insert(setting_name(rest), value),
        };
    }
    plain.append(&mut with_cfg);
    plain
}

fn setting_name(rest: &str) -> String {
    rest.to_lowercase().replace("___", "-").replace("__", "\u{0}").replace('_', ".").replace('\u{0}', "_")
}

/// Kubernetes writes variables such as `KAFKA_PORT=tcp://10.0.0.1:9092` and `KAFKA_SERVICE_HOST` for each service, and
/// a service named kafka is common. No setting of Kafka looks like them.
fn is_service_link(variable: &str, value: &str) -> bool {
    let has_port_part = variable.match_indices("_PORT_").any(|(at, part)| {
        let after = &variable[at + part.len()..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| after[digits..].starts_with(protocol))
    });
    variable == "KAFKA_PORT"
        || variable.contains("_SERVICE_HOST")
        || variable.contains("_SERVICE_PORT")
        || has_port_part
        || (variable.ends_with("_PORT") && value.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        settings(variables.iter().map(|(name, value)| (String::from(*name), String::from(*value))))
            .into_iter()
            .collect()
    }

    fn expected(entries: &[(&str, &str)]) -> Vec<(String, String)> {
        entries.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
    }

    #[test]
    fn names_follow_the_rule_of_the_official_image() {
        let variables =
            [("KAFKA_LOG_DIRS", "/a"), ("KAFKA_MY___KEY__X", "1"), ("PATH", "/bin"), ("KAFKA_NODE_ID", "3")];
        assert_eq!(read(&variables), expected(&[("log.dirs", "/a"), ("my-key_x", "1"), ("node.id", "3")]));
    }

    #[test]
    fn variables_of_the_images_are_no_settings() {
        assert_eq!(
            read(&[("KAFKA_HEAP_OPTS", "-Xmx1g"), ("KAFKA_VERSION", "4"), ("KAFKA_LOG4J_ROOT_LOGLEVEL", "INFO")]),
            []
        );
    }

    #[test]
    fn service_links_of_kubernetes_are_no_settings() {
        let variables = [
            ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
            ("KAFKA_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
            ("KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"),
            ("KAFKA_SERVICE_HOST", "10.0.0.1"),
            ("KAFKA_SERVICE_PORT", "9092"),
            ("KAFKA_SERVICE_PORT_HTTP", "80"),
            ("KAFKA_UI_PORT", "tcp://10.0.0.2:80"),
            ("KAFKA_UI_PORT_80_TCP_PROTO", "tcp"),
        ];
        assert_eq!(read(&variables), []);
    }

    #[test]
    fn the_cfg_form_wins() {
        assert_eq!(read(&[("KAFKA_CFG_NODE_ID", "2"), ("KAFKA_NODE_ID", "1")]), expected(&[("node.id", "2")]));
    }
}
