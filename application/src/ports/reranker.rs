//! Judging how well memories answer a question: the second opinion of recall.

use async_trait::async_trait;

/// The longest text that is judged, in bytes; what is longer is cut, between two characters. Cross-encoders read some 512 tokens, question and text
/// together, and a server may refuse more.
pub const MAX_TEXT_BYTES: usize = 2 * 1024;

/// No judgement. Messages hold no user's text and no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RerankError {
    /// It cannot be reached, does not answer in time, or says that it cannot serve.
    #[error("the reranker cannot be reached: {0}")]
    Unavailable(String),
    /// It has more to do than it takes on.
    #[error("the reranker refuses for load")]
    Busy,
    /// It refuses who asks or what is asked.
    #[error("the reranker refused the request with status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// It talks something else than its protocol, or gives scores that are none.
    #[error("the reranker does not keep to its protocol: {0}")]
    Protocol(String),
}

/// A model that reads a question and a text together. Implementations are bounded in time, retry nothing, for the asker has no time, and leave a
/// server alone for a while that does not answer.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// How well each text answers the question, in the order of the texts, one finite number each: higher is better, on a scale of the model's own.
    /// All or none. Question and texts that are longer than [`MAX_TEXT_BYTES`] are cut.
    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f64>, RerankError>;
}
