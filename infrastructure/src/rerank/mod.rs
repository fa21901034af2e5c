//! Any server with a `/rerank` in the form of Jina and Cohere, which vLLM, Infinity and llama.cpp have too, or of text-embeddings-inference: `wire`
//! knows the JSON, the rest is an exchange over HTTP.

mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tidemark_application::ports::reranker::{MAX_TEXT_BYTES, RerankError, Reranker};

use crate::model::exchange::{Exchange, ExchangeError, ExchangeOptions, ExchangeSetupError, Lane};
use crate::model::key::ApiKey;

/// The operation.
const PATH: &str = "rerank";

/// The longest answer: some servers repeat the texts, of which a hundred in the longest spelling of JSON are a little more than 1 MiB.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// How many questions may be on their way.
const MAX_CONCURRENT: usize = 64;

/// How to reach a server that reranks.
#[derive(Clone, Debug)]
pub struct HttpRerankerOptions {
    /// The server's address, up to `/rerank` or with it.
    pub url: String,
    /// The model's name there; servers that have one alone need none.
    pub model: Option<String>,
    /// Sent as a bearer token.
    pub api_key: Option<ApiKey>,
    /// How long a question may take.
    pub timeout: Duration,
}

/// A cross-encoder behind such a server.
pub struct HttpReranker {
    lane: Lane,
    model: Option<String>,
}

impl HttpReranker {
    /// Checks the options and makes a client; asks nothing yet.
    ///
    /// # Errors
    /// When address or key cannot be used.
    pub fn new(options: HttpRerankerOptions) -> Result<Self, ExchangeSetupError> {
        let given = options.url.trim_end_matches('/');
        let base = given.strip_suffix(PATH).filter(|base| base.ends_with('/'));
        let exchange = Exchange::new(ExchangeOptions {
            what: "reranker",
            base_url: base.unwrap_or(&options.url).to_owned(),
            path: &[PATH],
            api_key: options.api_key,
            max_concurrent: MAX_CONCURRENT,
            max_answer_bytes: MAX_ANSWER_BYTES,
        })?;
        Ok(Self {
            lane: exchange.lane(options.timeout, 0),
            model: options.model,
        })
    }
}

fn told(error: ExchangeError) -> RerankError {
    match error {
        ExchangeError::Unavailable(text) => RerankError::Unavailable(text),
        ExchangeError::Busy { .. } => RerankError::Busy,
        ExchangeError::Refused { status } => RerankError::Refused { status },
        ExchangeError::TooLong => RerankError::Protocol("the answer is too long".to_owned()),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

#[async_trait]
impl Reranker for HttpReranker {
    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f64>, RerankError> {
        let cuts: Vec<&str> = texts.iter().map(|text| cut(text)).collect();
        let body = wire::request(self.model.as_deref(), cut(question), &cuts);
        let answer = self.lane.post(&body).await.map_err(told)?;
        wire::scores(&answer, texts.len())
    }
}

impl fmt::Debug for HttpReranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReranker")
            .field("lane", &self.lane)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
