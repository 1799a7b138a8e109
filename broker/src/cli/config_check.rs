//! `config check`: what a node would run with, so that a file can be looked at before it is used.

use std::fmt::Write;
use std::path::Path;

use cluster::configs::ConfigKind;
use cluster::configs::setting::{all, find, without_listener_prefix};

use super::{print, read};
use crate::config::{Config, Warning};

/// Prints every setting with its value and source, then the warnings.
pub(super) fn run(file: &Path, overrides: &[String]) -> anyhow::Result<()> {
    let (config, warnings) = read::config(Some(file), overrides)?;
    print(&report(&config, &warnings))
}

fn report(config: &Config, warnings: &[Warning]) -> String {
    let mut text = String::new();
    let mut names: Vec<&str> = all(ConfigKind::Broker).iter().filter(|s| !s.internal).map(|s| s.name).collect();
    names.extend(config.settings.iter().map(|(name, _)| name).filter(|name| find(ConfigKind::Broker, name).is_none()));
    names.sort_unstable();
    for name in names {
        let set = config.settings.iter().find(|(known, _)| *known == name).map(|(_, set)| set);
        let setting = find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name));
        // What nobody knows may be a secret.
        let value = match (config.settings.get(name), setting.is_none_or(|setting| setting.sensitive())) {
            (None, _) => continue,
            (Some(_), true) => "[hidden]",
            (Some(value), false) => value,
        };
        let source = set.map_or_else(|| "default".to_owned(), |set| set.origin.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}={value}  # {source}");
    }
    for warning in warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, SettingsFile};

    #[test]
    fn each_setting_is_shown_with_its_source_and_no_secret_is() {
        let content = b"num.partitions: 3\nssl.key.password: secret\nno.such: key\n".to_vec();
        let file = Some(SettingsFile { path: "a.yaml".into(), content });
        let read = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let inputs = Inputs { file, environment: Vec::new(), overrides: &[], read: &read, hostname: "h" };
        let (config, warnings) = Config::load(inputs).unwrap();
        let report = report(&config, &warnings);
        for line in [
            "num.partitions=3  # a.yaml",
            "ssl.key.password=[hidden]  # a.yaml",
            "no.such=[hidden]  # a.yaml",
            "auto.create.topics.enable=true  # default",
            "node.id=1  # built in",
            "warning: no.such (a.yaml): no such setting, ignored",
        ] {
            assert!(report.lines().any(|shown| shown == line), "{line}\n{report}");
        }
        assert!(!report.contains("secret"));
    }
}
