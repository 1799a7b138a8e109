//! Committed offsets (Kafka: OffsetMetadataManager): `store` keeps them, `commit`, `fetch`, `delete` and `expire` rule
//! who may change or see which, and when they go.

mod commit;
mod delete;
mod expire;
mod fetch;
mod store;

pub(super) use store::OffsetStore;
