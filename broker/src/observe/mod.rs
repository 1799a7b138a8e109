//! What an operator sees from outside: metrics, health, logs. The only module that names the crates prometheus and axum.
//! Requests and partitions count into plain atomics here; everything else is read, at the moment of a scrape, from the
//! views that the owners of state publish anyway.

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
pub mod requests;
pub mod topics;

pub use connections::OpenConnection;
pub use family::{Families, Family, Source};
pub use health::{BrokerState, Health};
pub use metrics::{Metrics, RequestTimer};
pub use topics::{TopicCounter, TopicMetrics};
