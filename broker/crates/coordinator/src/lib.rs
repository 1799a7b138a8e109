//! Coordinators as pure machines: a command and the time go in; records, answers and deadlines come out. Depends on
//! `base` only; knows no task, socket, file or wire message. The host of a machine appends its records to a partition
//! of an internal topic, applies them, and hands out the answers when the records are committed.

pub mod group;
pub mod machine;
pub mod record;

pub use machine::{Decision, Event, Machine, Now, Ticket};
