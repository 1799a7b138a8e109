//! The black-box tests in one binary, one module per API and area, so that linking happens once and one broker is shared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail tests")]

mod api_versions;
