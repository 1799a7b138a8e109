//! The command line: what the program is asked to do. Knows the settings and the data directories; serving itself is
//! given in as a function.

mod config_check;
mod process;
mod read;
mod storage;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Warning};
use crate::observe::logging::{self, LogFormat};

/// A broker that speaks Kafka's protocol and keeps Kafka's files.
#[derive(Debug, Parser)]
#[command(name = "monedula", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a node.
    Start(Source),
    /// Look at data directories and format them.
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    /// Look at settings.
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the effective settings with their sources, and what is unknown or without effect.
    Check {
        /// YAML file or server.properties.
        file: PathBuf,
        /// Set a value over that of the file and the environment.
        #[arg(long = "override", value_name = "NAME=VALUE")]
        overrides: Vec<String>,
    },
}

/// Where the settings of a command come from.
#[derive(Debug, Args)]
struct Source {
    /// YAML file or server.properties; without it, a node for this machine with its data in ./data.
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a value over that of the file and the environment.
    #[arg(long = "override", value_name = "NAME=VALUE")]
    overrides: Vec<String>,
}

/// Does what the arguments say. `serve` runs a node until it is stopped. A failure is one line on standard error and exit
/// code 1; arguments that cannot be understood give 2.
pub fn main(serve: impl FnOnce(Config, u64) -> anyhow::Result<()>) -> ExitCode {
    let done = match Cli::parse().command {
        Command::Start(source) => start(&source, serve),
        Command::Storage(command) => storage::run(command),
        Command::Config(ConfigCommand::Check { file, overrides }) => config_check::run(&file, &overrides),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("monedula: {}", one_line(&error)));
            ExitCode::FAILURE
        }
    }
}

fn start(source: &Source, serve: impl FnOnce(Config, u64) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let (config, warnings) = read::config(source.config.as_deref(), &source.overrides)?;
    warnings.iter().for_each(warn);
    let format = config.settings.layers().text("monedula.log.format").unwrap_or_default();
    logging::init(LogFormat::of(&format), |name| std::env::var(name).ok())?;
    serve(config, process::raise_file_limit())
}

/// The error and its causes, without those that the text before them names already.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

fn warn(warning: &Warning) {
    complain(&format!("monedula: warning: {warning}"));
}

/// Nobody can be told when standard error is gone.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to standard output; a reader that closed the pipe, such as `head`, is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_flags_of_kafka_storage_are_taken() {
        let line = "monedula storage format -t AAAAAAAAAAAAAAAAAAAAAA -c f -g -s -f metadata.version=33 -r 4.4-IV2";
        assert!(Cli::try_parse_from(line.split(' ')).is_ok());
        let both = "monedula storage format -t AAAAAAAAAAAAAAAAAAAAAA -c f -s -N";
        assert!(Cli::try_parse_from(both.split(' ')).is_err());
        assert!(Cli::try_parse_from("monedula start --override a=b --override c=d".split(' ')).is_ok());
    }
}
