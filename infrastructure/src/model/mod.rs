//! Language models: any OpenAI-compatible server, and the built-in offline model.
//!
//! To add a provider: a folder with a pure reader of its protocol, held by recorded fixtures, and an implementation of
//! [`ChatModel`](tidemark_application::ports::model::ChatModel). The [`gateway`] goes around any of them.

mod breaker;
mod endpoint;
pub(crate) mod exchange;
pub mod gateway;
pub mod key;
pub mod offline;
pub mod openai;
mod refusal;
mod retry;
pub mod tls;
pub mod tokens;

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod testing;
