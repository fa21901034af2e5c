//! Waiting for what happens behind the answer, with an end and a name for what was waited for.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks every 50 ms until the answer is `Some`, and fails the test naming `what` when `limit` has passed.
pub async fn until<T, F, R>(what: &str, limit: Duration, mut ask: F) -> T
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(
            started.elapsed() < limit,
            "waited {limit:?} in vain for: {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Fails the test naming `what` when `future` takes longer than `limit`.
pub async fn within<F: Future>(what: &str, limit: Duration, future: F) -> F::Output {
    let outcome = tokio::time::timeout(limit, future).await;
    outcome.unwrap_or_else(|_| panic!("took longer than {limit:?}: {what}"))
}
