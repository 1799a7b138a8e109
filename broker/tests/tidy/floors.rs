//! No dependency is older than the version that fixed a known fault of it.

use super::source;

const FLOORS: &str = "deploy/advisory-floors.tsv";

/// A version as numbers; what follows a `-` or `+` does not count.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or("");
    plain.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Names and versions in Cargo.lock.
fn locked() -> Vec<(String, String)> {
    let text = source::read("Cargo.lock");
    let value = |line: &str| line.split('"').nth(1).unwrap_or("").to_owned();
    let packages = text.split("[[package]]").skip(1);
    packages
        .map(|package| {
            let field = |name: &str| package.lines().find(|line| line.starts_with(name)).map(value).unwrap_or_default();
            (field("name = "), field("version = "))
        })
        .collect()
}

#[test]
fn no_dependency_is_older_than_the_fix_of_its_faults() {
    let (floors, locked) = (source::read(FLOORS), locked());
    for row in floors.lines().filter(|line| !line.starts_with('#')) {
        let [name, floor, why] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{FLOORS}: {row}") };
        for (_, version) in locked.iter().filter(|(locked, _)| locked == name) {
            assert!(numbers(version) >= numbers(floor), "{name} {version} is older than {floor}: {why}");
        }
    }
}

#[test]
fn versions_compare_as_numbers() {
    assert!(numbers("0.10.1") > numbers("0.9.25"));
    assert!(numbers("1.6.0-rc.1+zstd.1.5") >= numbers("1.6.0"));
}
