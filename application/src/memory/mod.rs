//! Remembering, recalling, forgetting on request. What is learned by itself is in [`crate::learning`].

pub mod edit;
pub mod forget;
pub mod fresh;
pub mod history;
pub mod indexes;
mod outdated;
pub mod query_vectors;
pub mod recall;
pub mod remember;
pub mod reranking;
pub mod revert;
#[cfg(test)]
mod testing;
pub mod watched_embedder;

/// How often something is decided anew when what it was decided on has moved.
const CONFLICT_TRIES: u32 = 5;
