#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Mutex;

use async_trait::async_trait;
use uuid::Uuid;

use super::*;

/// Gives its outcomes one after the other, then is silent for ever; keeps what it was asked.
#[derive(Default)]
struct Scripted {
    outcomes: Mutex<Vec<Result<Vec<f64>, RerankError>>>,
    asked: Mutex<Vec<(String, Vec<String>)>>,
}

#[async_trait]
impl Reranker for Scripted {
    async fn rerank(&self, question: &str, texts: &[String]) -> Result<Vec<f64>, RerankError> {
        let asked = (question.to_owned(), texts.to_vec());
        self.asked.lock().unwrap().push(asked);
        let next = self.outcomes.lock().unwrap().pop();
        match next {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }
}

const LIMIT: Duration = Duration::from_millis(300);

fn asking(outcomes: Vec<Result<Vec<f64>, RerankError>>) -> (Arc<Scripted>, Reranking) {
    let reranker = Arc::new(Scripted {
        outcomes: Mutex::new(outcomes.into_iter().rev().collect()),
        ..Scripted::default()
    });
    let reranking = Reranking::new(Arc::clone(&reranker) as _, 30, LIMIT);
    (reranker, reranking)
}

fn id(number: u128) -> MemoryId {
    MemoryId(Uuid::from_u128(number))
}

fn texts(texts: &[&str]) -> Vec<(MemoryId, String)> {
    (1..)
        .map(id)
        .zip(texts.iter().map(|t| (*t).to_owned()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_memory_gets_the_score_of_its_text() {
    let (reranker, reranking) = asking(vec![Ok(vec![-2.0, 7.5])]);
    let opinions = reranking.opinions("Who?", texts(&["a", "b"])).await;
    assert_eq!(opinions, Ok(BTreeMap::from([(id(1), -2.0), (id(2), 7.5)])));
    let asked = reranker.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [("Who?".to_owned(), vec!["a".to_owned(), "b".to_owned()])]
    );
}

#[tokio::test(start_paused = true)]
async fn of_one_memory_or_none_nothing_is_asked() {
    let (reranker, reranking) = asking(Vec::new());
    for few in [&[][..], &["a"]] {
        assert_eq!(
            reranking.opinions("Who?", texts(few)).await,
            Ok(BTreeMap::new())
        );
    }
    assert!(reranker.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_one_number_for_each_text_is_no_opinion() {
    for scores in [
        vec![],
        vec![1.0],
        vec![1.0, 2.0, 3.0],
        vec![1.0, f64::NAN],
        vec![f64::INFINITY, 1.0],
    ] {
        let (_, reranking) = asking(vec![Ok(scores.clone())]);
        let opinions = reranking.opinions("Who?", texts(&["a", "b"])).await;
        assert!(
            matches!(opinions, Err(RerankError::Protocol(_))),
            "{scores:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reranker_that_does_not_keep_its_time_is_waited_for_no_longer() {
    let (_, reranking) = asking(Vec::new());
    let began = Instant::now();
    let opinions = reranking.opinions("Who?", texts(&["a", "b"])).await;
    assert!(matches!(opinions, Err(RerankError::Unavailable(_))));
    assert!(
        began.elapsed() <= LIMIT + 2 * GRACE,
        "{:?}",
        began.elapsed()
    );
}
