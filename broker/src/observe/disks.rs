//! Space of the volumes that hold the data directories.

use super::family::{Families, Source};

/// Space of one data directory's volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskView {
    /// The directory as the settings name it.
    pub directory: String,
    /// Bytes of the volume.
    pub total_bytes: u64,
    /// Bytes that this node could still write.
    pub free_bytes: u64,
}

/// The series of the data directories.
pub struct DiskSource {
    /// Asks the system. Directories that do not answer are left out.
    pub read: Box<dyn Fn() -> Vec<DiskView> + Send + Sync>,
    /// Number of directories that the node should have.
    pub directories: usize,
}

impl Source for DiskSource {
    fn collect(&self, families: &mut Families) {
        let views = (self.read)();
        for view in &views {
            let labels = [("dir", &*view.directory)];
            families.gauge("monedula_disk_total_bytes", "Bytes of the volume").row(&labels, view.total_bytes as f64);
            families
                .gauge("monedula_disk_free_bytes", "Bytes that can be written")
                .row(&labels, view.free_bytes as f64);
        }
        families
            .gauge("kafka_log_logmanager_offlinelogdirectorycount", "Data directories that do not answer")
            .row(&[], self.directories.saturating_sub(views.len()) as f64);
    }
}
