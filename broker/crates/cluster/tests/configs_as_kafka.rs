//! The catalogue against Apache Kafka 4.4.0: defaults and synonyms as its DescribeConfigs shows them, and what it says to
//! good and bad values. The data files hold Kafka's answers.

use cluster::configs::setting::{all, find};
use cluster::configs::{ConfigKind, DefaultValue, InvalidValue};

fn kind(name: &str) -> ConfigKind {
    match name {
        "broker" => ConfigKind::Broker,
        "topic" => ConfigKind::Topic,
        _ => ConfigKind::Group,
    }
}

#[test]
fn a_value_is_accepted_or_refused_in_kafkas_words() {
    let mut wrong = Vec::new();
    for line in include_str!("data/kafka-config-answers.tsv").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind_name, name, value, outcome, text] = columns[..] else { panic!("bad line {line}") };
        let setting = find(kind(kind_name), name).unwrap();
        let ours = setting.parse(value);
        let said = match (&ours, outcome) {
            (Ok(_), "ok") if text == "(hidden)" => text.to_owned(),
            (Ok(value), "ok") => value.to_string(),
            (Err(error), "refused") => error.to_string(),
            (ours, _) => format!("{ours:?}"),
        };
        if said != text {
            wrong.push(format!("{name} = '{value}': Kafka '{text}', we '{said}'"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_setting_that_kafka_shows_is_known_with_its_default() {
    for (kind_name, file) in [
        ("broker", include_str!("data/broker-configs.tsv")),
        ("topic", include_str!("data/topic-configs.tsv")),
        ("group", include_str!("data/group-configs.tsv")),
    ] {
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, default, _, sensitive] = columns[..] else { panic!("bad line {line}") };
            let setting = find(kind(kind_name), name).unwrap_or_else(|| panic!("{name} is missing"));
            assert!(!setting.internal, "{name}");
            assert_eq!(setting.sensitive().to_string(), sensitive, "{name}");
            match (setting.default, default) {
                // The file shows a list by its first entry, and one node's own values not at all.
                (_, "(set in this test)") | (DefaultValue::Unset, "(unset)") => {}
                (DefaultValue::Unset, "sticky") => assert_eq!(name, "streams.assignor.name"),
                (DefaultValue::Text(ours), theirs) if ours.split(',').next() == Some(theirs) => {}
                (ours, theirs) => panic!("{name}: Kafka {theirs}, we {ours:?}"),
            }
        }
    }
}

#[test]
fn only_our_own_prefix_marks_what_kafka_does_not_have() {
    let kafka = include_str!("data/broker-configs.tsv");
    for setting in all(ConfigKind::Broker).iter().filter(|setting| !setting.internal) {
        let known = kafka.lines().any(|line| line.split('\t').next() == Some(setting.name));
        assert_eq!(!known, setting.name.starts_with("monedula."), "{}", setting.name);
    }
}

#[test]
fn a_refused_value_names_the_setting() {
    let setting = find(ConfigKind::Topic, "retention.ms").unwrap();
    let Err(InvalidValue::Refused { name, .. }) = setting.parse("abc") else { panic!("accepted") };
    assert_eq!(name, "retention.ms");
}
