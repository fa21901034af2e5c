//! Live event logs of turns.
//!
//! To add one: implement [`EventLog`](tidemark_application::ports::events::EventLog); readers pull by cursor, and a slow one must cost nobody anything.
//! It must pass the suite of `conformance`.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod memory;
pub mod redis;
