//! `.kafka_cleanshutdown`: present after an orderly stop, with the broker epoch that ended in order, so that the
//! controller can tell an unclean one (KIP-966; Kafka: CleanShutdownFileHandler).

use std::io;
use std::path::Path;

use super::SMALL_FILE_BYTES_MAX;
use crate::disk::{Disk, read_file, remove_if_exists, replace_file};
use crate::names::CLEAN_SHUTDOWN_FILE;

const VERSION: i32 = 0;

/// What the file of a log directory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanShutdown {
    /// No file: the node did not stop in order.
    Unclean,
    /// The node stopped in order. The epoch is missing in files of Kafka before 3.7, which are empty.
    Clean {
        /// Epoch of the broker that stopped.
        broker_epoch: Option<i64>,
    },
}

/// The text of the file.
pub fn encode(broker_epoch: i64) -> String {
    format!("{{\"version\":{VERSION},\"brokerEpoch\":{broker_epoch}}}")
}

/// The broker epoch in the text of the file, if it is there. Only what Kafka's own writer makes is understood.
pub fn decode(content: &str) -> Option<i64> {
    let (_, after) = content.split_once("\"brokerEpoch\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Reads the file of a log directory.
pub fn read(disk: &dyn Disk, log_dir: &Path) -> io::Result<CleanShutdown> {
    match read_file(disk, &log_dir.join(CLEAN_SHUTDOWN_FILE), SMALL_FILE_BYTES_MAX) {
        Ok(content) => Ok(CleanShutdown::Clean { broker_epoch: decode(&String::from_utf8_lossy(&content)) }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(CleanShutdown::Unclean),
        Err(error) => Err(error),
    }
}

/// Writes the file, durably. All logs of the directory must be closed before.
pub fn write(disk: &dyn Disk, log_dir: &Path, broker_epoch: i64) -> io::Result<()> {
    replace_file(disk, &log_dir.join(CLEAN_SHUTDOWN_FILE), encode(broker_epoch).as_bytes())
}

/// Removes the file, durably, before anything is appended: a crash from now on is unclean.
pub fn remove(disk: &dyn Disk, log_dir: &Path) -> io::Result<()> {
    if remove_if_exists(disk, &log_dir.join(CLEAN_SHUTDOWN_FILE))? {
        disk.sync_dir(log_dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn the_text_is_kafkas() {
        assert_eq!(encode(12), "{\"version\":0,\"brokerEpoch\":12}");
        assert_eq!(decode(&encode(12)), Some(12));
        assert_eq!(decode("{ \"brokerEpoch\" : -1 }"), Some(-1));
        assert_eq!(decode(""), None);
    }

    #[test]
    fn the_file_says_how_the_node_stopped() {
        let disk = SimDisk::new();
        let log_dir = Path::new("/d");
        disk.create_dir(log_dir).unwrap();
        assert_eq!(read(&disk, log_dir).unwrap(), CleanShutdown::Unclean);
        write(&disk, log_dir, 3).unwrap();
        assert_eq!(read(&disk, log_dir).unwrap(), CleanShutdown::Clean { broker_epoch: Some(3) });
        remove(&disk, log_dir).unwrap();
        assert_eq!(read(&disk.after_power_cut(0), log_dir).unwrap(), CleanShutdown::Unclean);
    }
}
