//! The files that the process may have open, and who may have how many of them. Numbers alone.

/// Files kept for neither segments nor connections: the metadata, indexes, checkpoints, the sockets of this node.
const FILES_KEPT_FREE: u64 = 256;
/// Most segments kept open at once.
const OPEN_SEGMENTS_MAX: u64 = 100_000;

/// How the files are shared out that the process may have open, so that no number of connections takes those of the
/// logs: a log that cannot open its files is offline, and without those of the metadata the node ends.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// Segments that are kept open at once.
    pub segments: usize,
    /// Most connections.
    pub connections: usize,
}

impl OpenFiles {
    /// Shares out `open_files_max` files.
    pub fn share(open_files_max: u64) -> OpenFiles {
        let shared = open_files_max - FILES_KEPT_FREE.min(open_files_max / 4);
        let segments = (shared / 2).min(OPEN_SEGMENTS_MAX);
        let count = |files: u64| usize::try_from(files).unwrap_or(usize::MAX);
        OpenFiles { segments: count(segments), connections: count(shared - segments) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_segments_leave_files_for_all_else() {
        assert_eq!(OpenFiles::share(256), OpenFiles { segments: 96, connections: 96 });
        assert_eq!(OpenFiles::share(1024), OpenFiles { segments: 384, connections: 384 });
        assert_eq!(OpenFiles::share(1 << 20), OpenFiles { segments: 100_000, connections: 948_320 });
    }
}
