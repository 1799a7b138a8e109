//! The black-box tests in one binary, one module per API and area, so that linking happens once and one broker is shared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail tests")]

mod api_versions;
mod bad_input;
mod compaction;
mod compaction_groups;
mod configs;
mod connection;
mod crash;
mod damage;
mod every_api;
mod every_version;
mod fetch;
mod fetch_sessions;
mod files;
mod flow;
mod group_admin;
mod group_offsets;
mod group_rounds;
mod groups;
mod idempotence;
mod list_offsets;
mod metadata;
mod offsets_topic;
mod ours_only;
mod produce;
mod records;
mod records_api;
mod support;
mod topics;
