//! The harness of the black-box tests: it starts a broker, speaks Kafka's protocol to it over TCP and never links the broker's code.
//! Uses: std's blocking sockets and processes, kafka-protocol for the typed messages, nothing of this workspace.
//!
//! `TARGET=ours` (the default) runs the binary of this workspace, `TARGET=kafka` Apache Kafka 4.4. See README.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a step that fails is a test that fails")]

pub mod batch;
pub mod broker;
pub mod client;
pub mod codec;
pub mod codes;
pub mod group;
pub mod ops;
pub mod primitive;
pub mod settings;
pub mod snappy;

pub use batch::{Batch, Compression, Record};
pub use broker::{Broker, Target};
pub use client::{Client, ReadError};

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static NAMES: AtomicU32 = AtomicU32::new(0);

/// A name that no other test of this run uses, so that tests can share a broker.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", NAMES.fetch_add(1, Ordering::Relaxed))
}

/// Asks `probe` every 50 ms until it gives a value, and fails the test with `what` when `limit` has passed.
pub fn eventually<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
