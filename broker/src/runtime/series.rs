//! The owners' published state as metrics show it. Read at a scrape, on a thread that answers no requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::{Clock, NodeId, Offset, PartitionIndex, TimestampMs};
use cluster::MetadataImage;
use partition_log::{Access, Bound, Disk, LogReader, ReadRequest, Records};
use record_batch::{BatchHeader, HEADER_LEN, TimestampType};

use super::coordinator::GroupCoordinator;
use super::partition::{Partition, Partitions};
use crate::observe::Metrics;
use crate::observe::cluster::{ClusterSource, Granularity, PartitionView};
use crate::observe::disks::{DiskSource, DiskView};
use crate::observe::groups::{CommittedView, GroupSource, GroupView};
use crate::observe::quorum::{QuorumSource, QuorumView};
use crate::observe::threads::{ThreadSource, WorkerTimes};
use crate::tasks::Tasks;

/// Batches of which a scrape reads the time, for the lag of groups in seconds; groups beyond that have none in that scrape.
const LAG_READS_MAX: usize = 10_000;

/// What the series are read from.
pub struct Shown {
    /// This node.
    pub node_id: NodeId,
    /// The metadata as of now.
    pub image: Arc<ArcSwap<MetadataImage>>,
    /// The partitions of this node.
    pub partitions: Arc<Partitions>,
    /// The groups that this node coordinates.
    pub groups: Arc<GroupCoordinator>,
    /// Whether this node is the active controller.
    pub is_active_controller: Box<dyn Fn() -> bool + Send + Sync>,
    /// This node's member of the metadata quorum.
    pub quorum: Box<dyn Fn() -> QuorumView + Send + Sync>,
    /// What runs the tasks of the node.
    pub tasks: Tasks,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// `min.insync.replicas` of the broker.
    pub min_insync_replicas: usize,
    /// `monedula.metrics.topic.granularity`.
    pub granularity: Granularity,
    /// The disk, and the data directories on it.
    pub disk: Arc<dyn Disk>,
    /// The data directories.
    pub log_dirs: Vec<PathBuf>,
}

/// Adds the series of the cluster, the partitions, the groups and the data directories to the node's metrics.
pub fn show(metrics: &Metrics, shown: Shown) {
    let Shown { granularity, partitions, groups, image, disk, log_dirs, .. } = shown;
    metrics.set_granularity(granularity);
    let (of_cluster, of_groups, unread, offline) =
        (partitions.clone(), partitions.clone(), partitions.clone(), partitions);
    let (clock, tasks) = (shown.clock, shown.tasks);
    metrics.add_source(QuorumSource::new(clock.clone(), shown.quorum));
    metrics.add_source(ThreadSource::new(clock.clone(), move || {
        let (busy, workers) = tasks.worker_times();
        WorkerTimes { busy, workers }
    }));
    metrics.add_source(ClusterSource {
        node_id: shown.node_id,
        image: Box::new(move || image.load_full()),
        partitions: Box::new(move || partition_views(&of_cluster)),
        offline_partitions: Box::new(move || offline.offline_count()),
        is_active_controller: shown.is_active_controller,
        min_insync_replicas_default: shown.min_insync_replicas,
        granularity,
    });
    metrics.add_source(GroupSource {
        groups: Box::new(move || group_views(&groups, &unread)),
        partitions: Box::new(move || partition_views(&of_groups)),
        granularity,
        clock,
    });
    let directories = log_dirs.len();
    metrics.add_source(DiskSource { read: Box::new(move || disk_views(disk.as_ref(), &log_dirs)), directories });
}

fn partition_views(partitions: &Partitions) -> Vec<PartitionView> {
    let view = |partition: Arc<super::partition::Partition>| {
        let reader = partition.reader();
        let offsets = reader.offsets();
        PartitionView {
            topic: partition.topic().name.clone(),
            partition: partition.index(),
            log_start_offset: offsets.log_start_offset,
            log_end_offset: offsets.log_end_offset,
            high_watermark: offsets.high_watermark,
            size_bytes: reader.size_bytes(),
            segments: reader.segment_count(),
            producers: partition.producer_count(),
        }
    };
    partitions.all().into_iter().map(view).collect()
}

fn group_views(groups: &GroupCoordinator, partitions: &Partitions) -> Vec<GroupView> {
    let held: HashMap<(Arc<str>, PartitionIndex), Arc<Partition>> =
        partitions.all().into_iter().map(|found| ((found.topic().name.clone(), found.index()), found)).collect();
    let mut reads_left = LAG_READS_MAX;
    let mut unread_since_ms = |topic: &Arc<str>, index: PartitionIndex, offset: Offset| {
        let partition = held.get(&(topic.clone(), index))?;
        let offset = offset.max(partition.reader().log_start_offset());
        if offset >= partition.reader().high_watermark() || reads_left == 0 {
            return None;
        }
        reads_left -= 1;
        batch_time_ms(partition.reader(), offset)
    };
    let mut view = |summary: coordinator::group::GroupSummary| GroupView {
        group: summary.group_id.clone(),
        members: summary.members,
        offsets: summary
            .offsets
            .into_iter()
            .map(|committed| CommittedView {
                unread_since_ms: unread_since_ms(&committed.topic, committed.partition, committed.offset),
                topic: committed.topic,
                partition: committed.partition,
                offset: committed.offset,
            })
            .collect(),
    };
    groups.summaries_blocking().into_iter().map(&mut view).collect()
}

/// Time of the batch that holds an offset: that of its append where the broker notes it, or else the one that the producer
/// gave to its first record. Reads the batch's header alone. Waits for the disk.
fn batch_time_ms(reader: &LogReader, offset: Offset) -> Option<TimestampMs> {
    let request = ReadRequest { offset, max_bytes: HEADER_LEN, min_one_batch: true, bound: Bound::HighWatermark };
    let Records::File(range) = reader.fetch(&request, Access::Wait, HEADER_LEN).ok()?.records else { return None };
    let mut head = [0; HEADER_LEN];
    range.file.read_at(range.position, &mut head).ok()?;
    let header = BatchHeader::parse(&head).ok()?;
    let time = match header.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp,
        TimestampType::LogAppendTime => header.max_timestamp,
    };
    // Records of old producers may have no time.
    (time >= 0).then_some(time)
}

fn disk_views(disk: &dyn Disk, log_dirs: &[PathBuf]) -> Vec<DiskView> {
    let view = |directory: &PathBuf| {
        let space = disk.space(directory).ok()?;
        let directory = directory.display().to_string();
        Some(DiskView { directory, total_bytes: space.total_bytes, free_bytes: space.free_bytes })
    };
    log_dirs.iter().filter_map(view).collect()
}
