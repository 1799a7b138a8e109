//! The files of the repository as the rules look at them.

use std::path::{Path, PathBuf};

/// Directories that hold nothing of ours.
const SKIPPED: [&str; 5] = ["target", "data", "node_modules", "__pycache__", "bench-results"];

/// One text file.
pub struct File {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Reads a file of the repository.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Writes a file of the repository.
#[allow(clippy::disallowed_methods, reason = "this writes the repository, not the data of a node")]
pub fn write(path: &str, text: &str) {
    std::fs::write(root().join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Every text file of the repository below `under` (a path with `/`, or nothing for all), in the order of their paths.
pub fn files(under: &str) -> Vec<File> {
    let mut paths = Vec::new();
    walk(&root().join(under), &mut paths);
    let mut files: Vec<File> = paths
        .into_iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(&path).ok()?;
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            Some(File { path, text })
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Every Rust file of the repository.
pub fn rust_files() -> Vec<File> {
    ["broker", "protocol-tests"].into_iter().flat_map(files).filter(|file| file.path.ends_with(".rs")).collect()
}

fn walk(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Hidden directories are those of tools, except the one with the gate.
        if (name.starts_with('.') && name != ".ci") || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            walk(&path, paths);
        } else if path.is_file() && std::fs::metadata(&path).unwrap().len() < 1 << 20 {
            paths.push(path);
        }
    }
}

impl File {
    /// The lines that are compiled into the program: without comments, and without what follows the first
    /// `#[cfg(test)]`, which stands before the tests at the end of a file.
    pub fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        lines.map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// True for code that is not part of the program.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("protocol-tests/")
            || self.path.contains("/tests/")
            || self.path.contains("/examples/")
            || self.path.contains("/benches/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("/testing.rs")
    }
}
