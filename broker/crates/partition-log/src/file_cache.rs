//! Open files of all logs of a node, bounded: a log that is not used holds no file, and a node with many logs stays
//! below its limit of descriptors. The one in use longest ago (by a clock hand, not exactly) is closed first.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::read_buffers::ReadBuffers;
use crate::segment::Segment;

/// A segment's open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: Arc<dyn DiskFile>,
}

/// The bounded set of open segment files. Hits take no lock; an opening or closing takes a short one.
#[derive(Debug)]
pub struct FileCache {
    disk: Arc<dyn Disk>,
    open_max: usize,
    ring: Mutex<VecDeque<Weak<Segment>>>,
    buffers: Arc<ReadBuffers>,
}

impl FileCache {
    /// A cache that keeps at most `open_max` segment files open.
    pub fn new(disk: Arc<dyn Disk>, open_max: usize) -> Arc<Self> {
        Arc::new(FileCache {
            disk,
            open_max: open_max.max(1),
            ring: Mutex::new(VecDeque::new()),
            buffers: Arc::new(ReadBuffers::default()),
        })
    }

    /// The disk whose files it opens.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Memory for reads.
    pub(crate) fn buffers(&self) -> &Arc<ReadBuffers> {
        &self.buffers
    }

    /// Lets go of memory that reads have left for the next; worth a call when the node has become quiet.
    pub fn release_read_buffers(&self) {
        self.buffers.release();
    }

    /// Files open now.
    pub fn open_count(&self) -> usize {
        self.ring.lock().len()
    }

    /// Opens a segment's file and closes others when there are too many. The file is opened for writing whenever it
    /// may be: who only reads and who writes share it.
    pub(crate) fn open(&self, segment: &Arc<Segment>, directory: &Path) -> io::Result<Arc<OpenFile>> {
        let opened = self.disk.open(&segment.log_path(directory), OpenMode::Existing)?;
        let opened = Arc::new(OpenFile { file: opened });
        let mut ring = self.ring.lock();
        if let Some(other) = segment.open_file() {
            return Ok(other);
        }
        self.make_room(&mut ring);
        segment.set_open_file(Some(opened.clone()));
        ring.push_back(Arc::downgrade(segment));
        Ok(opened)
    }

    fn make_room(&self, ring: &mut VecDeque<Weak<Segment>>) {
        // Every segment gets one more round for having been used; after two rounds the oldest goes whatever it did.
        let mut passes_left = ring.len();
        while ring.len() >= self.open_max {
            let Some(oldest) = ring.pop_front() else { return };
            let Some(segment) = oldest.upgrade() else { continue };
            if passes_left > 0 && segment.take_used() {
                passes_left -= 1;
                ring.push_back(oldest);
            } else {
                segment.release();
            }
        }
    }

    /// Closes the file of a segment that is no longer used.
    pub(crate) fn close(&self, segment: &Arc<Segment>) {
        if segment.open_file().is_none() {
            // Most logs of a node are idle, and a look through the ring for each would cost.
            segment.release();
            return;
        }
        let mut ring = self.ring.lock();
        segment.release();
        ring.retain(|open| open.strong_count() > 0 && !std::ptr::eq(open.as_ptr(), Arc::as_ptr(segment)));
    }
}
