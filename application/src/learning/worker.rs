//! The workers: claim, reload, decide, apply. What fails is tried again later, then kept as failed for a person to see (A18).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use metrics::counter;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::consolidate::consolidate;
use super::embed::{Embedded, embed};
use super::extract::Extractor;
use super::fade;
use super::index::index;
use super::pending::extract_pending;
use super::sweep;
use crate::memory::fresh::Unindexed;
use crate::memory::watched_embedder::WatchedEmbedder;
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::jobs::{ClaimedJob, JobKind, JobWriteError, Lane};
use crate::ports::store::{Store, StoreError, StoreResult};
use crate::settings::LearningSettings;

/// How often a worker decides anew when something moved under it, before it lets the job rest.
const CONFLICT_TRIES: u32 = 5;

/// How often a lease is renewed within its length: two renewals may fail before it lapses.
const RENEWALS_A_LEASE: u32 = 3;

/// How many owners' memories are embedded at once by this process.
const EMBEDDING_WORKERS: usize = 2;

/// How many jobs are done together with one at most. Ours: together they cost little more than a few, and none waits long for the others.
const MOST_ALIKE: u32 = 63;

/// How long a job rests that nobody here can do.
const WITHOUT_EMBEDDER: Duration = Duration::from_mins(5);

/// How many leases are renewed at once.
const RENEWED_AT_ONCE: usize = 4;

/// What became of a job.
type Outcome = Result<(), JobWriteError>;

