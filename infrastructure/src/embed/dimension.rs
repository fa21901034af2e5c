//! That a model's vectors have one dimension.

use std::sync::OnceLock;

use tidemark_application::ports::embedder::EmbedError;
use tidemark_domain::memory::embedding::Embedding;

/// The dimension of a model's vectors: whoever says it first is right.
#[derive(Debug, Default)]
pub(super) struct Dimension(OnceLock<usize>);

impl Dimension {
    pub(super) fn known(&self) -> Option<usize> {
        self.0.get().copied()
    }

    pub(super) fn expect(&self, dimension: usize) {
        let _ = self.0.set(dimension);
    }

    /// Passes vectors of the right dimension.
    pub(super) fn checked(&self, embeddings: Vec<Embedding>) -> Result<Vec<Embedding>, EmbedError> {
        for embedding in &embeddings {
            let given = embedding.dimension();
            let expected = *self.0.get_or_init(|| given);
            if given != expected {
                return Err(EmbedError::Dimension { expected, given });
            }
        }
        Ok(embeddings)
    }
}
