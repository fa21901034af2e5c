//! Any server that speaks OpenAI's embeddings protocol, or nearly: `wire` knows the JSON, the rest is an exchange over HTTP.

mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tidemark_application::ports::embedder::{EmbedError, Embedder, embeddable};
use tidemark_domain::memory::embedding::Embedding;

use super::dimension::Dimension;
use crate::model::exchange::{Exchange, ExchangeError, ExchangeOptions, ExchangeSetupError, Lane};
use crate::model::key::ApiKey;

/// The longest answer: 256 vectors of 8,192 numbers of 24 characters.
const MAX_ANSWER_BYTES: usize = 48 << 20;

/// How many questions, and how many batches, may be on their way.
const MAX_CONCURRENT: usize = 64;

/// How often a batch is asked for again before it is left to its job.
const RETRIES: u32 = 2;

/// How to reach a server that embeds.
#[derive(Clone, Debug)]
pub struct OpenAiEmbedderOptions {
    /// What the vectors are stored under.
    pub model: String,
    /// The server's address up to and without `/embeddings`.
    pub base_url: String,
    /// The model's name there.
    pub name: String,
    /// Sent as a bearer token.
    pub api_key: Option<ApiKey>,
    /// How many numbers a vector is to have, for models that can shorten theirs.
    pub dimensions: Option<usize>,
    /// Precedes each question; some models are trained so.
    pub query_prefix: String,
    /// Precedes each passage.
    pub passage_prefix: String,
    /// The most passages of a request.
    pub batch: usize,
    /// How long a question may take.
    pub query_timeout: Duration,
    /// How long a batch may take, with retries.
    pub timeout: Duration,
}

/// A model behind an OpenAI-compatible server.
pub struct OpenAiEmbedder {
    queries: Lane,
    passages: Lane,
    dimension: Dimension,
    options: OpenAiEmbedderOptions,
}

impl OpenAiEmbedder {
    /// Checks the options and makes a client; asks nothing yet.
    pub fn new(options: OpenAiEmbedderOptions) -> Result<Self, ExchangeSetupError> {
        let exchange = Exchange::new(ExchangeOptions {
            what: "embedder",
            base_url: options.base_url.clone(),
            path: &["embeddings"],
            api_key: options.api_key.clone(),
            max_concurrent: MAX_CONCURRENT,
            max_answer_bytes: MAX_ANSWER_BYTES,
        })?;
        let dimension = Dimension::default();
        if let Some(dimensions) = options.dimensions {
            dimension.expect(dimensions);
        }
        Ok(Self {
            queries: exchange.lane(options.query_timeout, 0),
            passages: exchange.lane(options.timeout, RETRIES),
            dimension,
            options,
        })
    }

    async fn ask(&self, lane: &Lane, inputs: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        let body = wire::request(&self.options.name, inputs, self.options.dimensions);
        let answer = lane.post(&body).await.map_err(told)?;
        let embeddings = wire::embeddings(&answer, inputs.len())?;
        self.dimension.checked(embeddings)
    }
}

fn told(error: ExchangeError) -> EmbedError {
    match error {
        ExchangeError::Unavailable(text) => EmbedError::Unavailable(text),
        ExchangeError::Busy { retry_after } => EmbedError::Busy { retry_after },
        // What OpenAI, vLLM, llama.cpp and text-embeddings-inference give for an input that is too long or otherwise not wanted.
        ExchangeError::Refused {
            status: status @ (400 | 413 | 422),
        } => EmbedError::Unacceptable { status },
        ExchangeError::Refused { status } => EmbedError::Refused { status },
        ExchangeError::TooLong => EmbedError::Protocol("the answer is too long".to_owned()),
    }
}

fn prefixed(prefix: &str, text: &str) -> String {
    // Some models have no vector for nothing, and some servers refuse it.
    let text = if text.trim().is_empty() { "-" } else { text };
    format!("{prefix}{}", embeddable(text))
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn model(&self) -> &str {
        &self.options.model
    }

    fn dimension(&self) -> Option<usize> {
        self.dimension.known()
    }

    fn expect_dimension(&self, dimension: usize) {
        self.dimension.expect(dimension);
    }

    fn batch(&self) -> usize {
        self.options.batch
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let inputs = [prefixed(&self.options.query_prefix, text)];
        let mut embeddings = self.ask(&self.queries, &inputs).await?;
        embeddings
            .pop()
            .ok_or_else(|| EmbedError::Protocol("no vector".to_owned()))
    }

    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > self.options.batch {
            return Err(EmbedError::Protocol("the batch is too large".to_owned()));
        }
        let prefix = &self.options.passage_prefix;
        let inputs: Vec<String> = texts.iter().map(|text| prefixed(prefix, text)).collect();
        self.ask(&self.passages, &inputs).await
    }
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiEmbedder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
