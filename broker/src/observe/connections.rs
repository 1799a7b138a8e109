//! Open connections by listener.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::family::{Families, Source};

/// Counts of open connections, one for each listener that ever had one.
#[derive(Default)]
pub(super) struct Connections(RwLock<BTreeMap<Arc<str>, Arc<AtomicU64>>>);

/// One open connection; counted until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<AtomicU64>);

impl Connections {
    pub(super) fn opened(&self, listener: &Arc<str>) -> OpenConnection {
        let known = self.0.read().get(listener).cloned();
        let count = known.unwrap_or_else(|| self.0.write().entry(listener.clone()).or_default().clone());
        count.fetch_add(1, Ordering::Relaxed);
        OpenConnection(count)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Source for Arc<Connections> {
    fn collect(&self, families: &mut Families) {
        for (listener, open) in self.0.read().iter() {
            families
                .gauge("kafka_server_socket_server_metrics_connection_count", "Open connections")
                .row(&[("listener", listener)], open.load(Ordering::Relaxed) as f64);
        }
    }
}
