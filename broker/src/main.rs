//! The `monedula` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    monedula::cli::main(|_config| anyhow::bail!("this build has no server yet"))
}
