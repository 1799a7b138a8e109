//! Classic groups (Kafka: ClassicGroup and the classic half of GroupMetadataManager). `state` is a group and its
//! questions; a `Draft` is a copy of one group that an operation changes step by step, and that the machine then takes
//! over whole. Members are shared between a group and its drafts, so that a draft costs one pointer per member.

mod draft;
mod expire;
mod join;
mod leave;
mod state;
mod sync;

pub(super) use draft::Draft;
pub use state::State;
pub(super) use state::{ClassicGroup, Member};
