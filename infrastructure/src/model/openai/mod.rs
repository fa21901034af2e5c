//! Any server that speaks OpenAI's chat-completions protocol, or nearly.
//!
//! `sse` takes the stream apart, `wire` knows the JSON, `calls` and `assemble` make events of it, `body` joins these into one pure reader,
//! `client` asks. A quirk of a real server gets a fixture in `fixtures.rs` and, if need be, a rule in one of these.

mod assemble;
mod body;
mod calls;
mod client;
mod sse;
mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tidemark_application::ports::model::{ChatModel, ModelError, ModelRequest, ModelStream};
use tidemark_domain::window::{EstimateCounter, TokenCounter};

use self::client::Client;
pub(super) use self::wire::{UNSPECIFIED, code_in};
use super::key::ApiKey;

/// How to reach a model.
#[derive(Clone, Debug)]
pub struct OpenAiOptions {
    /// The server's address up to and without `/chat/completions`.
    pub base_url: String,
    /// The model's name there.
    pub name: String,
    /// Sent as a bearer token.
    pub api_key: Option<ApiKey>,
    /// Left to the server when absent.
    pub temperature: Option<f64>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long the first chunk may take from the sending of the request.
    pub first_timeout: Duration,
    /// How long the next chunk may take. Comments do not count: proxies send them for a model that has died.
    pub idle_timeout: Duration,
    /// How long the whole answer may take, retries included.
    pub total_timeout: Duration,
    /// How often to ask again before the answer begins.
    pub max_retries: u32,
    /// The longest body of an answer, in bytes of the protocol.
    pub max_answer_bytes: usize,
}

impl OpenAiOptions {
    /// The model of that name at that address, with 10 s to connect, 120 s to begin, 60 s between chunks, 15 min in all, 2 retries and 32 MiB.
    pub fn new(base_url: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            name: name.into(),
            api_key: None,
            temperature: None,
            connect_timeout: Duration::from_secs(10),
            first_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(1),
            total_timeout: Duration::from_mins(15),
            max_retries: 2,
            max_answer_bytes: 32 << 20,
        }
    }
}

/// The model cannot be set up. Messages repeat nothing of what was given.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The base URL cannot be used.
    #[error("the model's base URL cannot be used: {0}")]
    BaseUrl(&'static str),
    /// The key holds characters that no header may hold.
    #[error("the model's API key holds characters that cannot be sent")]
    ApiKey,
    /// The HTTP client cannot be built.
    #[error("the model's HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// A model behind an OpenAI-compatible server.
pub struct OpenAiModel {
    client: Client,
    counter: EstimateCounter,
}

impl OpenAiModel {
    /// Checks the options and makes a client; asks nothing yet.
    pub fn new(options: OpenAiOptions) -> Result<Self, SetupError> {
        if options.api_key.as_ref().is_some_and(|k| !k.can_be_sent()) {
            return Err(SetupError::ApiKey);
        }
        Ok(Self {
            client: Client::new(options)?,
            counter: EstimateCounter,
        })
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("options", self.client.options())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    fn name(&self) -> &str {
        &self.client.options().name
    }

    fn teaches(&self) -> bool {
        true
    }

    fn counter(&self) -> &dyn TokenCounter {
        &self.counter
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.client.answer(&request).await
    }
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod http_tests;
#[cfg(test)]
mod splits;
