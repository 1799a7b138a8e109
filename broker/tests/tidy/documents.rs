//! Documents that say what the code says: docs/protocol.md is made from the table of APIs, and docs/configuration.md names
//! every setting of our own.

use std::fmt::Write;

use monedula::api::{Order, TABLE};

use super::source;

const CONFIGURATION: &str = "docs/configuration.md";
const SETTINGS: &str = "broker/crates/cluster/src/configs/data/monedula.tsv";
const DOCUMENT: &str = "docs/protocol.md";
const HEAD: &str = "\
# The Kafka APIs that a node serves

Written by `make fix` from the table in `broker/src/api/mod.rs`, from which ApiVersions is answered too. The newest versions
are those of Apache Kafka 4.4; what is not listed is not advertised, and a request for it ends the connection, as in Kafka.

| key | API | versions answered | advertised from | requests of one connection |
|---|---|---|---|---|
";

fn document() -> String {
    let mut text = HEAD.to_owned();
    for entry in TABLE {
        let (min, max) = entry.versions_served;
        let versions = if min == max { min.to_string() } else { format!("{min}-{max}") };
        let order = match entry.order {
            Order::Alone => "one after the other",
            Order::Pipelined => "overlap, answered in order",
        };
        let advertised = entry.version_advertised_min;
        writeln!(text, "| {} | {} | {versions} | {advertised} | {order} |", entry.key, entry.name).unwrap();
    }
    text
}

#[test]
fn the_document_says_what_the_table_says() {
    if super::writes() {
        return source::write(DOCUMENT, &document());
    }
    assert!(source::read(DOCUMENT) == document(), "{DOCUMENT} is not what the table says: run `make fix`");
}

#[test]
fn the_table_is_sorted_and_names_each_api_once() {
    assert!(TABLE.windows(2).all(|pair| pair[0].key < pair[1].key));
}

#[test]
fn every_setting_of_our_own_is_explained() {
    let (table, page) = (source::read(SETTINGS), source::read(CONFIGURATION));
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let line = format!("| `{}` | `{}` | {} |", fields[0], fields[2], fields[8]);
        assert!(page.contains(&line), "{CONFIGURATION} has no line\n{line}");
    }
}
