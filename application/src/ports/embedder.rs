//! Embeddings of texts: the dense arm of recall.

use std::time::Duration;

use async_trait::async_trait;
use tidemark_domain::memory::embedding::Embedding;

/// The longest text that is embedded, in bytes; what is longer is cut, between two characters. Models read some hundred words, and a
/// server refuses what its model cannot read.
pub const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The text as far as it is embedded.
pub fn embeddable(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// No embedding. Messages hold no user's text and no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// It cannot be reached, does not answer in time, or says that it cannot serve.
    #[error("the embedder cannot be reached: {0}")]
    Unavailable(String),
    /// It has more to do than it takes on.
    #[error("the embedder refuses for load")]
    Busy {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// It refuses who asks, or knows no such model: every text would be refused.
    #[error("the embedder refused the request with status {status}")]
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// It refuses these texts; others may be accepted.
    #[error("the embedder does not accept the texts, status {status}")]
    Unacceptable {
        /// The HTTP status.
        status: u16,
    },
    /// It talks something else than its protocol, or gives vectors that are none.
    #[error("the embedder does not keep to its protocol: {0}")]
    Protocol(String),
    /// Its vectors have another dimension than before: it has another model under the same name.
    #[error("the embedder gives {given} dimensions instead of {expected}")]
    Dimension {
        /// What its vectors had before.
        expected: usize,
        /// What they have now.
        given: usize,
    },
}

impl EmbedError {
    /// Whether the same request may succeed later without anybody doing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Busy { .. })
    }
}

/// A model that embeds texts. All its vectors have one dimension. Implementations embed a query before passages that wait, and retry
/// nothing of a query, whose asker has no time; passages may be asked for again within a bound.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// What its vectors are stored under: the same for models whose vectors can be compared, and for no others. At most 255 bytes.
    fn model(&self) -> &str;

    /// How many numbers its vectors have; none as long as the adapter has not seen one.
    fn dimension(&self) -> Option<usize>;

    /// Fixes the dimension, where it is known from earlier vectors: others are then an error. The first to say it is right.
    fn expect_dimension(&self, dimension: usize);

    /// The most passages of a call, at least 1.
    fn batch(&self) -> usize;

    /// Embeds a question. What is longer than [`MAX_TEXT_BYTES`] is cut.
    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError>;

    /// Embeds what may answer a question, at most [`Self::batch`] texts (more is `Protocol`), in their order. All or none.
    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let text = "水".repeat(MAX_TEXT_BYTES);
        let cut = embeddable(&text);
        assert!(cut.len() <= MAX_TEXT_BYTES && cut.len() > MAX_TEXT_BYTES - 3);
        assert!(cut.chars().all(|c| c == '水'));
        assert_eq!(embeddable("short"), "short");
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_another_try() {
        assert!(EmbedError::Unavailable(String::new()).is_retryable());
        assert!(EmbedError::Busy { retry_after: None }.is_retryable());
        assert!(!EmbedError::Refused { status: 401 }.is_retryable());
        assert!(
            !EmbedError::Dimension {
                expected: 384,
                given: 768
            }
            .is_retryable()
        );
    }
}
