//! Which part may know which, as docs/architecture.md tells it: the tables there are what is checked here.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, File};

const MAP: &str = "docs/architecture.md";

/// Rows of the table that follows `marker` in the map: the first cell, and the words in backquotes in the second.
fn table(marker: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = source::read(MAP);
    let (_, after) = text.split_once(marker).unwrap_or_else(|| panic!("{MAP} has no {marker}"));
    let rows = after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    rows.skip(2)
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (quoted(cells[1]).remove(0), quoted(cells[2]).into_iter().collect())
        })
        .collect()
}

/// Names of the dependencies that a manifest lists for the program itself.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let text = source::read(manifest);
    let section = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_crate_depends_on_what_the_map_allows() {
    let allowed = table("<!-- crates -->");
    for (name, allowed) in &allowed {
        let manifest = if name == "protocol-tests" {
            "protocol-tests/Cargo.toml".to_owned()
        } else {
            format!("broker/crates/{name}/Cargo.toml")
        };
        let more: Vec<String> = dependencies(&manifest).difference(allowed).cloned().collect();
        assert!(more.is_empty(), "{name} depends on {more:?}, which {MAP} does not allow");
    }
    let crates: BTreeSet<String> = std::fs::read_dir(source::root().join("broker/crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let missing: Vec<_> = crates.iter().filter(|name| !allowed.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{MAP} says nothing about {missing:?}");
}

/// The module of the package that a file belongs to.
fn module_of(file: &File) -> Option<&str> {
    let rest = file.path.strip_prefix("broker/src/")?;
    Some(rest.split('/').next()?.trim_end_matches(".rs"))
}

/// Modules of the package that a line names.
fn named_modules(line: &str) -> impl Iterator<Item = &str> {
    ["crate::", "monedula::"].into_iter().flat_map(move |path| {
        line.match_indices(path)
            .filter(move |(at, _)| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == ':'))
            .map(move |(at, _)| {
                let rest = &line[at + path.len()..];
                &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
            })
    })
}

#[test]
fn a_module_names_only_those_that_the_map_allows() {
    let allowed = table("<!-- modules -->");
    let mut complaints = Vec::new();
    for file in source::rust_files() {
        let Some(module) = module_of(&file).filter(|module| *module != "lib" && !file.is_test()) else { continue };
        let Some(allowed) = allowed.get(module) else {
            complaints.push(format!("{MAP} says nothing about the module {module}"));
            continue;
        };
        for (number, line) in file.production_lines() {
            for named in named_modules(line).filter(|named| *named != module && !allowed.contains(*named)) {
                if !named.is_empty() {
                    complaints.push(format!("{}:{number}: {module} may not use {named}", file.path));
                }
            }
        }
    }
    complaints.dedup();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What may be named in some places only: the text, and the paths where it may stand.
const RESERVED: &[(&str, &[&str])] = &[
    ("openraft", &["broker/src/runtime/controller/raft", "broker/src/observe/logging.rs"]),
    ("prometheus::", &["broker/src/observe/"]),
    ("axum::", &["broker/src/observe/"]),
    ("hyper::", &["broker/src/observe/"]),
    ("hyper_util::", &["broker/src/observe/"]),
    ("tokio::spawn", &["broker/src/tasks.rs"]),
    ("task::spawn_blocking", &["broker/src/tasks.rs"]),
    ("thread::spawn", &["broker/src/tasks.rs"]),
    ("thread::Builder", &["broker/src/tasks.rs"]),
    ("std::fs", &["broker/crates/partition-log/src/disk/", "broker/src/cli/"]),
    ("tokio::fs", &[]),
    (
        "rustix::",
        &[
            "broker/crates/partition-log/src/disk/",
            "broker/src/net/",
            "broker/src/cli/",
            "broker/src/server.rs",
            "broker/src/observe/process.rs",
        ],
    ),
    ("rand::", &["broker/crates/base/src/entropy.rs"]),
    ("SystemTime", &["broker/crates/base/src/clock.rs"]),
    ("std::time::Instant", &["broker/crates/base/src/clock.rs"]),
    ("std::env::", &["broker/src/cli/", "broker/src/main.rs"]),
    ("#[global_allocator]", &["broker/src/main.rs"]),
    ("catch_unwind", &[]),
];

#[test]
fn what_is_reserved_for_one_place_is_named_nowhere_else() {
    let mut complaints = Vec::new();
    for file in source::rust_files().iter().filter(|file| !file.is_test()) {
        for (number, line) in file.production_lines() {
            for (text, places) in RESERVED {
                if line.contains(text) && !places.iter().any(|place| file.path.starts_with(place)) {
                    complaints.push(format!("{}:{number}: {text} belongs to {places:?}", file.path));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_rust_file_begins_by_saying_what_it_is() {
    let silent: Vec<String> =
        source::rust_files().into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect();
    assert!(silent.is_empty(), "these do not begin with `//! `: {silent:?}");
}

#[test]
fn no_test_is_switched_off() {
    let marker = concat!("#[", "ignore");
    let off: Vec<String> =
        source::rust_files().into_iter().filter(|file| file.text.contains(marker)).map(|file| file.path).collect();
    assert!(off.is_empty(), "tests are switched off in {off:?}");
}
