//! Texts that belong to one machine have no place in the repository.

use super::source;

/// Hosts that a text may name: those of the projects that we follow, and those that mean "here".
const HOSTS: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "example.com",
    "apache.org",
    "github.com",
    "rustsec.org",
    "w3.org",
    "prometheus.io",
    "json-schema.org",
];

/// Directories of the machine on which a text was written, in parts so that this file does not hold them.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp/", "wt")];

fn is_allowed_host(host: &str) -> bool {
    let variable = host.is_empty() || host.starts_with(['$', '{', '<', '%']);
    variable || HOSTS.iter().any(|allowed| host == *allowed || host.ends_with(&format!(".{allowed}")))
}

#[test]
fn no_path_of_a_machine_is_named() {
    let mut complaints = Vec::new();
    // The paths of a Dockerfile are those of the image.
    for file in source::files("").into_iter().filter(|file| !file.path.contains("/Dockerfile")) {
        for (number, line) in file.text.lines().enumerate() {
            // A path that begins with a variable is of the machine where it runs.
            let starts_path = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "}_.*/-".contains(c));
            for path in MACHINE_PATHS {
                if line.match_indices(path).any(|(at, _)| starts_path(at)) {
                    complaints.push(format!("{}:{}: {path}", file.path, number + 1));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn no_address_outside_the_known_projects_is_named() {
    let mut complaints = Vec::new();
    for file in source::files("").into_iter().filter(|file| file.path != "Cargo.lock") {
        for (number, line) in file.text.lines().enumerate() {
            for scheme in [concat!("http", "://"), concat!("https", "://")] {
                for (at, _) in line.match_indices(scheme) {
                    let rest = &line[at + scheme.len()..];
                    let end = rest.find(|c: char| !c.is_alphanumeric() && !".-${<%".contains(c)).unwrap_or(rest.len());
                    if !is_allowed_host(&rest[..end]) {
                        complaints.push(format!("{}:{}: {}", file.path, number + 1, &rest[..end]));
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
