//! Embedders: any server with OpenAI's `/embeddings`, and sentence models that are computed here.
//!
//! To add one: a folder with an implementation of [`Embedder`](tidemark_application::ports::embedder::Embedder), and a line in the wiring.

mod dimension;
pub mod local;
pub mod openai;
