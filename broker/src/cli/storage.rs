//! `storage`: the flags of `kafka-storage`, on our directories (Kafka: StorageTool).

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use base::{SystemClock, SystemEntropy, TopicId};
use clap::{Args, Subcommand};
use cluster::configs::rule::voter;
use cluster::image::METADATA_VERSION;
use cluster::releases::metadata_version_of;
use partition_log::RealDisk;

use super::{print, read};
use crate::config::Config;
use crate::storage::{self, FormatOptions};

#[derive(Debug, Subcommand)]
pub(super) enum StorageCommand {
    /// Format the data directories of this node.
    Format(FormatArguments),
    /// Say what the data directories of this node are.
    Info {
        /// YAML file or server.properties.
        #[arg(short = 'c', long = "config", value_name = "FILE")]
        config: PathBuf,
    },
    /// Print a random id for a cluster.
    RandomUuid,
}

#[derive(Debug, Args)]
pub(super) struct FormatArguments {
    /// YAML file or server.properties.
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: PathBuf,
    /// Id of the cluster; `storage random-uuid` makes one.
    #[arg(short = 't', long, value_name = "ID")]
    cluster_id: String,
    /// Leave directories alone that are formatted for this cluster.
    #[arg(short = 'g', long)]
    ignore_formatted: bool,
    /// The node is the only controller.
    #[arg(short = 's', long, conflicts_with_all = ["no_initial_controllers", "initial_controllers"])]
    standalone: bool,
    /// The node joins controllers that are there.
    #[arg(short = 'N', long, conflicts_with = "initial_controllers")]
    no_initial_controllers: bool,
    /// The first controllers, as id@host:port:directory-id,...
    #[arg(short = 'I', long, value_name = "CONTROLLERS")]
    initial_controllers: Option<String>,
    /// Release whose metadata.version the cluster begins with.
    #[arg(short = 'r', long, value_name = "RELEASE")]
    release_version: Option<String>,
    /// Level of a feature, as name=level.
    #[arg(short = 'f', long = "feature", value_name = "NAME=LEVEL")]
    features: Vec<String>,
    /// A SCRAM credential to begin with.
    #[arg(short = 'S', long, value_name = "CREDENTIAL")]
    add_scram: Vec<String>,
}

pub(super) fn run(command: StorageCommand) -> anyhow::Result<()> {
    match command {
        StorageCommand::RandomUuid => print(&format!("{}\n", TopicId(base::Entropy::uuid(&SystemEntropy)))),
        StorageCommand::Info { config } => {
            let (config, _) = read::config(Some(&config), &[])?;
            let info = storage::info::info(&RealDisk, &config)?;
            print(&info.text())?;
            if info.problems.is_empty() {
                Ok(())
            } else {
                bail!("the directories are not formatted, or not usable as they are")
            }
        }
        StorageCommand::Format(arguments) => format(&arguments),
    }
}

fn format(arguments: &FormatArguments) -> anyhow::Result<()> {
    let (config, _) = read::config(Some(&arguments.config), &[])?;
    let options = options(arguments, &config)?;
    let formatted = storage::format(&RealDisk, &config, &options, &SystemClock::new(), &SystemEntropy)?;
    if formatted.directories.is_empty() {
        return print("All of the log directories are already formatted.\n");
    }
    let features: Vec<String> = formatted.features.iter().map(|(name, level)| format!("{name} {level}")).collect();
    let lines = formatted.directories.iter().map(|directory| {
        let kind = if *directory == config.storage.metadata_log_dir { "metadata" } else { "data" };
        format!("Formatting {kind} directory {} with {}.\n", directory.display(), features.join(", "))
    });
    print(&lines.collect::<String>())
}

fn options(arguments: &FormatArguments, config: &Config) -> anyhow::Result<FormatOptions> {
    if arguments.cluster_id.trim().is_empty() {
        bail!("--cluster-id must not be empty");
    }
    if (arguments.standalone || arguments.initial_controllers.is_some()) && !config.metadata.voters.is_empty() {
        bail!(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or --standalone. \
             If you want to use dynamic quorum, please remove controller.quorum.voters and specify \
             controller.quorum.bootstrap.servers instead."
        );
    }
    if arguments.no_initial_controllers {
        bail!("--no-initial-controllers: a node cannot join the controllers of others yet; leave the flag out");
    }
    if !arguments.add_scram.is_empty() {
        bail!("--add-scram: SCRAM is not served yet; leave the flag out");
    }
    let mut features = Vec::new();
    if let Some(release) = &arguments.release_version {
        let level = metadata_version_of(release).with_context(|| format!("Unknown metadata.version '{release}'"))?;
        features.push((METADATA_VERSION.to_owned(), level));
    }
    for text in &arguments.features {
        let parsed =
            text.split_once('=').and_then(|(name, level)| Some((name.trim().to_owned(), level.trim().parse().ok()?)));
        let (name, level) = parsed.with_context(|| format!("--feature {text}: name=level is expected"))?;
        if name == METADATA_VERSION && arguments.release_version.is_some() {
            bail!("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.");
        }
        features.push((name, level));
    }
    Ok(FormatOptions {
        cluster_id: arguments.cluster_id.clone(),
        ignore_formatted: arguments.ignore_formatted,
        features,
        metadata_directory_id: initial_directory(arguments.initial_controllers.as_deref(), config)?,
    })
}

/// The directory id of this node in `id@host:port:directory-id,...`, which may name no other node so far.
fn initial_directory(controllers: Option<&str>, config: &Config) -> anyhow::Result<Option<TopicId>> {
    let Some(text) = controllers else { return Ok(None) };
    if text.contains(',') {
        bail!("--initial-controllers: a cluster of several controllers is not served yet; name this node only");
    }
    let form = || format!("--initial-controllers {text}: id@host:port:directory-id is expected");
    let (address, directory) = text.rsplit_once(':').with_context(form)?;
    let (id, _, _) = voter(address).with_context(form)?;
    if id != config.node_id.0 {
        bail!("--initial-controllers names node {id}, but node.id is {}", config.node_id);
    }
    directory.parse().map(Some).with_context(form)
}
