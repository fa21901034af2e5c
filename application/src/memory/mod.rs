//! Remembering, recalling, forgetting on request. What is learned by itself is in [`crate::learning`].

pub mod forget;
pub mod fresh;
pub mod indexes;
pub mod query_vectors;
pub mod recall;
pub mod remember;
pub mod watched_embedder;
