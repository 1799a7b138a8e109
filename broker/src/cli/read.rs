//! Settings from where a command finds them: file, environment and arguments of this process.

use std::io;
use std::path::Path;

use crate::config::file::SETTINGS_FILE_BYTES_MAX;
use crate::config::{Config, ConfigError, Inputs, SettingsFile, Warning};

/// Reads and checks the settings.
pub(super) fn config(file: Option<&Path>, overrides: &[String]) -> Result<(Config, Vec<Warning>), ConfigError> {
    let file = match file {
        Some(path) => Some(SettingsFile { path: path.to_owned(), content: read_settings_file(path)? }),
        None => None,
    };
    // A variable that is not UTF-8 can be no setting.
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let uname = rustix::system::uname();
    let hostname = uname.nodename().to_string_lossy();
    Config::load(Inputs { file, environment: environment.collect(), overrides, read: &read_file, hostname: &hostname })
}

fn read_settings_file(path: &Path) -> Result<Vec<u8>, ConfigError> {
    read_file(path).map_err(|error| ConfigError::File { path: path.to_owned(), reason: error.to_string() })
}

#[allow(
    clippy::disallowed_methods,
    reason = "settings are the operator's and may be read-only, which `Disk` does not open; nothing is written"
)]
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let content = std::fs::read(path)?;
    if content.len() as u64 > SETTINGS_FILE_BYTES_MAX {
        let reason = format!("larger than the {SETTINGS_FILE_BYTES_MAX} bytes that settings may have");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(content)
}
