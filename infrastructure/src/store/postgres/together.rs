//! Operations that come while others of their kind are under way are done together: one transaction, one sync of the disk, and each statement
//! once for all of them.
//!
//! Whoever comes first is served at once. Only what arrives meanwhile waits, for as long as that takes, and is served together then; so the more
//! there is to do, the less each costs. What would have to wait for a lock of somebody else is not done here: it would hold up all that stand
//! behind it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tidemark_application::ports::jobs::JobWriteError;
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::TenantId;
use tokio::sync::{mpsc, oneshot};

use super::ACQUIRE_TIMEOUT;

/// Operations that wait for their turn. More are refused for load once they have waited in vain.
const WAITING: usize = 4_096;

/// Operations of one transaction: enough to share its cost, few enough that the first does not wait long for the last.
const MOST: usize = 64;

/// For how long the next ones wait for those before them. Nothing takes as long unless the disk or the database is in trouble.
const PATIENCE: Duration = Duration::from_millis(500);

/// An operation, and where its outcome is awaited. The caller may have gone: what is done is done.
#[derive(Debug)]
pub(super) struct Asked<I, O> {
    pub(super) item: I,
    pub(super) answer: oneshot::Sender<O>,
}

/// Those of one tenant that are done together.
type Work<I, O> = Arc<dyn Fn(TenantId, Vec<Asked<I, O>>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The way to operations of one kind.
#[derive(Debug)]
pub(super) struct Together<I, O> {
    queue: mpsc::Sender<(TenantId, Asked<I, O>)>,
}

impl<I, O> Clone for Together<I, O> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

/// Whose fault it is that a transaction of many failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may have happened, or could not begin.
    OfAll(Arc<StoreError>),
    /// That of one of them, perhaps: each is to be served alone, and told what concerns it.
    OfOne,
}

impl Failure {
    pub(super) fn of(error: impl Into<JobWriteError>) -> Self {
        match error.into() {
            JobWriteError::Store(
                error @ (StoreError::OutcomeUnknown(_) | StoreError::Unavailable(_)),
            ) => Self::OfAll(Arc::new(error)),
            error => {
                tracing::debug!(%error, "what came together is served one by one");
                Self::OfOne
            }
        }
    }
}

