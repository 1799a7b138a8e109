//! The broker as a library.
