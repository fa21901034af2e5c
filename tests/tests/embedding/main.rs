//! The embedder from outside: what a start refuses, what readiness says, what is found by meaning, and how one model follows another.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod change;
mod meaning;
mod start;
