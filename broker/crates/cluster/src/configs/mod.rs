//! What can be set: every broker, topic, group and client-metrics setting of Apache Kafka 4.4 and our own, the values they
//! take, how they are layered, altered and described. Pure: it knows names and texts, no files, wire types or clock.

pub mod alter;
pub mod broker;
pub mod client_metrics;
pub mod describe;
pub mod group;
pub mod layers;
pub mod rule;
pub mod setting;
pub mod topic;
pub mod value;

pub use alter::{AlterError, AlterOp, Alteration, Change};
pub use describe::{ConfigSource, DescribedEntry, Synonym};
pub use layers::{BrokerLayers, Lookup};
pub use setting::{ConfigKind, DefaultValue, Setting, UpdateMode};
pub use topic::{CompressionType, TimestampType, TopicConfig, TopicConfigError};
pub use value::{InvalidValue, Value, ValueType};
