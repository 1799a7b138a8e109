//! What an operator sees from outside: metrics, health, logs. The only module that names the crates prometheus and axum.
//! Requests and partitions count into plain atomics here; everything else is read, at the moment of a scrape, from the
//! views that the owners of state publish anyway.

pub mod cleaner;
pub mod cluster;
pub mod connections;
pub mod disks;
pub mod family;
pub mod groups;
pub mod health;
pub mod histogram;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod process;
pub mod quorum;
pub mod requests;
pub mod scrub;
pub mod threads;
pub mod topics;
pub mod waits;
pub mod window;

pub use connections::OpenConnection;
pub use family::{Families, Family, Source};
pub use health::{BrokerState, Health};
pub use histogram::DurationHistogram;
pub use metrics::{Metrics, RequestTimer};
pub use scrub::ScrubCounts;
pub use topics::{TopicCounter, TopicMetrics};
pub use waits::{QueuedRequests, Wait, Waiting};
