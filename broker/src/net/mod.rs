//! From sockets to frames and back: listeners, connections, the byte budget that all of them share.
//! Knows nothing of what a frame says beyond its length and its API key.

pub mod budget;
pub mod connection;
pub mod frame;
pub mod listener;
pub mod open_files;
pub mod send;
