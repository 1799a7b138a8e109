//! Rules that a compiler does not check, as tests: what every file begins with, which part may know which, how long files
//! and functions may be, which versions of dependencies are too old, and that generated documents say what the code says.
//! With `MONEDULA_TIDY=write` (`make fix`) the size limits are tightened and the documents written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod documents;
mod edges;
mod floors;
mod settings;
mod sizes;
mod source;
mod words;

/// True when the generated files are to be written instead of compared.
fn writes() -> bool {
    std::env::var("MONEDULA_TIDY").is_ok_and(|value| value == "write")
}
