//! Who asks, and what they may do.
//!
//! - [`scope`]: what a key may be used for
//! - [`key`]: an API key without its secret: whose it is, how long it is good, what follows it
//! - [`principal`]: whom a request comes from, once that is proven

pub mod key;
pub mod principal;
pub mod scope;

pub use key::{ApiKey, Expiry, InvalidKey, KeyHash, NotRotatable, PassSecret, Standing};
pub use principal::{Denied, Principal};
pub use scope::{Scope, Scopes, UnknownScope};