/// Tells those who shared a transaction what it failed with, if that concerns all of them; else they stay.
pub(super) fn tell_failure<I, T, E: From<StoreError>>(
    together: &mut Vec<Asked<I, Result<T, E>>>,
    error: StoreError,
) {
    if let Failure::OfAll(error) = Failure::of(error) {
        for asked in together.drain(..) {
            let _ = asked.answer.send(Err(error.shared().into()));
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the store has had more to do than it can for {} seconds", ACQUIRE_TIMEOUT.as_secs())]
    Overloaded,
    #[error("the store is closed")]
    Closed,
}

fn unavailable(refused: Refused) -> StoreError {
    StoreError::Unavailable(Box::new(refused))
}

impl<I: Send + 'static, O: Send + 'static> Together<I, O> {
    /// Starts what does `work`; it ends with the last way to it.
    pub(super) fn start<F>(work: F) -> Self
    where
        F: Fn(TenantId, Vec<Asked<I, O>>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    {
        let (queue, waiting) = mpsc::channel(WAITING);
        tokio::spawn(serve(waiting, Arc::new(work)));
        Self { queue }
    }

    /// Has an operation done.
    pub(super) async fn ask(&self, tenant: TenantId, item: I) -> Result<O, StoreError> {
        let (answer, outcome) = oneshot::channel();
        let asked = (tenant, Asked { item, answer });
        let sent = self.queue.send_timeout(asked, ACQUIRE_TIMEOUT).await;
        sent.map_err(|error| {
            unavailable(match error {
                mpsc::error::SendTimeoutError::Timeout(_) => Refused::Overloaded,
                mpsc::error::SendTimeoutError::Closed(_) => Refused::Closed,
            })
        })?;
        let lost = |error: oneshot::error::RecvError| StoreError::OutcomeUnknown(Box::new(error));
        outcome.await.map_err(lost)
    }
}

async fn serve<I: Send + 'static, O: Send + 'static>(
    mut waiting: mpsc::Receiver<(TenantId, Asked<I, O>)>,
    work: Work<I, O>,
) {
    loop {
        let mut taken = Vec::new();
        if waiting.recv_many(&mut taken, MOST).await == 0 {
            return;
        }
        let mut tasks = Vec::new();
        while let Some((tenant, _)) = taken.first() {
            let tenant = *tenant;
            let (of_tenant, others) = taken.into_iter().partition(|(of, _)| *of == tenant);
            taken = others;
            let asked: Vec<(TenantId, Asked<I, O>)> = of_tenant;
            let asked = asked.into_iter().map(|(_, asked)| asked).collect();
            // A task of its own: a panic is theirs, and not the end of all.
            tasks.push(tokio::spawn(work(tenant, asked)));
        }
        let _ = tokio::time::timeout(PATIENCE, futures::future::join_all(tasks)).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Mutex as Notes;

    use futures::future::join_all;
    use uuid::Uuid;

    use super::*;

    fn tenant(n: u128) -> TenantId {
        TenantId(Uuid::from_u128(n))
    }

    /// Doubles numbers, each batch in `takes`, and notes the sizes of batches.
    fn doubling(takes: Duration) -> (Together<u64, u64>, Arc<Notes<Vec<usize>>>) {
        let sizes = Arc::new(Notes::new(Vec::new()));
        let noted = Arc::clone(&sizes);
        let together = Together::start(move |_, asked: Vec<Asked<u64, u64>>| {
            noted.lock().unwrap().push(asked.len());
            Box::pin(async move {
                tokio::time::sleep(takes).await;
                for Asked { item, answer } in asked {
                    assert_ne!(item, 13, "a number that is not doubled");
                    let _ = answer.send(2 * item);
                }
            })
        });
        (together, sizes)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_meanwhile_is_done_together_and_each_has_its_own_outcome() {
        let (together, sizes) = doubling(Duration::from_millis(10));
        let asked = (0..200_u64).map(|n| {
            let together = &together;
            async move {
                tokio::time::sleep(Duration::from_millis(n / 10)).await;
                together.ask(tenant(1), n + 100).await.unwrap()
            }
        });
        let outcomes = join_all(asked).await;
        let expected: Vec<u64> = (0..200).map(|n| 2 * (n + 100)).collect();
        assert_eq!(outcomes, expected);
        let sizes = sizes.lock().unwrap();
        assert_eq!(sizes.iter().sum::<usize>(), 200);
        assert!(
            sizes.len() < 40 && sizes.iter().all(|size| *size <= MOST),
            "{sizes:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn tenants_are_kept_apart() {
        let (together, sizes) = doubling(Duration::from_millis(1));
        let asked = (0..40).map(|n| together.ask(tenant(n % 4), n as u64 + 100));
        assert!(
            join_all(asked)
                .await
                .into_iter()
                .all(|outcome| outcome.is_ok())
        );
        assert!(sizes.lock().unwrap().iter().all(|size| *size <= 10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_holds_up_nobody_for_long() {
        let (together, _) = doubling(Duration::from_mins(1));
        let begun = tokio::time::Instant::now();
        let asked = (0..10).map(|n| {
            let together = &together;
            async move {
                tokio::time::sleep(Duration::from_millis(100 * n)).await;
                together.ask(tenant(1), n + 100).await.unwrap()
            }
        });
        join_all(asked).await;
        assert!(
            begun.elapsed() < Duration::from_secs(62),
            "{:?}",
            begun.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_unknown_to_its_own_callers_and_no_concern_of_others() {
        let (together, _) = doubling(Duration::ZERO);
        let lost = together.ask(tenant(1), 13).await;
        assert!(
            matches!(lost, Err(StoreError::OutcomeUnknown(_))),
            "{lost:?}"
        );
        for n in 100..110 {
            assert_eq!(together.ask(tenant(1), n).await.unwrap(), 2 * n);
        }
    }
}
