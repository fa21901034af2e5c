//! Tidemark, a chat server that remembers.
//!
//! - `cli`: the commands of the binary
//! - `config`: the settings
//! - `wiring`, `lifecycle`, `server`: what is built of them, how it starts and ends, and how it takes connections
//! - `app`, `http`: what the operations share, and the operations, a file each
//! - `sse`, `extract`, `problem`, `guard`, `cors`, `hardening`, `request_id`, `body`, `pagination`: what a request goes through
//! - `openapi`: the document
//!
//! To add an operation: see `http`. To add a setting: see `config`. To add an adapter: a line in `wiring`.

pub mod app;
pub mod auth;
pub mod body;
pub mod cli;
pub mod config;
pub mod cors;
pub mod event_log;
pub mod extract;
pub mod guard;
pub mod hardening;
pub mod headers;
pub mod http;
pub mod lenient;
pub mod lifecycle;
pub mod limits;
pub mod openapi;
pub mod pagination;
pub mod problem;
pub mod request_id;
pub mod server;
pub mod sse;
pub mod times;
pub mod to_the_end;
pub mod wiring;