/// What workers are made of.
#[derive(Clone)]
pub struct Workers {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What recall has made of messages already.
    pub unindexed: Arc<Unindexed>,
    /// Told when work was enqueued.
    pub work: Arc<Notify>,
    /// Embeds memories; without one there is no such work.
    pub embedder: Option<Arc<WatchedEmbedder>>,
    /// Extracts facts; none without a model that may teach.
    pub extractor: Option<Arc<Extractor>>,
    /// How derived work runs.
    pub settings: LearningSettings,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Workers {
    /// Runs the workers until `shutdown`; a job that has begun is finished.
    pub fn start(&self, tasks: &TaskTracker, shutdown: &CancellationToken) {
        let lanes = Lane::ALL.map(|lane| (lane, Arc::new(Notify::new())));
        for (lane, told) in &lanes {
            for _ in 0..self.workers_of(*lane) {
                let (workers, lane, told) = (self.clone(), *lane, Arc::clone(told));
                let shutdown = shutdown.clone();
                tasks.spawn(async move { workers.run(lane, &told, shutdown).await });
            }
        }
        let (work, stopped) = (Arc::clone(&self.work), shutdown.clone());
        // Whoever enqueues does not know whose work it is.
        tasks.spawn(async move {
            while stopped.run_until_cancelled(work.notified()).await.is_some() {
                for (_, told) in &lanes {
                    told.notify_one();
                }
            }
        });
        self.start_embedding(tasks, shutdown);
        tasks.spawn(sweep::until(self.clone(), shutdown.clone()));
        if let Some(every) = self.settings.fade_every {
            tasks.spawn(fade::until(self.clone(), every, shutdown.clone()));
        }
    }

    fn workers_of(&self, lane: Lane) -> usize {
        match lane {
            Lane::Quick => self.settings.workers,
            Lane::Model => self.settings.model_workers,
            Lane::Embedder if self.embedder.is_none() => 0,
            Lane::Embedder => EMBEDDING_WORKERS,
        }
    }

    async fn run(&self, lane: Lane, told: &Notify, shutdown: CancellationToken) {
        let kinds = lane.kinds();
        while !shutdown.is_cancelled() {
            if lane == Lane::Embedder && !self.embedder_is_well(&shutdown).await {
                return;
            }
            match self.step_of(&kinds, told).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "jobs cannot be claimed"),
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = told.notified() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
            }
        }
    }

    /// Does one job of any kind, if one's time has come. Whether there was one.
    ///
    /// # Errors
    /// When jobs cannot be claimed.
    pub async fn step(&self) -> StoreResult<bool> {
        self.step_of(&JobKind::ALL, &self.work).await
    }

    async fn step_of(&self, kinds: &[JobKind], told: &Notify) -> StoreResult<bool> {
        let claimed = self.store.claim_job_of(kinds, self.settings.lease).await?;
        let Some(claim) = claimed else {
            return Ok(false);
        };
        // There may be more for the other workers.
        told.notify_one();
        if claim.job.attempts > self.settings.max_attempts {
            // Its last attempt ended with its process: trying again might end the next one.
            let error = "its attempts ended without a word";
            self.record_failure(&claim, error).await;
            return Ok(true);
        }
        let kind = claim.job.kind.as_str();
        let span =
            tracing::info_span!("job", kind, job = %claim.job.id, attempt = claim.job.attempts);
        let claims = self.with_alike(claim).await;
        let (this, claimed) = (self.clone(), claims.clone());
        // A task of its own: a panic in a decision is the job's failure, not the worker's end.
        let work = tokio::spawn(async move { this.apply_all(&claimed).await }.instrument(span));
        let outcomes = self.keep(&claims, work).await;
        for (place, claim) in claims.iter().enumerate() {
            let outcome = match &outcomes {
                Ok(outcomes) => outcomes.get(place).and_then(Option::as_ref),
                Err(_) => None,
            };
            if !self.note(claim, outcome).await {
                break;
            }
        }
        Ok(true)
    }

    /// The job, and others that are done together with it. What has failed before is done alone: it might take others with it.
    async fn with_alike(&self, claim: ClaimedJob) -> Vec<ClaimedJob> {
        let mut claims = vec![claim];
        let claim = &claims[0];
        if claim.job.kind.lane() == Lane::Quick && claim.job.attempts == 1 {
            let lease = self.settings.lease;
            match self.store.claim_alike(claim, MOST_ALIKE, lease).await {
                Ok(alike) => claims.extend(alike),
                Err(error) => tracing::warn!(%error, "jobs that are alike cannot be claimed"),
            }
        }
        claims
    }

    /// Notes what became of a job; nothing is known of one whose task died. False if the store cannot be reached for it: what is left returns when its
    /// lease has lapsed.
    async fn note(&self, claim: &ClaimedJob, outcome: Option<&Outcome>) -> bool {
        let outcome = match outcome {
            Some(Ok(())) => "done",
            Some(Err(JobWriteError::Lost)) => "lost",
            Some(Err(error)) => return self.record_failure(claim, &error.to_string()).await,
            None => return self.record_failure(claim, "the job's task died").await,
        };
        let kind = claim.job.kind.as_str();
        counter!("tidemark_jobs_total", "kind" => kind, "outcome" => outcome).increment(1);
        true
    }

    /// Waits for the work and renews its leases meanwhile, so that only a process that is dead or stopped loses a job. Work whose jobs were
    /// all lost is ended: whatever it decided would be refused.
    async fn keep(
        &self,
        claims: &[ClaimedJob],
        mut work: JoinHandle<Vec<Option<Outcome>>>,
    ) -> Result<Vec<Option<Outcome>>, JoinError> {
        let pause = self.settings.lease / RENEWALS_A_LEASE;
        loop {
            tokio::select! {
                outcomes = &mut work => return outcomes,
                () = tokio::time::sleep(pause) => {}
            }
            if self.renew(claims).await {
                continue;
            }
            // The work itself removes its jobs with what it commits: it has the last word.
            if let Ok(outcomes) = tokio::time::timeout(pause, &mut work).await {
                return outcomes;
            }
            work.abort();
            return Ok(claims
                .iter()
                .map(|_| Some(Err(JobWriteError::Lost)))
                .collect());
        }
    }

    /// Renews leases. Whether any of them may still be ours.
    async fn renew(&self, claims: &[ClaimedJob]) -> bool {
        let each = claims.iter().map(|claim| {
            let (this, claim) = (self.clone(), claim.clone());
            async move { this.renew_one(&claim).await }.boxed()
        });
        let renewals: Vec<BoxFuture<'static, bool>> = each.collect();
        let renewals = stream::iter(renewals).buffer_unordered(RENEWED_AT_ONCE);
        let renewed: Vec<bool> = renewals.collect().await;
        renewed.contains(&true)
    }

    /// Whether it may still be ours.
    async fn renew_one(&self, claim: &ClaimedJob) -> bool {
        match self.store.renew_job(claim, self.settings.lease).await {
            Err(JobWriteError::Lost) => return false,
            Err(error) => {
                tracing::warn!(%error, job = %claim.job.id, "a job's lease was not renewed");
            }
            Ok(()) => {}
        }
        true
    }

    /// Does jobs that are alike. What cannot be done with others is decided anew, alone: so none takes another with it. Nothing for one whose task
    /// died.
    async fn apply_all(&self, claims: &[ClaimedJob]) -> Vec<Option<Outcome>> {
        if let [claim] = claims {
            return vec![Some(self.apply(claim).await)];
        }
        let (this, all) = (self.clone(), claims.to_vec());
        let together = async move { this.apply_together(&all).await };
        let mut outcomes: Vec<Option<Outcome>> = match in_a_task(together).await {
            Some(outcomes) => outcomes.into_iter().map(Some).collect(),
            None => claims.iter().map(|_| None).collect(),
        };
        for (claim, outcome) in claims.iter().zip(&mut outcomes) {
            let settled = matches!(
                outcome,
                // Where the store cannot be reached, it would fare no better alone.
                Some(
                    Ok(())
                        | Err(
                            JobWriteError::Lost | JobWriteError::Store(StoreError::Unavailable(_))
                        )
                )
            );
            if !settled {
                let (this, claim) = (self.clone(), claim.clone());
                *outcome = in_a_task(async move { this.apply(&claim).await }).await;
            }
        }
        outcomes
    }

    async fn apply_together(&self, claims: &[ClaimedJob]) -> Vec<Outcome> {
        match claims.first().map(|claim| claim.job.kind) {
            Some(JobKind::CountUse) => self.count_uses(claims).await,
            _ => self.index(claims).await,
        }
    }

    async fn index(&self, claims: &[ClaimedJob]) -> Vec<Outcome> {
        let how = (self.settings.batch, self.embedder.is_some());
        let (ids, made) = (self.ids.as_ref(), self.unindexed.as_ref());
        let now = self.clock.now();
        index(self.store.as_ref(), (ids, made), claims, how, now).await
    }

    async fn count_uses(&self, claims: &[ClaimedJob]) -> Vec<Outcome> {
        let Some(owner) = claims.first().map(|claim| claim.job.owner) else {
            return Vec::new();
        };
        let claims = claims
            .iter()
            .map(|claim| (claim.clone(), self.ids.change()));
        let now = self.clock.now();
        self.store.commit_uses(owner, claims.collect(), now).await
    }

    async fn apply(&self, claim: &ClaimedJob) -> Result<(), JobWriteError> {
        for _ in 1..CONFLICT_TRIES {
            match self.apply_once(claim).await {
                Err(JobWriteError::Conflict) => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
        self.apply_once(claim).await
    }

    async fn apply_once(&self, claim: &ClaimedJob) -> Result<(), JobWriteError> {
        let now = self.clock.now();
        let store = self.store.as_ref();
        if claim.job.kind == JobKind::CountUse {
            let change = self.ids.change();
            return store.commit_use(claim, change, now).await.map(|_| ());
        }
        if claim.job.kind == JobKind::Embed {
            return self.embed(claim).await;
        }
        if claim.job.kind == JobKind::Index {
            let mut outcomes = self.index(std::slice::from_ref(claim)).await;
            return outcomes.pop().unwrap_or(Err(JobWriteError::Lost));
        }
        let snapshot = store
            .learning_snapshot(claim.job.owner, claim.session()?)
            .await?;
        let Some(snapshot) = snapshot else {
            return store.finish_job(claim).await;
        };
        match claim.job.kind {
            JobKind::Extract => extract_pending(self, claim, snapshot).await,
            _ => consolidate(self, claim, snapshot).await,
        }
    }

    async fn embed(&self, claim: &ClaimedJob) -> Result<(), JobWriteError> {
        let Some(embedder) = &self.embedder else {
            return self
                .store
                .postpone_job(claim, Some("no embedder is set"), WITHOUT_EMBEDDER)
                .await;
        };
        let store = self.store.as_ref();
        match embed(store, self.clock.as_ref(), embedder.as_ref(), claim).await? {
            Embedded::All => {}
            Embedded::More => self.work.notify_one(),
            Embedded::Waits(error) => {
                tracing::warn!(%error, job = %claim.job.id, "memories wait to be embedded");
            }
        }
        Ok(())
    }

    /// False if the store cannot be reached for it.
    async fn record_failure(&self, claim: &ClaimedJob, error: &str) -> bool {
        let kind = claim.job.kind.as_str();
        let retry_in =
            (claim.job.attempts < self.settings.max_attempts).then(|| backoff(claim.job.attempts));
        let outcome = if retry_in.is_some() {
            "retried"
        } else {
            "failed"
        };
        counter!("tidemark_jobs_total", "kind" => kind, "outcome" => outcome).increment(1);
        tracing::warn!(job = %claim.job.id, kind, error, outcome, "a job did not succeed");
        let recorded = self.store.fail_job(claim, error, retry_in).await;
        if let Err(error) = &recorded {
            tracing::warn!(%error, job = %claim.job.id, "the failure was not recorded; the job returns when its lease has lapsed");
        }
        !matches!(
            recorded,
            Err(JobWriteError::Store(StoreError::Unavailable(_)))
        )
    }
}

/// In a task of its own, which ends with the caller; nothing if it died.
async fn in_a_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let mut task = JoinSet::new();
    task.spawn(work.in_current_span());
    task.join_next().await?.ok()
}

/// Two seconds after the first attempt, doubled with each further one, to some four minutes at most. Ours.
fn backoff(attempts: i32) -> Duration {
    Duration::from_secs(1 << attempts.clamp(0, 8))
}
