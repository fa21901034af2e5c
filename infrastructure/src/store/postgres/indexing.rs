//! What is to be indexed, and how it is: the jobs of one owner together, as far as they are plain.

use std::collections::{BTreeSet, HashMap};

use sqlx::PgConnection;
use tidemark_application::ports::jobs::{ClaimedJob, JobKind, JobWriteError, NewJob};
use tidemark_application::ports::learning::{
    IndexCommit, IndexWork, LearningSnapshot, TaughtMessage,
};
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::{Owner, SessionId};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change as domain;
use tidemark_domain::memory::conflict::Touched;
use uuid::Uuid;

use super::changes::Change;
use super::learning::{SnapshotRow, TaughtRow, admitted, check, snapshot_sql, take};
use super::rows::{all, message_columns, owned, owned_as, session_columns};
use super::transaction::{Abort, Database};
use super::{claims, forget, history, jobs, lines, memories, sessions, together};

const SNAPSHOTS: &str = snapshot_sql!("s.id = ANY ($3)");

/// The first messages of each session behind a number and up to another.
const TAUGHT: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", coalesce((
        SELECT t.status = 'cancelled' FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = m.turn_id
      ), false) AS cancelled
      FROM unnest($3::uuid[], $4::bigint[], $5::bigint[]) AS w (session_id, after, up_to)
      CROSS JOIN LATERAL (
        SELECT * FROM messages n
        WHERE n.tenant_id = $1 AND n.owner_id = $2 AND n.session_id = w.session_id AND n.seq > w.after AND n.seq <= w.up_to
        ORDER BY n.seq LIMIT $6
      ) m
      ORDER BY m.session_id, m.seq"
);

const MOVE_INDEXES: &str = "
UPDATE sessions s SET indexed_seq = n.seq FROM unnest($3::uuid[], $4::bigint[]) AS n (id, seq)
WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = n.id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[SNAPSHOTS, TAUGHT, MOVE_INDEXES];

/// A claimed job, and what it does.
type Indexed = (ClaimedJob, IndexCommit);

/// What is to be indexed of sessions.
pub(super) async fn work(
    tx: &mut PgConnection,
    owner: Owner,
    sessions: &[Uuid],
    limit: u32,
) -> Result<Vec<IndexWork>, Abort<StoreError>> {
    let rows: Vec<SnapshotRow> = owned_as(SNAPSHOTS, owner)
        .bind(sessions)
        .fetch_all(&mut *tx)
        .await?;
    let snapshots: Vec<LearningSnapshot> = all(rows)?;
    let column = |of: fn(&LearningSnapshot) -> i64| snapshots.iter().map(of).collect::<Vec<_>>();
    let rows: Vec<TaughtRow> = owned_as(TAUGHT, owner)
        .bind(snapshots.iter().map(|s| s.session.id.0).collect::<Vec<_>>())
        .bind(column(|s| s.session.indexed_seq))
        .bind(column(|s| s.last_closed))
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    let mut messages: HashMap<SessionId, Vec<TaughtMessage>> = HashMap::new();
    for taught in all::<_, TaughtMessage>(rows)? {
        let session = taught.message.session_id;
        messages.entry(session).or_default().push(taught);
    }
    let work = snapshots.into_iter().map(|snapshot| IndexWork {
        messages: messages.remove(&snapshot.session.id).unwrap_or_default(),
        snapshot,
    });
    Ok(work.collect())
}

/// Applies one job.
pub(super) async fn commit(
    database: &Database,
    claim: ClaimedJob,
    commit: IndexCommit,
) -> Result<(), JobWriteError> {
    let tenant = claim.job.owner.tenant;
    database
        .write(tenant, (claim, commit), |tx, (claim, commit)| {
            Box::pin(apply(tx, claim, commit))
        })
        .await
}

/// Applies jobs of one owner: together those that are plain, the others each alone.
pub(super) async fn commit_all(
    database: &Database,
    owner: Owner,
    commits: Vec<Indexed>,
) -> Vec<Result<(), JobWriteError>> {
    let mut outcomes: Vec<Option<Result<(), JobWriteError>>> = Vec::new();
    outcomes.resize_with(commits.len(), || None);
    let (plain, mut alone): (Vec<_>, Vec<_>) =
        (commits.into_iter().enumerate()).partition(|(_, (_, commit))| is_plain(commit));
    if plain.len() > 1 {
        let (places, plain): (Vec<usize>, Vec<Indexed>) = plain.into_iter().unzip();
        let tenant = owner.tenant;
        let written = database.write_many(tenant, plain.clone(), move |tx, plain| {
            Box::pin(apply_all(tx, owner, plain))
        });
        match written.await.map_err(together::Failure::of) {
            Ok(written) => {
                for (place, outcome) in places.into_iter().zip(written) {
                    outcomes[place] = Some(outcome);
                }
            }
            Err(together::Failure::OfAll(error)) => {
                for place in places {
                    outcomes[place] = Some(Err(error.shared().into()));
                }
            }
            Err(together::Failure::OfOne) => alone.extend(places.into_iter().zip(plain)),
        }
    } else {
        alone.extend(plain);
    }
    for (place, (claim, item)) in alone {
        outcomes[place] = Some(commit(database, claim, item).await);
    }
    outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_or(Err(JobWriteError::Conflict)))
        .collect()
}

