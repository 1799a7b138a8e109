//! Files and functions stay small. What is longer than the rule stands in `tidy_limits.tsv` with its length, which may
//! only shrink.

use std::collections::BTreeMap;

use super::source::{self, File};

const LIMITS: &str = "broker/tests/tidy_limits.tsv";
/// Longest file without an entry, in lines.
const FILE_LINES_MAX: usize = 400;
/// Longest function without an entry, in lines from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
const HEAD: &str = "# path\tfunction, or - for the file\tmost lines; `make fix` lowers them, nothing raises them\n";

/// Path and name of a function (or `-`), and a number of lines.
type Sizes = BTreeMap<(String, String), usize>;

fn limits() -> Sizes {
    let text = source::read(LIMITS);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let mut fields = row.split('\t').map(str::to_owned);
        let mut field = || fields.next().unwrap_or_else(|| panic!("{LIMITS}: {row}"));
        let key = (field(), field());
        (key, field().parse().unwrap())
    })
    .collect()
}

/// What is longer than the rule.
fn oversized() -> Sizes {
    let mut found = Sizes::new();
    for file in source::rust_files() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            found.insert((file.path.clone(), "-".to_owned()), lines);
        }
        for (name, lines) in functions(&file).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX) {
            let longest = found.entry((file.path.clone(), name)).or_default();
            *longest = lines.max(*longest);
        }
    }
    found
}

/// Names and lengths of the functions of a formatted file: a function ends at the first line that holds nothing but its
/// closing brace, as deep as it began.
fn functions(file: &File) -> Vec<(String, usize)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let begin = |line: &str| -> Option<(usize, String)> {
        let indent = line.len() - line.trim_start().len();
        let mut words = line.trim_start().split(' ');
        let is_qualifier =
            |word: &&str| ["pub", "async", "const", "unsafe", "extern"].contains(word) || word.starts_with("pub(");
        let word = words.by_ref().find(|word| !is_qualifier(word))?;
        let name = words.next().filter(|_| word == "fn")?;
        Some((indent, name.split(['(', '<']).next()?.to_owned()))
    };
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some((indent, name)) = begin(line) else { continue };
        if line.ends_with(['}', ';']) {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[start..].iter().position(|line| *line == end) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn files_and_functions_stay_within_their_limits() {
    let (limits, found) = (limits(), oversized());
    if super::writes() {
        let kept = limits.into_iter().filter_map(|(key, limit)| {
            let now = found.get(&key).copied()?;
            Some(format!("{}\t{}\t{}\n", key.0, key.1, now.min(limit)))
        });
        let text = HEAD.to_owned() + &kept.collect::<String>();
        source::write(LIMITS, &text);
        return;
    }
    let too_long = |(key, lines): (&(String, String), &usize)| {
        let limit = limits.get(key).copied();
        (*lines > limit.unwrap_or(0)).then(|| format!("{} {}: {lines} lines, allowed {limit:?}", key.0, key.1))
    };
    let complaints: Vec<String> = found.iter().filter_map(too_long).collect();
    assert!(
        complaints.is_empty(),
        "split these (files {FILE_LINES_MAX}, functions {FUNCTION_LINES_MAX} lines):\n{}",
        complaints.join("\n")
    );
}

#[test]
fn the_list_of_exceptions_holds_nothing_that_needs_none() {
    let found = oversized();
    let idle: Vec<_> = limits().into_keys().filter(|key| !found.contains_key(key)).collect();
    assert!(idle.is_empty() || super::writes(), "`make fix` removes these from {LIMITS}: {idle:?}");
}

#[test]
fn the_length_of_a_function_is_from_its_head_to_its_brace() {
    let text = "impl A {\n    pub(crate) async fn long<T>(\n        a: T,\n    ) -> T {\n        {\n        }\n    }\n}\nfn short() {}\n";
    let file = File { path: String::new(), text: text.to_owned() };
    assert_eq!(functions(&file), [("long".to_owned(), 6)]);
}
