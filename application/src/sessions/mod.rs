//! What is done with whole conversations.

pub mod import;
