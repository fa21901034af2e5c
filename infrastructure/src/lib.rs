//! The adapters of Tidemark's ports: the only place that knows databases, model servers and collectors.
//!
//! To add an adapter: a folder named for what it adapts to, implementing a port of `tidemark-application`; a line of wiring in
//! `tidemark-interface`. A store must pass the conformance suite.

pub mod embed;
pub mod events;
pub mod identity;
pub mod model;
pub mod rerank;
pub mod store;
pub mod system;
pub mod telemetry;
