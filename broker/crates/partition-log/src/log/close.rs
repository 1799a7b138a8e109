//! The end of a log: an orderly close, or deletion (Kafka: UnifiedLog.close, renameDir, delete).

use std::path::{Path, PathBuf};

use base::Offset;
use uuid::Uuid;

use super::Log;
use crate::disk::{Disk, remove_if_exists};
use crate::errors::{IoContext, LogError, StorageError};
use crate::names::{DirKind, renamed_dir};

/// What an orderly close leaves for the checkpoints of the log directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedLog {
    /// Everything below is durable: the log's end.
    pub recovery_point: Offset,
    /// First readable offset.
    pub log_start_offset: Offset,
    /// High watermark.
    pub high_watermark: Offset,
}

/// A deleted log whose files still lie in a renamed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedLog {
    /// The directory, `-delete` at the end of its name.
    pub directory: PathBuf,
}

impl Log {
    /// Completes the indexes, writes a producer snapshot and syncs everything, so that the next start has nothing to
    /// check. A sync that was begun elsewhere need not have ended: all that it covers is synced again.
    pub fn close(mut self) -> Result<ClosedLog, LogError> {
        self.ensure_online()?;
        let shared = self.shared.clone();
        let completed = self.active.complete_indexes(shared.files.disk().as_ref(), &shared.directory);
        self.fail(completed)?;
        self.take_snapshot()?;
        let strays = self.remove_stray_snapshots();
        self.fail(strays)?;
        let recovery_point = self.flush()?;
        self.let_go();
        Ok(ClosedLog {
            recovery_point,
            log_start_offset: self.log_start_offset(),
            high_watermark: self.high_watermark(),
        })
    }

    /// Ends the log without writing anything: after a storage failure, or when the process is to stop at once.
    pub fn abandon(self) {
        self.let_go();
    }

    fn let_go(&self) {
        self.shared.close();
        for segment in &self.shared.segments.load().0 {
            self.shared.files.close(segment);
        }
    }

    /// Deletes the log: its directory gets another name at once, which is atomic, and its files go with
    /// `DeletedLog::remove`. A start finds directories of that name and removes them too.
    pub fn delete(self, unique_id: &Uuid) -> Result<DeletedLog, LogError> {
        self.let_go();
        let directory = &self.shared.directory;
        let renamed = directory.with_file_name(renamed_dir(&self.partition, unique_id, DirKind::Delete));
        self.disk().rename(directory, &renamed).context("rename", directory)?;
        Ok(DeletedLog { directory: renamed })
    }
}

impl DeletedLog {
    /// A directory that a start found.
    pub fn found(directory: &Path) -> Self {
        DeletedLog { directory: directory.to_path_buf() }
    }

    /// Removes the files and the directory.
    pub fn remove(&self, disk: &dyn Disk) -> Result<(), StorageError> {
        let entries = match disk.list_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StorageError::new("list", &self.directory, error)),
        };
        for entry in entries {
            let path = self.directory.join(entry.name);
            remove_if_exists(disk, &path).context("remove", &path)?;
        }
        disk.remove_dir(&self.directory).context("remove", &self.directory)
    }
}
