//! Black-box protocol tests.
