//! The embedder from outside: what a start refuses, what readiness says.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod start;
