//! The API document: what the server serves is what the repository holds, it is well-formed by other people's rules, it breaks no client of an
//! earlier release, and the SDKs that are generated from it hold conversations with the running server.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod compatible;
mod examples;
mod fuzz;
mod python;
mod recorded;
mod served;
mod story;
mod tools;
mod typescript;

use std::path::PathBuf;

use tidemark_tests::server::repository;

/// The document in the repository.
fn document() -> PathBuf {
    repository().join("openapi/tidemark.json")
}