/// Nothing that was remembered stands otherwise because of it.
fn is_plain(commit: &IndexCommit) -> bool {
    Touched::by(commit.memories.iter().map(|item| &item.memory)).is_none()
}

/// The owner first: whoever waits for that holds nothing that others wait for, and then waits for no session. One that somebody else holds is a
/// conflict.
async fn apply_all(
    tx: &mut PgConnection,
    owner: Owner,
    items: &[Indexed],
) -> Result<Vec<Result<(), JobWriteError>>, Abort<JobWriteError>> {
    let ids: Vec<Uuid> = (items.iter())
        .filter_map(|(claim, _)| Some(claim.job.session_id?.0))
        .collect();
    let change = Change::begin(tx, owner).await?;
    let sessions = sessions::lock_free(tx, owner, &ids).await?;
    let indexed: HashMap<SessionId, i64> = sessions.iter().map(|s| (s.id, s.indexed_seq)).collect();
    let holds = |(claim, commit): &&Indexed| {
        let at = claim.job.session_id.and_then(|id| indexed.get(&id));
        at.is_some_and(|at| *at == commit.from_seq) && change.erase_epoch() == commit.erase_epoch
    };
    let lasting: Vec<&Indexed> = items.iter().filter(holds).collect();
    let removed = claims::remove_all(tx, owner, lasting.iter().map(|(claim, _)| claim)).await?;
    let is_ours = |(claim, _): &&&Indexed| removed.contains(&claim.job.id);
    let ours: Vec<&Indexed> = lasting.iter().filter(is_ours).copied().collect();
    if let Some(now) = ours.iter().map(|(_, commit)| commit.now).max() {
        forget::expire(tx, owner, &change, Some(now)).await?;
    }
    let memories = ours.iter().flat_map(|(_, commit)| commit.memories.iter());
    let memories: Vec<_> = memories.cloned().collect();
    let new = admitted(tx, owner, &memories).await?;
    memories::insert(tx, owner, &change, &new.iter().collect::<Vec<_>>()).await?;
    let (sessions, ends): (Vec<Uuid>, Vec<i64>) = ours
        .iter()
        .filter_map(|(claim, commit)| Some((claim.job.session_id?.0, commit.to_seq)))
        .unzip();
    owned(MOVE_INDEXES, owner)
        .bind(sessions)
        .bind(ends)
        .execute(&mut *tx)
        .await?;
    enqueue(tx, owner, &ours).await?;
    let ours: BTreeSet<Uuid> = ours.iter().map(|(claim, _)| claim.job.id.0).collect();
    let outcomes = items.iter().map(|item| {
        if ours.contains(&item.0.job.id.0) {
            Ok(())
        } else if holds(&item) {
            Err(JobWriteError::Lost)
        } else {
            Err(JobWriteError::Conflict)
        }
    });
    Ok(outcomes.collect())
}

/// What derives from the jobs: of the owner once, of each session what it leads to.
async fn enqueue(
    tx: &mut PgConnection,
    owner: Owner,
    items: &[&Indexed],
) -> Result<(), sqlx::Error> {
    let jobs = items.iter().flat_map(|(_, commit)| &commit.jobs);
    let of_owner = jobs.clone().find(|job| job.kind == JobKind::Embed);
    if let (Some(job), Some((_, commit))) = (of_owner, items.first()) {
        jobs::enqueue_for_owner(tx, owner, &[*job], commit.now).await?;
    }
    for (claim, commit) in items {
        let of_session = commit.jobs.iter().filter(|job| job.kind != JobKind::Embed);
        let of_session: Vec<NewJob> = of_session.copied().collect();
        if let Some(session) = claim.job.session_id {
            jobs::enqueue(tx, owner, session, &of_session, commit.now).await?;
        }
    }
    Ok(())
}

async fn apply(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    commit: &IndexCommit,
) -> Result<(), Abort<JobWriteError>> {
    let owner = claim.job.owner;
    let session = take(tx, claim).await?;
    let id = session.id;
    check(session.indexed_seq == commit.from_seq)?;
    let change = Change::begin(tx, owner).await?;
    check(change.erase_epoch() == commit.erase_epoch)?;
    forget::expire(tx, owner, &change, Some(commit.now)).await?;
    let new = admitted(tx, owner, &commit.memories).await?;
    let stored = memories::insert(tx, owner, &change, &new.iter().collect::<Vec<_>>()).await?;
    let added: Vec<Memory> = (new.into_iter().map(|item| item.memory))
        .filter(|memory| stored.contains(&memory.id.0))
        .collect();
    let (touched, now) = (Touched::by(&added), Some(commit.now));
    let settled = lines::settle(tx, owner, &change, touched, now).await?;
    let range = (commit.from_seq, commit.to_seq);
    let kept = domain::Change::indexing(commit.change, id, range, commit.now, &added, settled);
    if let Some(kept) = kept {
        history::record(tx, owner, kept).await?;
    }
    owned(MOVE_INDEXES, owner)
        .bind(vec![id.0])
        .bind(vec![commit.to_seq])
        .execute(&mut *tx)
        .await?;
    Ok(jobs::enqueue(tx, owner, id, &commit.jobs, commit.now).await?)
}
