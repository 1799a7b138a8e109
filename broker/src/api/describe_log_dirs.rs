//! DescribeLogDirs (35), versions 1-5: the data directories of this broker, the size of each partition in them, and the
//! room on their volumes (KIP-113, KIP-827 room, KIP-1066 cordoned directories, of which there are none here yet).
//! Partitions that are being moved between directories are not there either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::{ApiKey, TopicName};
use kafka_protocol::protocol::StrBytes;
use partition_log::{Disk, RealDisk};

use super::{Api, Context, Entry, Outcome};
use crate::runtime::partition::Partition;
use crate::security::{Cluster, Operation};
use crate::tasks::Tasks;
use crate::wire::clamped::Clamped;
use crate::wire::messages::describe_log_dirs::{DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic};
use crate::wire::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

/// The row of the table.
pub const ENTRY: Entry = Entry::of::<DescribeLogDirs>("DescribeLogDirs", 1..=5);

struct DescribeLogDirs;

impl Api for DescribeLogDirs {
    const KEY: i16 = ApiKey::DescribeLogDirs as i16;
    type Request = DescribeLogDirsRequest;
    type Response = DescribeLogDirsResponse;

    async fn handle(ctx: Context, Clamped(request): Self::Request) -> Outcome<DescribeLogDirsResponse> {
        if ctx.may(Operation::Describe, Cluster).is_err() {
            // Older versions cannot say why and show nothing.
            let code = if ctx.version >= 3 { ResponseError::ClusterAuthorizationFailed.code() } else { 0 };
            return Outcome::Reply(DescribeLogDirsResponse { error_code: code, ..Default::default() });
        }
        let dirs = &ctx.node.config.storage.log_dirs;
        let mut by_dir = group(dirs.len(), &ctx.node.partitions.all(), request.topics.as_deref());
        let volumes = volumes(dirs.clone()).await;
        let results = volumes.into_iter().enumerate().map(|(index, volume)| {
            let topics = by_dir.get_mut(index).map(std::mem::take).unwrap_or_default();
            describe(volume, topics)
        });
        Outcome::Reply(DescribeLogDirsResponse { results: results.collect(), ..Default::default() })
    }
}

type Topics = BTreeMap<Arc<str>, Vec<DescribeLogDirsPartition>>;

/// The partitions that were asked for, by the place of their directory in `log.dirs`.
fn group(dirs: usize, partitions: &[Arc<Partition>], asked: Option<&[DescribableLogDirTopic]>) -> Vec<Topics> {
    let mut by_dir = vec![Topics::new(); dirs];
    for partition in partitions {
        let name = &partition.topic().name;
        let wanted = asked.is_none_or(|topics| is_asked(topics, name, partition.index()));
        let (true, Some(topics)) = (wanted, by_dir.get_mut(partition.log_dir())) else { continue };
        topics.entry(name.clone()).or_default().push(DescribeLogDirsPartition {
            partition_index: partition.index(),
            partition_size: i64::try_from(partition.reader().size_bytes()).unwrap_or(i64::MAX),
            ..Default::default()
        });
    }
    by_dir
}

fn is_asked(topics: &[DescribableLogDirTopic], name: &str, index: i32) -> bool {
    topics.iter().any(|topic| topic.topic.as_str() == name && topic.partitions.contains(&index))
}

/// A directory and the total and free bytes of its volume, if they can be had.
struct Volume {
    path: PathBuf,
    bytes: Option<(u64, u64)>,
}

/// Asking a file system for its room may wait for a device.
async fn volumes(dirs: Vec<PathBuf>) -> Vec<Volume> {
    let ask = move || {
        let one = |path: PathBuf| Volume { bytes: room(&path), path: std::path::absolute(&path).unwrap_or(path) };
        dirs.into_iter().map(one).collect()
    };
    Tasks::run_aside(ask).await.unwrap_or_default()
}

fn room(path: &Path) -> Option<(u64, u64)> {
    RealDisk.space(path).ok().map(|space| (space.total_bytes, space.free_bytes))
}

fn describe(volume: Volume, topics: Topics) -> DescribeLogDirsResult {
    let log_dir = StrBytes::from_string(volume.path.to_string_lossy().into_owned());
    let Some((total, free)) = volume.bytes else {
        return DescribeLogDirsResult {
            error_code: ResponseError::KafkaStorageError.code(),
            log_dir,
            ..Default::default()
        };
    };
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let topics = topics.into_iter().map(|(name, mut partitions)| {
        partitions.sort_unstable_by_key(|partition| partition.partition_index);
        DescribeLogDirsTopic { name: TopicName(StrBytes::from_string(name.to_string())), partitions }
    });
    DescribeLogDirsResult {
        log_dir,
        topics: topics.collect(),
        total_bytes: bytes(total),
        usable_bytes: bytes(free),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::Encodable;

    use super::*;

    #[test]
    fn a_directory_that_cannot_be_used_is_a_storage_error() {
        let volume = Volume { path: PathBuf::from("/gone"), bytes: None };
        let result = describe(volume, Topics::new());
        assert_eq!((result.error_code, result.total_bytes), (ResponseError::KafkaStorageError.code(), -1));
    }

    #[test]
    fn only_the_partitions_asked_for_are_shown() {
        let topic = DescribableLogDirTopic::default()
            .with_topic(TopicName(StrBytes::from_static_str("a")))
            .with_partitions(vec![1]);
        assert!(is_asked(std::slice::from_ref(&topic), "a", 1));
        assert!(!is_asked(std::slice::from_ref(&topic), "a", 0));
        assert!(!is_asked(&[topic], "b", 1));
    }

    #[test]
    fn the_answer_encodes_at_every_version_served() {
        let topics = Topics::from([(Arc::from("a"), vec![DescribeLogDirsPartition::default()])]);
        let result = describe(Volume { path: PathBuf::from("/d"), bytes: Some((2, 1)) }, topics);
        let response = DescribeLogDirsResponse { results: vec![result], ..Default::default() };
        for version in 1..=5 {
            let mut bytes = bytes::BytesMut::new();
            response.encode(&mut bytes, version).unwrap();
            assert_eq!(bytes.len(), response.compute_size(version).unwrap());
        }
    }
}
