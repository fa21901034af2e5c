//! What is told in one session is known in the next: by the stream, in the prompt, and only to its owner.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod change;
mod consolidation;
mod extraction;
mod fading;
mod forgetting;
mod instructions;
mod learning;
mod offline;
mod preferences;
mod restraint;
mod revision;
mod window;
