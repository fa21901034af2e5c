//! The operations, a folder a resource and a file an operation. Each file holds request, response, documentation and handler.
//!
//! To add an operation: a file here with its handler and `#[utoipa::path]`, and a line in the resource's `mod.rs`.

pub mod changes;
pub mod chat;
pub mod errors;
pub mod health;
pub mod jobs;
pub mod memories;
pub mod messages;
pub mod page;
pub mod sessions;
pub mod sign_in;
pub mod turns;
pub mod users;
