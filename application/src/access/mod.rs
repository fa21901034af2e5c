//! Who asks.
//!
//! - [`key`]: an API key as text, and what is kept of it
//! - [`issue`]: making, rotating and taking back keys
//! - [`authenticate`]: from a presented key to whom it belongs, without asking the store each time

pub mod authenticate;
mod base32;
pub mod issue;
pub mod key;
