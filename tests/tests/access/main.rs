//! Who may ask for what: keys and tokens, their scopes, tenants and users, on every operation of the document; and what browsers are told.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod commands;
mod cors;
mod headers;
mod keys;
mod limits;
mod operation;
mod operations;
mod sign_in;
mod strangers;
mod tickets;
mod token_days;
mod tokens;
