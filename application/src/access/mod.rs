//! Who asks.
//!
//! - [`key`]: an API key as text, and what is kept of it
//! - [`pass`]: what stands for a key in a URL or a cookie
//! - [`issue`]: making, rotating and taking back keys
//! - [`authenticate`]: from a presented key to whom it belongs, without asking the store each time

pub mod authenticate;
mod base32;
pub mod issue;
pub mod key;
pub mod pass;
