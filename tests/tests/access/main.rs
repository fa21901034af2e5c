//! Who may ask for what: keys, their scopes, tenants and users, on every operation of the document.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod commands;
mod keys;
mod operation;
mod operations;
mod sign_in;
mod strangers;
mod tickets;
