//! Sentence models of BERT's family, computed in this process from a directory with `config.json`, `tokenizer.json` and `model.safetensors`.
//!
//! `files` reads the directory, `weights` its tensors, `tokens` its tokenizer; `layers` and `bert` compute; `queue` holds the threads that do it.

mod bert;
mod files;
mod layers;
mod queue;
mod tokens;
mod weights;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use sha2::{Digest, Sha256};
use tidemark_application::ports::embedder::{EmbedError, Embedder, embeddable};
use tidemark_domain::memory::embedding::Embedding;

use self::bert::Bert;
pub use self::files::ModelFilesError;
use self::files::{CONFIG, ModelFiles, TOKENIZER, WEIGHTS};
use self::queue::{Outcome, Queue, Urgency, Work};
use self::tokens::Tokens;
use super::dimension::Dimension;

/// How much text is computed at once, in bytes: a question waits for one such piece at most. Larger pieces are not faster.
const PIECE_BYTES: usize = 1_024;

/// Which model, and how it is used.
#[derive(Clone, Debug)]
pub struct LocalEmbedderOptions {
    /// The directory.
    pub directory: PathBuf,
    /// Precedes each question; some models are trained so.
    pub query_prefix: String,
    /// Precedes each passage.
    pub passage_prefix: String,
    /// The most passages of a call.
    pub batch: usize,
    /// How many threads compute.
    pub threads: usize,
}

/// The model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalEmbedderError {
    /// Its directory.
    #[error(transparent)]
    Files(#[from] ModelFilesError),
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[source] std::io::Error),
}

/// A model that is computed here.
pub struct LocalEmbedder {
    model: String,
    queue: Queue,
    dimension: Dimension,
    options: LocalEmbedderOptions,
}

impl LocalEmbedder {
    /// Reads the model, which takes some tenths of a second, and starts its threads. `model` makes what its vectors are stored under of a
    /// fingerprint of the model.
    pub fn open(
        options: LocalEmbedderOptions,
        model: impl FnOnce(&str) -> String,
    ) -> Result<Self, LocalEmbedderError> {
        let files = ModelFiles::read(&options.directory)?;
        let unusable = |file: &str, why: String| ModelFilesError::Unusable {
            path: options.directory.join(file),
            why,
        };
        let tokens = Tokens::load(&files.tokenizer, files.max_tokens)
            .map_err(|why| unusable(TOKENIZER, why))?;
        let bert = Bert::load(&files).map_err(|why| unusable(WEIGHTS, why))?;
        let model = model(&fingerprint(&files));
        let dimension = Dimension::default();
        dimension.expect(bert.dimension());
        drop(files);
        let work: Arc<Work> = Arc::new(move |texts: &[String]| compute(&tokens, &bert, texts));
        // Tells at the start whether the parts fit one another.
        work(&["tide".to_owned()]).map_err(|error| unusable(CONFIG, error.to_string()))?;
        let queue = Queue::start(options.threads, &work).map_err(LocalEmbedderError::Threads)?;
        Ok(Self {
            model,
            queue,
            dimension,
            options,
        })
    }
}

/// The same for the same computation, wherever the directory lies.
fn fingerprint(files: &ModelFiles) -> String {
    let mut hash = Sha256::new();
    for part in [&files.weights, &files.tokenizer] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(format!("{:?} {}", files.pooling, files.max_tokens));
    let digest = hash.finalize();
    let first = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    format!("{first:08x}")
}

fn compute(tokens: &Tokens, bert: &Bert, texts: &[String]) -> Outcome {
    let broken = |what: &str| EmbedError::Protocol(what.to_owned());
    let tokens: Option<Vec<Vec<u32>>> = texts.iter().map(|text| tokens.of(text)).collect();
    let tokens = tokens.ok_or_else(|| broken("the tokenizer has no tokens for a text"))?;
    bert.embed(&tokens)
        .into_iter()
        .map(|embedding| embedding.ok_or_else(|| broken("the model has no vector for a text")))
        .collect()
}

/// Texts in pieces of about [`PIECE_BYTES`], in their order.
fn pieces(texts: Vec<String>) -> Vec<Vec<String>> {
    let mut pieces: Vec<Vec<String>> = Vec::new();
    let mut bytes = PIECE_BYTES;
    for text in texts {
        if bytes + text.len() > PIECE_BYTES {
            pieces.push(Vec::new());
            bytes = 0;
        }
        bytes += text.len();
        if let Some(piece) = pieces.last_mut() {
            piece.push(text);
        }
    }
    pieces
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn model(&self) -> &str {
        &self.model
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
        let text = format!("{}{}", self.options.query_prefix, embeddable(text));
        let mut embeddings = self.queue.embed(vec![text], Urgency::Query).await?;
        embeddings
            .pop()
            .ok_or_else(|| EmbedError::Protocol("no vector".to_owned()))
    }

    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        if texts.len() > self.options.batch {
            return Err(EmbedError::Protocol("the batch is too large".to_owned()));
        }
        let prefix = &self.options.passage_prefix;
        let texts = texts
            .iter()
            .map(|text| format!("{prefix}{}", embeddable(text)))
            .collect();
        let pieces = pieces(texts)
            .into_iter()
            .map(|piece| self.queue.embed(piece, Urgency::Passage));
        Ok(try_join_all(pieces).await?.into_iter().flatten().collect())
    }
}

impl fmt::Debug for LocalEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEmbedder")
            .field("model", &self.model)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
