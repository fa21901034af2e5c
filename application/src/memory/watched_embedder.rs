//! An embedder under observation: whether it answers, how often and how fast.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use metrics::{counter, histogram};
use tidemark_domain::memory::embedding::Embedding;
use tokio::time::{Instant, timeout};

use crate::ports::embedder::{EmbedError, Embedder};

/// What is embedded to see whether an embedder works.
const PROBE: &str = "high tide";

/// An embedder, watched.
pub struct WatchedEmbedder {
    embedder: Arc<dyn Embedder>,
    well: AtomicBool,
}

impl WatchedEmbedder {
    /// Watches an embedder, which counts as well until it fails.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            well: AtomicBool::new(true),
        }
    }

    /// Whether the last request was answered.
    pub fn is_well(&self) -> bool {
        self.well.load(Ordering::Relaxed)
    }

    /// Embeds something to see whether it works and which dimension it has.
    ///
    /// # Errors
    /// As the embedder, or `Unavailable` when it takes longer than `limit`.
    pub async fn probe(&self, limit: Duration) -> Result<usize, EmbedError> {
        let probe = [PROBE.to_owned()];
        let embeddings = timeout(limit, self.embed_passages(&probe))
            .await
            .unwrap_or_else(|_| {
                self.well.store(false, Ordering::Relaxed);
                Err(EmbedError::Unavailable(format!(
                    "no answer within {limit:?}"
                )))
            })?;
        embeddings
            .first()
            .map(Embedding::dimension)
            .ok_or_else(|| EmbedError::Protocol("no vector".to_owned()))
    }

    fn note<T>(&self, purpose: &'static str, began: Instant, outcome: &Result<T, EmbedError>) {
        let outcome = match outcome {
            Ok(_) => "done",
            Err(EmbedError::Unacceptable { .. }) => "unacceptable",
            Err(_) => "failed",
        };
        let well = outcome != "failed";
        if self.well.swap(well, Ordering::Relaxed) != well {
            tracing::warn!(model = self.model(), well, "the embedder's state changed");
        }
        counter!("tidemark_embeddings_total", "purpose" => purpose, "outcome" => outcome)
            .increment(1);
        histogram!("tidemark_embedding_seconds", "purpose" => purpose).record(began.elapsed());
    }
}

impl fmt::Debug for WatchedEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedEmbedder")
            .field("model", &self.model())
            .field("well", &self.is_well())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Embedder for WatchedEmbedder {
    fn model(&self) -> &str {
        self.embedder.model()
    }

    fn dimension(&self) -> Option<usize> {
        self.embedder.dimension()
    }

    fn expect_dimension(&self, dimension: usize) {
        self.embedder.expect_dimension(dimension);
    }

    fn batch(&self) -> usize {
        self.embedder.batch()
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let began = Instant::now();
        let outcome = self.embedder.embed_query(text).await;
        self.note("query", began, &outcome);
        outcome
    }

    async fn embed_passages(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        let began = Instant::now();
        let outcome = self.embedder.embed_passages(texts).await;
        self.note("passage", began, &outcome);
        outcome
    }
}

/// The embedders of an installation.
#[derive(Clone, Debug, Default)]
pub struct Embedders {
    /// Embeds memories and questions.
    pub present: Option<Arc<WatchedEmbedder>>,
    /// Embeds questions beside it, for memories that only it has embedded.
    pub previous: Option<Arc<WatchedEmbedder>>,
}

impl Embedders {
    /// All there are, the present one first.
    pub fn all(&self) -> Vec<Arc<WatchedEmbedder>> {
        let both = [&self.present, &self.previous];
        both.into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Mutex;

    use super::*;

    /// Gives its outcomes one after the other, then is silent for ever.
    struct Scripted(Mutex<Vec<Result<Vec<Embedding>, EmbedError>>>);

    #[async_trait]
    impl Embedder for Scripted {
        fn model(&self) -> &'static str {
            "scripted"
        }

        fn dimension(&self) -> Option<usize> {
            None
        }

        fn expect_dimension(&self, _: usize) {}

        fn batch(&self) -> usize {
            8
        }

        async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
            let mut all = self.embed_passages(&[text.to_owned()]).await?;
            Ok(all.remove(0))
        }

        async fn embed_passages(&self, _: &[String]) -> Result<Vec<Embedding>, EmbedError> {
            let next = self.0.lock().unwrap().pop();
            match next {
                Some(outcome) => outcome,
                None => std::future::pending().await,
            }
        }
    }

    fn watched(outcomes: Vec<Result<Vec<Embedding>, EmbedError>>) -> WatchedEmbedder {
        let reversed = outcomes.into_iter().rev().collect();
        WatchedEmbedder::new(Arc::new(Scripted(Mutex::new(reversed))))
    }

    #[tokio::test(start_paused = true)]
    async fn an_embedder_is_well_as_long_as_its_last_request_was_answered() {
        let vector = || Ok(vec![Embedding::of(&[3.0, 4.0]).unwrap()]);
        let down = || Err(EmbedError::Unavailable("down".to_owned()));
        let embedder = watched(vec![
            vector(),
            down(),
            vector(),
            Err(EmbedError::Unacceptable { status: 400 }),
            down(),
        ]);
        assert!(embedder.is_well());
        assert_eq!(embedder.probe(Duration::from_secs(5)).await, Ok(2));
        embedder.embed_query("a").await.unwrap_err();
        assert!(!embedder.is_well());
        embedder.embed_query("a").await.unwrap();
        assert!(embedder.is_well());
        // That texts are refused says that somebody is there.
        embedder.embed_query("a").await.unwrap_err();
        assert!(embedder.is_well());
        embedder.probe(Duration::from_secs(5)).await.unwrap_err();
        assert!(!embedder.is_well());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_embedder_does_not_hold_up_the_probe() {
        let embedder = watched(Vec::new());
        let outcome = embedder.probe(Duration::from_secs(5)).await;
        assert!(matches!(outcome, Err(EmbedError::Unavailable(_))));
        assert!(!embedder.is_well());
    }
}
