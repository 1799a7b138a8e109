//! Monedula: a broker that speaks Kafka's wire protocol and keeps Kafka's files. This package is the shell (sockets,
//! tasks, settings, consensus); what can be pure lives in the crates below `crates/`.

pub mod api;
pub mod cli;
pub mod config;
pub mod net;
pub mod node;
pub mod observe;
pub mod runtime;
pub mod security;
pub mod server;
pub mod storage;
pub mod tasks;
pub mod wire;
