//! Persistence: two stores with the same modules, and the suite that both must pass.

mod changes;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod postgres;
pub mod sqlite;
