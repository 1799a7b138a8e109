//! What an operator is told of logs whose disk refuses to work.

use partition_log::{AppendError, Appended, LogError};

use crate::runtime::partition::live::Partition;

/// The error with which appends begin to fail for the disk's sake: told once, and again when they succeeded meanwhile.
pub(super) fn first_refusal<'a>(
    refused_by_disk: &mut bool,
    outcomes: &'a [Result<Appended, AppendError>],
) -> Option<&'a AppendError> {
    let mut first = None;
    for outcome in outcomes {
        match outcome {
            Ok(_) => *refused_by_disk = false,
            Err(error @ (AppendError::Storage(_) | AppendError::Offline)) => {
                if !std::mem::replace(refused_by_disk, true) {
                    first = Some(error);
                }
            }
            Err(_) => {}
        }
    }
    first
}

/// Tells that records cannot be appended.
pub(super) fn report_refusal(partition: &Partition, error: &AppendError) {
    tracing::error!(
        topic = %partition.topic().name,
        partition = partition.index(),
        %error,
        "records cannot be appended; look at the disk and at the limit of open files, then restart the node if it goes on"
    );
}

/// Tells that a log takes no more records.
pub(super) fn report_failure(partition: &Partition, error: &LogError) {
    tracing::error!(
        topic = %partition.topic().name,
        partition = partition.index(),
        %error,
        "the partition's log failed and takes no more records; look at the disk, then restart the node, which recovers what was written"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_the_disk_is_told_once_until_an_append_succeeds() {
        let appended = || {
            let (first_offset, last_offset, log_append_time_ms, log_start_offset) = (0, 0, -1, 0);
            Ok(Appended { first_offset, last_offset, log_append_time_ms, log_start_offset, duplicate: false })
        };
        let mut refused = false;
        let mut told = |outcomes: &[Result<Appended, AppendError>]| first_refusal(&mut refused, outcomes).is_some();
        assert!(!told(&[appended(), Err(AppendError::Empty)]));
        assert!(told(&[Err(AppendError::Offline), Err(AppendError::Offline)]));
        assert!(!told(&[Err(AppendError::Offline)]));
        assert!(told(&[appended(), Err(AppendError::Offline)]));
    }
}
