//! Questions as vectors: each by every model whose vectors are searched, within a time that a person does not notice.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::watched_embedder::WatchedEmbedder;
use crate::ports::embedder::Embedder;

/// How many questions are remembered with their vectors: some megabytes.
const REMEMBERED: usize = 1_024;

/// Longer questions are not remembered.
const LONGEST_REMEMBERED: usize = 1_024;

/// A question's vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// With the name of the model that made each.
    pub vectors: Vec<(String, Vec<f32>)>,
    /// A model made none: what it has embedded is not found by its meaning.
    pub failed: bool,
}

/// Makes vectors of questions.
#[derive(Debug)]
pub struct QueryVectors {
    embedders: Vec<Arc<WatchedEmbedder>>,
    limit: Duration,
    remembered: Mutex<Remembered>,
}

impl QueryVectors {
    /// By these models, the one that is preferred first, within `limit`.
    pub fn new(embedders: Vec<Arc<WatchedEmbedder>>, limit: Duration) -> Self {
        Self {
            embedders,
            limit,
            remembered: Mutex::default(),
        }
    }

    /// The models' names.
    pub fn models(&self) -> Vec<String> {
        let embedders = self.embedders.iter();
        embedders.map(|e| e.model().to_owned()).collect()
    }

    /// The vectors of a question.
    pub async fn of(&self, question: &str) -> Asked {
        let all = self.embedders.iter().map(|e| self.one(e, question));
        let mut asked = Asked::default();
        for (embedder, vector) in self.embedders.iter().zip(join_all(all).await) {
            match vector {
                Some(vector) => asked.vectors.push((embedder.model().to_owned(), vector)),
                None => asked.failed = true,
            }
        }
        asked
    }

    async fn one(&self, embedder: &WatchedEmbedder, question: &str) -> Option<Vec<f32>> {
        let key = (embedder.model().to_owned(), question.to_owned());
        if let Some(vector) = self.lock().find(&key) {
            return Some(vector);
        }
        let embedding = match timeout(self.limit, embedder.embed_query(question)).await {
            Ok(Ok(embedding)) => embedding,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a question was not embedded");
                return None;
            }
            Err(_) => return None,
        };
        let vector: Vec<f32> = embedding.into();
        if question.len() <= LONGEST_REMEMBERED {
            self.lock().keep(key, vector.clone());
        }
        Some(vector)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

type Key = (String, String);

/// The questions that were asked last.
#[derive(Debug, Default)]
struct Remembered {
    vectors: HashMap<Key, (Vec<f32>, u64)>,
    used: BTreeMap<u64, Key>,
    tick: u64,
}

impl Remembered {
    fn find(&mut self, key: &Key) -> Option<Vec<f32>> {
        let (vector, used) = self.vectors.get_mut(key)?;
        self.tick += 1;
        self.used.remove(used);
        *used = self.tick;
        self.used.insert(self.tick, key.clone());
        Some(vector.clone())
    }

    fn keep(&mut self, key: Key, vector: Vec<f32>) {
        self.tick += 1;
        self.used.insert(self.tick, key.clone());
        if let Some((_, used)) = self.vectors.insert(key, (vector, self.tick)) {
            self.used.remove(&used);
        }
        while self.vectors.len() > REMEMBERED {
            let Some((_, oldest)) = self.used.pop_first() else {
                return;
            };
            self.vectors.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tidemark_domain::memory::embedding::Embedding;

    use super::*;
    use crate::ports::embedder::EmbedError;

    /// Counts what it is asked; it is silent about "silence" and refuses "refusal".
    #[derive(Default)]
    struct Counting(&'static str, AtomicUsize);

    #[async_trait]
    impl Embedder for Counting {
        fn model(&self) -> &str {
            self.0
        }

        fn dimension(&self) -> Option<usize> {
            Some(2)
        }

        fn expect_dimension(&self, _: usize) {}

        fn batch(&self) -> usize {
            1
        }

        async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            match text {
                "silence" => std::future::pending().await,
                "refusal" => Err(EmbedError::Refused { status: 401 }),
                _ => Ok(Embedding::of(&[1.0, text.len() as f32]).unwrap()),
            }
        }

        async fn embed_passages(&self, _: &[String]) -> Result<Vec<Embedding>, EmbedError> {
            panic!("not a passage")
        }
    }

    fn of(embedders: &[&Arc<Counting>]) -> QueryVectors {
        let watch = |e: &&Arc<Counting>| Arc::new(WatchedEmbedder::new(Arc::clone(*e) as _));
        QueryVectors::new(
            embedders.iter().map(watch).collect(),
            Duration::from_millis(300),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_embedded_by_each_model_and_once() {
        let (new, old) = (
            Arc::new(Counting("new", AtomicUsize::default())),
            Arc::new(Counting("old", AtomicUsize::default())),
        );
        let vectors = of(&[&new, &old]);
        assert_eq!(vectors.models(), ["new", "old"]);
        let first = vectors.of("when?").await;
        assert!(!first.failed);
        let names: Vec<&str> = first.vectors.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["new", "old"]);
        assert_eq!(vectors.of("when?").await, first);
        assert_eq!(new.1.load(Ordering::Relaxed), 1);
        vectors.of("where?").await;
        assert_eq!(old.1.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_is_silent_or_refuses_is_told_and_asked_again() {
        let model = Arc::new(Counting("m", AtomicUsize::default()));
        let vectors = of(&[&model]);
        for question in ["silence", "refusal", "silence"] {
            let expected = Asked {
                failed: true,
                ..Asked::default()
            };
            assert_eq!(vectors.of(question).await, expected);
        }
        assert_eq!(model.1.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_model_there_is_no_vector_and_no_failure() {
        assert_eq!(of(&[]).of("when?").await, Asked::default());
    }

    #[tokio::test(start_paused = true)]
    async fn the_questions_of_long_ago_make_room() {
        let model = Arc::new(Counting("m", AtomicUsize::default()));
        let vectors = of(&[&model]);
        for number in 0..REMEMBERED {
            vectors.of(&number.to_string()).await;
        }
        vectors.of("0").await; // used again, so it is not the oldest any more
        vectors.of("one more").await;
        vectors.of("0").await;
        assert_eq!(model.1.load(Ordering::Relaxed), REMEMBERED + 1);
        vectors.of("1").await;
        assert_eq!(model.1.load(Ordering::Relaxed), REMEMBERED + 2);
        let long = "x".repeat(LONGEST_REMEMBERED + 1);
        vectors.of(&long).await;
        vectors.of(&long).await;
        assert_eq!(model.1.load(Ordering::Relaxed), REMEMBERED + 4);
        assert_eq!(vectors.lock().vectors.len(), REMEMBERED);
        assert_eq!(vectors.lock().used.len(), REMEMBERED);
    }
}
