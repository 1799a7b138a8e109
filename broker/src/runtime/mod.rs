//! Owners of live state: partition logs, coordinators, the controller. Each state has one owner; others hold handles and
//! published views.

pub mod answer_bytes;
pub mod controller;
pub mod coordinator;
pub mod fetch_sessions;
pub mod partition;
pub mod producer_ids;
pub mod series;
