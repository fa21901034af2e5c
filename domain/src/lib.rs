//! What is true of a chat that remembers, without a computer.
//!
//! Every function here is pure: no async, no I/O, no framework, no clock. The time is an argument. Entities decide; use cases (in
//! `tidemark-application`) orchestrate.
//!
//! To add a rule: write it as a pure function beside the type it judges, state where its numbers come from, and hold it by a
//! property test.
#![deny(missing_docs)]

pub mod boundary;
pub mod event;
pub mod identity;
pub mod ids;
pub mod memory;
pub mod reasoning;
pub mod session;
pub mod tool;
pub mod turn;
pub mod window;

#[cfg(test)]
mod testing;
