//! Rules of the group coordinator: commands in, records and answers out.

#![cfg(test)]

mod harness;

mod expiry;
mod joining;
mod leaving;
mod loading;
mod offsets;
mod replay_is_live;
mod static_members;
mod views;
