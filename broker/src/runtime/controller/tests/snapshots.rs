//! Snapshots of the metadata: when they are made, what stays, and that a start from one leads to the same metadata.

use cluster::Record;
use cluster::image::MetadataDelta;

use super::super::store::{self, Payload, SnapshotId, StoreOptions, StoredBatch, snapshot};
use super::*;

/// Where the tests keep their metadata log.
const DIRECTORY: &str = "/data/__cluster_metadata-0";

fn found(disk: &SimDisk) -> Vec<SnapshotId> {
    snapshot::list(disk, Path::new(DIRECTORY)).unwrap()
}

/// Snapshots are made beside the commands; gives them when there are as many as wanted.
async fn wait_for_snapshots(disk: &SimDisk, wanted: impl Fn(&[SnapshotId]) -> bool) -> Vec<SnapshotId> {
    for _ in 0..10_000 {
        let now = found(disk);
        if wanted(&now) {
            return now;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    panic!("the snapshots are {:?}", found(disk));
}

#[tokio::test]
async fn a_snapshot_is_made_after_so_many_bytes_of_batches() {
    let disk = SimDisk::new();
    let sizes = Sizes { snapshot_bytes: 3_000, ..NO_SNAPSHOTS };
    let node = Node::start_in(Arc::new(disk.clone()), Path::new("/data"), 1, sizes).await;
    assert_eq!(found(&disk), []);
    // A topic of one partition is more than a hundred bytes in the log, the header of its batch included.
    for n in 0..30 {
        node.create(&format!("t{n}"), 1).await.unwrap();
    }
    let made = wait_for_snapshots(&disk, |made| !made.is_empty()).await;
    assert!(made[0].end_offset <= node.handle.image().offset + 1, "{made:?}");
    node.stop().await;
}

#[tokio::test]
async fn snapshots_stay_until_log_and_snapshots_are_too_large() {
    for (retention, kept) in [(None, 3..100), (Some(1), 1..2)] {
        let disk = SimDisk::new();
        let retention = Retention { bytes: retention, ms: None };
        let sizes = Sizes { snapshot_bytes: 1_000, retention };
        let node = Node::start_in(Arc::new(disk.clone()), Path::new("/data"), 1, sizes).await;
        for round in 1..=4 {
            let before = found(&disk).last().copied();
            for n in 0..10 {
                node.create(&format!("t{round}-{n}"), 2).await.unwrap();
            }
            wait_for_snapshots(&disk, |now| now.last().copied() > before).await;
        }
        node.stop().await;
        assert!(kept.contains(&found(&disk).len()), "{:?}", found(&disk));
        let node = Node::start_in(Arc::new(disk.clone()), Path::new("/data"), 2, sizes).await;
        assert_eq!(node.handle.image().topic_count(), 40);
        node.stop().await;
        let node = Node::start_in(Arc::new(disk), Path::new("/data"), 3, NO_SNAPSHOTS).await;
        assert_eq!(node.handle.image().topic_count(), 40);
        node.stop().await;
    }
}

#[tokio::test]
async fn a_snapshot_and_what_follows_it_make_the_same_image_as_the_whole_log() {
    let disk = SimDisk::new();
    let sizes = Sizes { snapshot_bytes: 2_000, ..NO_SNAPSHOTS };
    let node = Node::start_in(Arc::new(disk.clone()), Path::new("/data"), 1, sizes).await;
    for n in 0..40 {
        let topic = node.create(&format!("t{n}"), 2).await.unwrap();
        if n % 5 == 0 {
            node.handle.run(DeleteTopics { ids: vec![topic] }).await.unwrap()[0].clone().unwrap();
        }
    }
    let live: Vec<Record> = node.handle.image().records().collect();
    node.stop().await;

    let files = FileCache::new(Arc::new(disk.clone()), FILES_MAX);
    let opened = store::open(StoreOptions {
        log_dir: "/data".into(),
        files,
        clock: Arc::new(SystemClock::new()),
        segment_bytes: 1 << 20,
        segment_ms: i64::MAX,
        retention: sizes.retention,
        flushes: Arc::default(),
    });
    let opened = opened.unwrap();
    let (id, content) = opened.snapshot.unwrap();
    assert!(id.end_offset > 0 && id.end_offset < opened.end_offset, "{id}");
    let from_snapshot = image_after(content.records, &opened.batches);
    let everything = opened.handle.read(0, opened.end_offset).await.unwrap();
    assert_eq!(from_snapshot, image_after(Vec::new(), &everything));
    assert_eq!(from_snapshot, live);
}

/// The records of the image that some records and then those of batches make.
fn image_after(first: Vec<Record>, batches: &[StoredBatch]) -> Vec<Record> {
    let mut image = MetadataImage::empty();
    let mut delta = MetadataDelta::default();
    let later = batches.iter().filter_map(|batch| match &batch.payload {
        Payload::Records(records) => Some(records.to_vec()),
        Payload::Leader(_) | Payload::Voters(_) => None,
    });
    for record in first.into_iter().chain(later.flatten()) {
        image.replay(&record, &mut delta).unwrap();
    }
    image.records().collect()
}
