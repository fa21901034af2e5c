//! The ports: what the use cases need from the world, one contract a file.
//!
//! All are object-safe. Persistence ports expose the atomic steps of the domain rather than a general transaction: each method is
//! one transaction inside the adapter. A miss is `Ok(None)`; a write that was decided on something that has moved since is a typed
//! conflict; neither is an "error".
//!
//! To add a port: a file here with a trait and its types, documented to the last error; an adapter in `tidemark-infrastructure`;
//! one line of wiring in `tidemark-interface`.

pub mod changes;
pub mod clock;
pub mod context;
pub mod embedder;
pub mod embeddings;
pub mod entropy;
pub mod events;
pub mod fading;
pub mod identity_provider;
pub mod ids;
pub mod jobs;
pub mod keys;
pub mod learning;
pub mod memories;
pub mod model;
pub mod owners;
pub mod reranker;
pub mod sessions;
pub mod store;
pub mod tools;
pub mod trace;
pub mod turns;
pub mod users;
