//! The use cases of Tidemark and the ports they need.
//!
//! - `access`: who asks: API keys, and the passes that are signed with them
//! - `chat`: a turn from acceptance to its terminal event: `context` → `inference` → `response`
//! - `memory`: remember, recall, forget
//! - `learning`: what runs behind the boundary
//! - `sessions`: import
//! - `users`: export, erase
//! - `ports`: what the use cases need from the world
//!
//! To add a use case: a file named for what it does, with its own error enum and the ports it needs as `Arc<dyn …>`.
#![deny(missing_docs)]

pub mod access;
pub mod chat;
pub mod learning;
pub mod memory;
pub mod ports;
pub mod sessions;
pub mod settings;
pub mod tools;
pub mod users;
