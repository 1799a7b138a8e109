//! The owners' published state as metrics show it. Read at a scrape, on a thread that answers no requests.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base::NodeId;
use cluster::MetadataImage;
use partition_log::Disk;

use super::coordinator::GroupCoordinator;
use super::partition::Partitions;
use crate::observe::Metrics;
use crate::observe::cluster::{ClusterSource, Granularity, PartitionView};
use crate::observe::disks::{DiskSource, DiskView};
use crate::observe::groups::{CommittedView, GroupSource, GroupView};

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
    let (of_cluster, of_groups, offline) = (partitions.clone(), partitions.clone(), partitions);
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
        groups: Box::new(move || group_views(&groups)),
        partitions: Box::new(move || partition_views(&of_groups)),
        granularity,
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
        }
    };
    partitions.all().into_iter().map(view).collect()
}

fn group_views(groups: &GroupCoordinator) -> Vec<GroupView> {
    let view = |summary: coordinator::group::GroupSummary| GroupView {
        group: summary.group_id.clone(),
        members: summary.members,
        offsets: summary
            .offsets
            .into_iter()
            .map(|committed| CommittedView {
                topic: committed.topic,
                partition: committed.partition,
                offset: committed.offset,
            })
            .collect(),
    };
    groups.summaries_blocking().into_iter().map(view).collect()
}

fn disk_views(disk: &dyn Disk, log_dirs: &[PathBuf]) -> Vec<DiskView> {
    let view = |directory: &PathBuf| {
        let space = disk.space(directory).ok()?;
        let directory = directory.display().to_string();
        Some(DiskView { directory, total_bytes: space.total_bytes, free_bytes: space.free_bytes })
    };
    log_dirs.iter().filter_map(view).collect()
}
