//! The `monedula` program.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Serves a reservation that a lying count asks for from address space alone (docs/decisions/0002).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    monedula::cli::main(monedula::server::run)
}
