//! The owners of live state: partitions, coordinators, the controller. Each has one writer, reached by a handle.

pub mod coordinator;
