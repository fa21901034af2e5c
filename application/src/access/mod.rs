//! Who asks.
//!
//! - [`key`]: an API key as text, and what is kept of it
//! - [`token`]: from a token of an identity provider to whom it belongs
//! - [`claims`]: from what such a token says to who that is here
//! - [`pass`]: what stands for a key or a token in a URL or a cookie
//! - [`issue`]: making, rotating and taking back keys
//! - [`authenticate`]: from a presented key to whom it belongs, without asking the store each time

pub mod authenticate;
mod base32;
pub mod claims;
pub mod issue;
pub mod key;
pub mod pass;
#[cfg(test)]
mod testing;
pub mod token;
