//! What runs behind the boundary: derived work, claimed from the outbox, decided in the domain, applied exactly once.

pub mod consolidate;
pub mod embed;
pub mod embedding_lane;
pub mod extract;
mod fade;
pub mod index;
pub mod pending;
mod sweep;
pub mod worker;
