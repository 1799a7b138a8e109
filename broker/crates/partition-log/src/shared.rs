//! What the owner of a log publishes and its readers see: the list of segments, the offsets that bound reads, the leader
//! epochs. Nothing here is locked.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering, fence};

use arc_swap::ArcSwap;
use base::Offset;

use crate::epochs::Epochs;
use crate::file_cache::FileCache;
use crate::segment::Segment;

/// Stands for "no open transaction" where an offset is kept.
const NONE_UNSTABLE: Offset = Offset::MAX;

/// Where a batch begins or the log ends: in which segment and at which byte. Positions of one log can be compared and
/// their distance tells how many bytes lie between them (Kafka: LogOffsetMetadata).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The offset.
    pub offset: Offset,
    /// Base offset of the segment.
    pub segment_base_offset: Offset,
    /// Byte in the segment.
    pub position: u64,
}

/// The segments of a log by rising base offset; never empty.
#[derive(Debug)]
pub(crate) struct SegmentList(pub(crate) Vec<Arc<Segment>>);

impl SegmentList {
    /// Index of the last segment that begins at or before `offset`.
    pub(crate) fn floor(&self, offset: Offset) -> Option<usize> {
        self.0.partition_point(|segment| segment.base_offset() <= offset).checked_sub(1)
    }

    /// Whether this very segment is part of the log.
    pub(crate) fn contains(&self, segment: &Arc<Segment>) -> bool {
        self.floor(segment.base_offset()).is_some_and(|at| Arc::ptr_eq(&self.0[at], segment))
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.0.iter().map(|segment| segment.size_bytes()).sum()
    }
}

/// The published state of one log.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) files: Arc<FileCache>,
    pub(crate) directory: PathBuf,
    pub(crate) segments: ArcSwap<SegmentList>,
    pub(crate) epochs: ArcSwap<Epochs>,
    log_start_offset: AtomicI64,
    high_watermark: AtomicI64,
    recovery_point: AtomicI64,
    first_unstable_offset: AtomicI64,
    /// Odd while the owner changes the end; readers of end and size together look at it before and after.
    end_version: AtomicU64,
    log_end_offset: AtomicI64,
    active_base_offset: AtomicI64,
    active_size_bytes: AtomicU64,
    /// Counts truncations, and segments put in place of others: bytes read across one may be of two lives of the same
    /// place.
    truncations: AtomicU64,
    closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(files: Arc<FileCache>, directory: &Path, segments: Vec<Arc<Segment>>, epochs: Epochs) -> Self {
        Shared {
            files,
            directory: directory.to_path_buf(),
            segments: ArcSwap::from_pointee(SegmentList(segments)),
            epochs: ArcSwap::from_pointee(epochs),
            log_start_offset: AtomicI64::new(0),
            high_watermark: AtomicI64::new(0),
            recovery_point: AtomicI64::new(0),
            first_unstable_offset: AtomicI64::new(NONE_UNSTABLE),
            end_version: AtomicU64::new(0),
            log_end_offset: AtomicI64::new(0),
            active_base_offset: AtomicI64::new(0),
            active_size_bytes: AtomicU64::new(0),
            truncations: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn log_start_offset(&self) -> Offset {
        self.log_start_offset.load(Ordering::Acquire)
    }

    pub(crate) fn set_log_start_offset(&self, offset: Offset) {
        self.log_start_offset.store(offset, Ordering::Release);
    }

    pub(crate) fn log_end_offset(&self) -> Offset {
        self.log_end_offset.load(Ordering::Acquire)
    }

    pub(crate) fn high_watermark(&self) -> Offset {
        self.high_watermark.load(Ordering::Acquire)
    }

    pub(crate) fn set_high_watermark(&self, offset: Offset) {
        self.high_watermark.store(offset, Ordering::Release);
    }

    pub(crate) fn recovery_point(&self) -> Offset {
        self.recovery_point.load(Ordering::Acquire)
    }

    pub(crate) fn set_recovery_point(&self, offset: Offset) {
        self.recovery_point.store(offset, Ordering::Release);
    }

    /// The first offset that readers of committed records do not see.
    pub(crate) fn last_stable_offset(&self) -> Offset {
        self.first_unstable_offset.load(Ordering::Acquire).min(self.high_watermark())
    }

    pub(crate) fn set_first_unstable_offset(&self, offset: Option<Offset>) {
        self.first_unstable_offset.store(offset.unwrap_or(NONE_UNSTABLE), Ordering::Release);
    }

    /// Publishes the end of the log. Only the owner calls this.
    pub(crate) fn set_end(&self, log_end_offset: Offset, active: &Segment) {
        let version = self.end_version.load(Ordering::Relaxed);
        self.end_version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.active_base_offset.store(active.base_offset(), Ordering::Relaxed);
        self.active_size_bytes.store(active.size_bytes(), Ordering::Relaxed);
        self.log_end_offset.store(log_end_offset, Ordering::Release);
        self.end_version.store(version + 2, Ordering::Release);
    }

    /// The end of the log with its place.
    pub(crate) fn end_position(&self) -> LogPosition {
        loop {
            let before = self.end_version.load(Ordering::Acquire);
            let end = LogPosition {
                offset: self.log_end_offset.load(Ordering::Acquire),
                segment_base_offset: self.active_base_offset.load(Ordering::Relaxed),
                position: self.active_size_bytes.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.end_version.load(Ordering::Relaxed) {
                return end;
            }
            std::hint::spin_loop();
        }
    }

    pub(crate) fn truncations(&self) -> u64 {
        self.truncations.load(Ordering::Acquire)
    }

    /// Says that bytes below the end are about to go.
    pub(crate) fn begin_truncation(&self) {
        self.truncations.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
