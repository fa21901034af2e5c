//! A turn, from its acceptance to its terminal event.
//!
//! Three stages with a type each (A1, A2): [`context`] prepares what the model is asked, [`inference`] lets it speak and call tools,
//! [`response`] commits. The answer is committed in `response::finalize`, and nowhere else.

pub mod accept;
pub mod cancel;
mod closing;
pub mod context;
mod delete;
mod fit;
pub mod follow;
pub mod inference;
pub mod publisher;
pub mod recovery;
pub mod response;
mod runner;
pub mod service;
mod stop;

#[cfg(test)]
mod tests;
