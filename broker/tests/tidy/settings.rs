//! docs/settings.md is made from the catalogue of settings and the list of those that have an effect.

use std::fmt::Write;

use cluster::configs::setting::{all, find};
use cluster::configs::{ConfigKind, DefaultValue, Setting, UpdateMode};
use monedula::config::acted::is_acted_on;

use super::source;

const DOCUMENT: &str = "docs/settings.md";
const HEAD: &str = "\
# Settings that have an effect

Written by `make fix` from the catalogue in `broker/crates/cluster/src/configs/data` and the list in
`broker/src/config/acted.rs`. Names and defaults are those of Apache Kafka 4.4. Every other setting of Kafka is accepted with
a warning and described to clients, but has no effect here yet. Where settings come from is in configuration.md.

*At run time* says whether `kafka-configs` may change it while the node runs; the settings of topics always may change.

";

fn row(text: &mut String, setting: &Setting, run_time: Option<&str>) {
    let default = match setting.default {
        DefaultValue::Required | DefaultValue::Unset => String::new(),
        DefaultValue::Text("") => "(empty)".to_owned(),
        DefaultValue::Text(value) => format!("`{value}`"),
    };
    let run_time = run_time.map(|mode| format!(" {mode} |")).unwrap_or_default();
    writeln!(text, "| `{}` | {default} |{run_time} {} |", setting.name, setting.documentation).unwrap();
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("## Of a node\n\n| setting | default | at run time | what it does |\n|---|---|---|---|\n");
    for setting in all(ConfigKind::Broker).iter().filter(|setting| is_acted_on(setting.name)) {
        let mode = match setting.update {
            // Listeners are opened at the start only.
            UpdateMode::ReadOnly | UpdateMode::PerBroker => "no",
            UpdateMode::ClusterWide => "yes",
        };
        row(&mut text, setting, Some(mode));
    }
    text.push_str("\n## Of a topic\n\nWhat a topic does not set it has from its broker.\n\n");
    text.push_str("| setting | default | what it does |\n|---|---|---|\n");
    for setting in all(ConfigKind::Topic).iter().filter(|setting| !setting.internal && has_effect(setting)) {
        row(&mut text, setting, None);
    }
    text
}

/// A topic setting does what it says where the broker setting behind it does.
fn has_effect(setting: &Setting) -> bool {
    setting.broker_synonyms().any(|(name, _)| is_acted_on(name))
}

#[test]
fn the_document_says_what_the_catalogue_says() {
    if super::writes() {
        return source::write(DOCUMENT, &document());
    }
    assert!(source::read(DOCUMENT) == document(), "{DOCUMENT} is not what the catalogue says: run `make fix`");
}

#[test]
fn a_setting_that_has_an_effect_says_which() {
    for setting in all(ConfigKind::Broker).iter().filter(|setting| is_acted_on(setting.name)) {
        assert!(!setting.documentation.is_empty(), "{}", setting.name);
    }
    assert!(find(ConfigKind::Topic, "retention.ms").is_some_and(has_effect));
}
