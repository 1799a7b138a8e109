//! The `monedula` program.

fn main() {}
