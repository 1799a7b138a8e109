//! Following the metadata: the newest image, and what changed since the last one that was seen. Changes in between are
//! seen as one, so that a slow follower has less to do, not more.

use std::sync::Arc;

use cluster::{MetadataDelta, MetadataImage};
use tokio::sync::watch;

/// One follower's view.
#[derive(Debug, Clone)]
pub struct MetadataFollower {
    images: watch::Receiver<Arc<MetadataImage>>,
    seen: Arc<MetadataImage>,
}

impl MetadataFollower {
    /// Follows from an empty cluster on: the first change is everything that there is.
    pub fn from_nothing(images: watch::Receiver<Arc<MetadataImage>>) -> MetadataFollower {
        let mut images = images;
        images.mark_changed();
        MetadataFollower { images, seen: Arc::new(MetadataImage::empty()) }
    }

    /// Waits for the next image that differs from the one seen last. None when the quorum's member has ended.
    pub async fn changed(&mut self) -> Option<(Arc<MetadataImage>, MetadataDelta)> {
        self.images.changed().await.ok()?;
        let image = self.images.borrow_and_update().clone();
        let delta = MetadataDelta::between(&self.seen, &image);
        self.seen = image.clone();
        Some((image, delta))
    }
}
