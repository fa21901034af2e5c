//! What every client may rely on: calls, answers and refusals of the HTTP interface, on every store.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod bad_bodies;
mod bad_requests;
mod cut;
mod dates;
mod idempotency;
mod import;
mod isolation;
mod loopback;
mod memories;
mod operations;
mod overload;
mod queue;
mod sessions;
mod startup;
mod tls;
mod turns;
