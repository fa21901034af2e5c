//! The second opinion on what was found, from a reranker: bounded, watched, and never missed when it does not come.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::{counter, histogram};
use tidemark_domain::ids::MemoryId;
use tokio::time::{Instant, timeout};

use crate::ports::reranker::{RerankError, Reranker};

/// How much longer than a reranker may take it is waited for: one that keeps its time is to notice itself that it is late, and to take note.
const GRACE: Duration = Duration::from_millis(50);

/// Asks a reranker.
pub struct Reranking {
    reranker: Arc<dyn Reranker>,
    candidates: usize,
    limit: Duration,
    well: AtomicBool,
}

impl Reranking {
    /// Of so many candidates at most, within `limit`, which is what the reranker keeps to itself.
    pub fn new(reranker: Arc<dyn Reranker>, candidates: usize, limit: Duration) -> Self {
        Self {
            reranker,
            candidates,
            limit: limit + GRACE,
            well: AtomicBool::new(true),
        }
    }

    /// The most memories that are judged for a question.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// How well the text of each memory answers the question. Of one alone no opinion is asked.
    ///
    /// # Errors
    /// When there is no opinion to be had: recall is as it would be without.
    pub async fn opinions(
        &self,
        question: &str,
        texts: Vec<(MemoryId, String)>,
    ) -> Result<BTreeMap<MemoryId, f64>, RerankError> {
        if texts.len() < 2 {
            return Ok(BTreeMap::new());
        }
        let began = Instant::now();
        let (ids, texts): (Vec<MemoryId>, Vec<String>) = texts.into_iter().unzip();
        let asked = timeout(self.limit, self.reranker.rerank(question, &texts));
        let outcome = asked
            .await
            .unwrap_or_else(|_| Err(RerankError::Unavailable("no answer in time".to_owned())))
            .and_then(|scores| checked(scores, texts.len()));
        self.note(began, &outcome);
        Ok(ids.into_iter().zip(outcome?).collect())
    }

    fn note(&self, began: Instant, outcome: &Result<Vec<f64>, RerankError>) {
        let told = match outcome {
            Ok(_) => "done",
            Err(RerankError::Unavailable(_)) => "unavailable",
            Err(RerankError::Busy) => "busy",
            Err(RerankError::Refused { .. }) => "refused",
            Err(RerankError::Protocol(_)) => "protocol",
        };
        counter!("tidemark_reranks_total", "outcome" => told).increment(1);
        histogram!("tidemark_rerank_seconds").record(began.elapsed());
        let well = outcome.is_ok();
        if self.well.swap(well, Ordering::Relaxed) != well {
            let error = outcome.as_ref().err().map(ToString::to_string);
            tracing::warn!(well, error, "the reranker's state changed");
        }
    }
}

/// One number a text, or none.
fn checked(scores: Vec<f64>, texts: usize) -> Result<Vec<f64>, RerankError> {
    if scores.len() == texts && scores.iter().all(|score| score.is_finite()) {
        return Ok(scores);
    }
    let what = "it does not give one number for each text";
    Err(RerankError::Protocol(what.to_owned()))
}

impl fmt::Debug for Reranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reranking")
            .field("candidates", &self.candidates)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
