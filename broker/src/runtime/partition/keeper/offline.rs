//! Logs that cannot be opened, and directories that belong to nobody: nothing of them is cut or removed before an operator
//! has decided (docs/damaged-partitions.md).

use base::TopicPartition;
use partition_log::names::{ACCEPT_DATA_LOSS, DirKind, partition_dir, renamed_dir};
use partition_log::{DeletedLog, OpenError, RecoveryReport};

use super::Keeper;

impl Keeper {
    /// Tells the operator, once, and sees to it that the next start knows what was synced.
    pub(super) fn note_offline(&mut self, partition: &TopicPartition, dir: usize, error: &OpenError) {
        let home = self.settings.log_dirs[dir].path.join(partition_dir(partition));
        let mut synced = 0;
        match error {
            OpenError::Corrupt { path, position, offset, reason } => {
                synced = offset.saturating_add(1);
                let accept = home.join(ACCEPT_DATA_LOSS);
                tracing::error!(
                    %partition, file = %path.display(), offset, position, reason,
                    "records that were synced are damaged; the partition is offline and nothing was changed, others \
                     serve on. Put back a good copy of the file and restart; or delete the topic; or, to lose everything \
                     from this offset on, make the empty file {} and restart", accept.display()
                );
            }
            OpenError::OldFormat { path, position, magic } => tracing::error!(
                %partition, file = %path.display(), position, magic,
                "the segment holds records of a message format from before Kafka 0.11, which is not read; the partition \
                 is offline and nothing was changed, others serve on. Copy the topic with a broker that reads it, whose \
                 clients write the present format, or delete the topic"
            ),
            OpenError::Storage(_) | OpenError::File(_) | OpenError::OtherTopic { .. } => tracing::error!(
                %partition, %error, directory = %home.display(),
                "the log cannot be opened; the partition is offline, others serve on. Look at the disk and at the rights \
                 of the directory, then restart the node"
            ),
        }
        self.checkpoints.keep(dir, partition, synced);
    }

    /// Renames the directory of a partition that is not this node's; it is kept (Kafka: LogManager, stray partitions).
    pub(super) fn set_stray_aside(&self, partition: &TopicPartition, dir: usize) {
        let home = &self.settings.log_dirs[dir].path;
        let stray = renamed_dir(partition, &self.settings.entropy.uuid(), DirKind::Stray);
        tracing::warn!(
            %partition,
            "the cluster assigns this partition elsewhere or does not know its topic; its directory is kept as {stray}"
        );
        let renamed = self.settings.files.disk().rename(&home.join(partition_dir(partition)), &home.join(&stray));
        if let Err(error) = renamed {
            tracing::error!(%partition, %error, "the directory cannot be renamed");
        }
    }

    /// Deletes a log that was never opened.
    pub(super) fn delete_offline(&self, partition: &TopicPartition, delay_ms: i64) {
        let disk = self.settings.files.disk();
        for dir in &self.settings.log_dirs {
            let home = dir.path.join(partition_dir(partition));
            if !matches!(disk.metadata(&home), Ok(Some(_))) {
                continue;
            }
            let renamed = dir.path.join(renamed_dir(partition, &self.settings.entropy.uuid(), DirKind::Delete));
            match disk.rename(&home, &renamed) {
                Ok(()) => self.remove_later(DeletedLog::found(&renamed), delay_ms),
                Err(error) => tracing::error!(%partition, %error, "the log cannot be deleted"),
            }
        }
    }
}

/// Tells what recovery found; nothing of a log that was closed in order.
pub(super) fn tell_recovery(partition: &TopicPartition, report: &RecoveryReport) {
    if report.truncated_bytes > 0 || report.removed_segments > 0 {
        tracing::warn!(
            %partition, segments = report.recovered_segments, bytes = report.scanned_bytes,
            cut_bytes = report.truncated_bytes, removed_segments = report.removed_segments,
            aside_segments = report.aside_segments,
            "log recovered; its end was torn and is cut. Segments behind it that held records are kept, .aside at the \
             end of their names, and may be removed once nobody misses a record"
        );
    } else if report.scanned_bytes > 0 {
        let (segments, bytes) = (report.recovered_segments, report.scanned_bytes);
        tracing::info!(%partition, segments, bytes, "log recovered");
    }
    if report.missing_records > 0 {
        tracing::error!(
            %partition, missing = report.missing_records,
            "records that were synced are gone: files are missing or shorter than they were. The partition serves what \
             is left; look for files that were removed by hand, and at the disk"
        );
    }
    if report.epochs_rebuilt {
        tracing::warn!(%partition, "leader-epoch-checkpoint was lost or damaged and is made again from the records");
    }
    if report.topic_id_rewritten {
        tracing::warn!(%partition, "partition.metadata was damaged and is written again");
    }
}
