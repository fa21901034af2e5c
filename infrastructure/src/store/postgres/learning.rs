//! What derived work reads, and how its effect is applied: together with the removal of its job, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use sqlx::PgConnection;
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError, NewJob};
use tidemark_application::ports::learning::{
    ConsolidationCommit, ExtractionCommit, IndexCommit, IndexWork, LearningRepository,
    LearningSnapshot, PendingExtraction, Strengthened, TaughtMessage,
};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item, Op};
use tidemark_domain::memory::conflict::{Touched, repeat_any, said_again};
use tidemark_domain::memory::consolidation::identity;
use tidemark_domain::session::{Message, Session};
use uuid::Uuid;

use super::changes::Change;
use super::rows::{MessageRow, SessionRow, all, message_columns, owned, owned_as, session_columns};
use super::transaction::Abort;
use super::{
    PostgresStore, claims, extraction, fading, forget, history, indexing, jobs, lines, memories,
    sessions, uses,
};

/// Of the sessions `s` of the owner for which `$where` holds.
macro_rules! snapshot_sql {
    ($where:literal) => {
        concat!(
            "SELECT ",
            session_columns!(),
            ", o.erase_epoch, coalesce((
                SELECT r.first_seq - 1 FROM turns r
                WHERE r.tenant_id = $1 AND r.owner_id = $2 AND r.session_id = s.id AND r.status IN ('running', 'awaiting_approval')
              ), s.message_count) AS last_closed
              FROM sessions s JOIN owners o ON o.tenant_id = s.tenant_id AND o.owner_id = s.owner_id
              WHERE s.tenant_id = $1 AND s.owner_id = $2 AND ",
            $where
        )
    };
}
pub(super) use snapshot_sql;

const SNAPSHOT: &str = snapshot_sql!("s.id = $3");

const TAUGHT: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", coalesce((
        SELECT t.status = 'cancelled' FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.id = m.turn_id
      ), false) AS cancelled
      FROM messages m
      WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.session_id = $3 AND m.seq > $4 AND m.seq <= $5
      ORDER BY m.seq LIMIT $6"
);

const MOVE_BOUNDARY: &str =
    "UPDATE sessions SET last_consolidated = $4 WHERE tenant_id = $1 AND owner_id = $2 AND id = $3";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[SNAPSHOT, TAUGHT, MOVE_BOUNDARY];

#[derive(sqlx::FromRow)]
pub(super) struct SnapshotRow {
    #[sqlx(flatten)]
    session: SessionRow,
    erase_epoch: i64,
    last_closed: i64,
}

impl TryFrom<SnapshotRow> for LearningSnapshot {
    type Error = sqlx::Error;

    fn try_from(row: SnapshotRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            session: row.session.try_into()?,
            erase_epoch: row.erase_epoch,
            last_closed: row.last_closed,
        })
    }
}

#[derive(sqlx::FromRow)]
pub(super) struct TaughtRow {
    #[sqlx(flatten)]
    message: MessageRow,
    cancelled: bool,
}

impl TryFrom<TaughtRow> for TaughtMessage {
    type Error = sqlx::Error;

    fn try_from(row: TaughtRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            message: Message::try_from(row.message)?,
            cancelled: row.cancelled,
        })
    }
}

async fn snapshot(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<Option<LearningSnapshot>, Abort<StoreError>> {
    let row: Option<SnapshotRow> = owned_as(SNAPSHOT, owner)
        .bind(session.0)
        .fetch_optional(tx)
        .await?;
    Ok(row.map(LearningSnapshot::try_from).transpose()?)
}

async fn taught(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    range: (i64, i64),
    limit: u32,
) -> Result<Vec<TaughtMessage>, Abort<StoreError>> {
    let rows: Vec<TaughtRow> = owned_as(TAUGHT, owner)
        .bind(session.0)
        .bind(range.0)
        .bind(range.1)
        .bind(i64::from(limit))
        .fetch_all(tx)
        .await?;
    Ok(all(rows)?)
}

/// Locks the session and takes the job away; then nothing else can apply it or move what it was decided on.
pub(super) async fn take(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
) -> Result<Session, Abort<JobWriteError>> {
    let job = &claim.job;
    let session = sessions::lock(tx, job.owner, claim.session().map_err(Abort::Decided)?).await?;
    claims::remove(tx, claim).await?;
    session.ok_or(Abort::Decided(JobWriteError::Lost))
}

pub(super) fn check(holds: bool) -> Result<(), Abort<JobWriteError>> {
    if holds {
        Ok(())
    } else {
        Err(Abort::Decided(JobWriteError::Conflict))
    }
}

/// What may be stored of what was learned: without the sources that were forgotten, and not what has none left then.
pub(super) async fn admitted(
    tx: &mut PgConnection,
    owner: Owner,
    items: &[IndexedMemory],
) -> Result<Vec<IndexedMemory>, sqlx::Error> {
    let pairs: Vec<_> = items
        .iter()
        .flat_map(|item| {
            let sources = item.memory.sources.iter();
            sources.map(|source| (source.message_id, item.identity.as_str()))
        })
        .collect();
    let forgotten = forget::forgotten(tx, owner, &pairs).await?;
    let mut admitted = items.to_vec();
    if !forgotten.is_empty() {
        admitted.retain_mut(|item| {
            let (identity, sources) = (&item.identity, &mut item.memory.sources);
            let taught = !sources.is_empty();
            sources.retain(|source| !forgotten.contains(&(source.message_id, identity.clone())));
            !taught || !sources.is_empty()
        });
    }
    Ok(admitted)
}

async fn commit_consolidation(
    tx: &mut PgConnection,
    claim: &ClaimedJob,
    commit: &ConsolidationCommit,
) -> Result<(), Abort<JobWriteError>> {
    let owner = claim.job.owner;
    let session = take(tx, claim).await?;
    let id = session.id;
    check(session.last_consolidated == commit.from_seq)?;
    let change = Change::begin(tx, owner).await?;
    check(change.erase_epoch() == commit.erase_epoch)?;
    let taught = (&*commit.new, &*commit.worded, &*commit.strengthened);
    let items = learn(tx, owner, &change, taught, commit.now).await?;
    let kept = domain::Change::new(commit.change, ChangeKind::Consolidation, commit.now, items)
        .of_session(Some(id))
        .over(commit.from_seq, commit.to_seq);
    history::record(tx, owner, kept).await?;
    owned(MOVE_BOUNDARY, owner)
        .bind(id.0)
        .bind(commit.to_seq)
        .execute(&mut *tx)
        .await?;
    if let Some(unanswered) = &commit.pending {
        let range = (commit.from_seq, commit.to_seq);
        extraction::note(tx, owner, id, (range, unanswered), commit.now).await?;
    }
    Ok(jobs::enqueue(tx, owner, id, &commit.jobs, commit.now).await?)
}

/// Stores new semantic memory, as rules found and as a model worded it, strengthens what was said again, settles what is said of their keys, and
/// tells what became of each. Whoever calls holds the owner's lock and has changed none of its memories yet.
pub(super) async fn learn(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    (new, worded, strengthened): (&[IndexedMemory], &[IndexedMemory], &[Strengthened]),
    now: Timestamp,
) -> Result<Vec<Item>, Abort<JobWriteError>> {
    forget::expire(tx, owner, change, Some(now)).await?;
    let mut items = strengthen_all(tx, owner, change, strengthened, now).await?;
    let mut new = admitted(tx, owner, new).await?;
    new.extend(extraction::admitted(tx, owner, worded).await?);
    let mut said = BTreeSet::new();
    new.retain(|item| {
        item.memory.key.is_some() || memories::waits(item) || said.insert(item.identity.clone())
    });
    let new = memories::unsaid(tx, owner, new).await?;
    refuse_repetitions(tx, owner, &new, now).await?;
    let stored = memories::insert(tx, owner, change, &new.iter().collect::<Vec<_>>()).await?;
    let made = new.iter().map(|item| &item.memory);
    items.extend(
        made.filter(|memory| stored.contains(&memory.id.0))
            .map(Item::created),
    );
    let touched = Touched::by(new.iter().map(|item| &item.memory));
    items.extend(lines::settle(tx, owner, change, touched, Some(now)).await?);
    Ok(items)
}

/// Refuses what would only repeat something that came after the work was decided on.
async fn refuse_repetitions(
    tx: &mut PgConnection,
    owner: Owner,
    new: &[IndexedMemory],
    now: Timestamp,
) -> Result<(), Abort<JobWriteError>> {
    let (keyed, others): (Vec<_>, Vec<_>) = new.iter().partition(|item| item.memory.key.is_some());
    let keyed: Vec<&Memory> = keyed.iter().map(|item| &item.memory).collect();
    if let Some(touched) = Touched::by(keyed.iter().copied()) {
        let line = lines::of(tx, owner, &touched, Some(now)).await?;
        check(!repeat_any(&line, &keyed))?;
    }
    let identities: Vec<String> = others.iter().map(|item| item.identity.clone()).collect();
    let known = memories::known(tx, owner, &identities, Some(now)).await?;
    check(known.is_empty())
}

/// Strengthens memories, and tells what became of each.
async fn strengthen_all(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    strengthened: &[Strengthened],
    now: Timestamp,
) -> Result<Vec<Item>, Abort<JobWriteError>> {
    let ids: Vec<Uuid> = strengthened.iter().map(|s| s.id.0).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let before = memories::by_id(tx, owner, &ids, Some(now)).await?;
    let mut said = Vec::with_capacity(strengthened.len());
    for again in strengthened {
        let known = before.iter().find(|memory| memory.id == again.id);
        let known = known.filter(|memory| memory.version == again.version);
        let known = known.ok_or(Abort::Decided(JobWriteError::Conflict))?;
        said.push(said_again(known, again.confidence, now));
    }
    fading::put(tx, owner, change, &said).await?;
    add_sources(tx, owner, &before, strengthened).await?;
    let after = memories::by_id(tx, owner, &ids, Some(now)).await?;
    let changed = after.iter().filter_map(|after| {
        let before = before.iter().find(|before| before.id == after.id)?;
        Some(Item::changed(before, after, Op::Strengthened))
    });
    Ok(changed.collect())
}

/// Adds the messages in which memories were said again, but those that were forgotten for what they say.
async fn add_sources(
    tx: &mut PgConnection,
    owner: Owner,
    known: &[Memory],
    strengthened: &[Strengthened],
) -> Result<(), sqlx::Error> {
    let identities: BTreeMap<MemoryId, String> =
        known.iter().map(|m| (m.id, identity(m))).collect();
    let sources: Vec<_> = strengthened
        .iter()
        .flat_map(|s| s.sources.iter().map(move |source| (s.id, *source)))
        .collect();
    let pairs: Vec<_> = sources
        .iter()
        .filter_map(|(id, source)| Some((source.message_id, identities.get(id)?.as_str())))
        .collect();
    let forgotten = forget::forgotten(tx, owner, &pairs).await?;
    let sources = sources
        .into_iter()
        .filter(|(id, source)| {
            let identity = identities.get(id).cloned().unwrap_or_default();
            !forgotten.contains(&(source.message_id, identity))
        })
        .collect();
    memories::add_sources(tx, owner, sources).await
}

#[async_trait]
impl LearningRepository for PostgresStore {
    async fn learning_snapshot(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Option<LearningSnapshot>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(snapshot(tx, owner, session))
            })
            .await
    }

    async fn taught_messages(
        &self,
        owner: Owner,
        session: SessionId,
        after: i64,
        up_to: i64,
        limit: u32,
    ) -> StoreResult<Vec<TaughtMessage>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(taught(tx, owner, session, (after, up_to), limit))
            })
            .await
    }

    async fn index_work(
        &self,
        owner: Owner,
        sessions: &[SessionId],
        limit: u32,
    ) -> StoreResult<Vec<IndexWork>> {
        let sessions: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
        self.database
            .read_many(owner.tenant, sessions, move |tx, sessions| {
                Box::pin(indexing::work(tx, owner, sessions, limit))
            })
            .await
    }

    async fn commit_index(
        &self,
        claim: &ClaimedJob,
        commit: IndexCommit,
    ) -> Result<(), JobWriteError> {
        indexing::commit(&self.database, claim.clone(), commit).await
    }

    async fn commit_indexes(
        &self,
        owner: Owner,
        commits: Vec<(ClaimedJob, IndexCommit)>,
    ) -> Vec<Result<(), JobWriteError>> {
        indexing::commit_all(&self.database, owner, commits).await
    }

    async fn commit_consolidation(
        &self,
        claim: &ClaimedJob,
        commit: ConsolidationCommit,
    ) -> Result<(), JobWriteError> {
        let input = (claim.clone(), commit);
        self.database
            .write(claim.job.owner.tenant, input, |tx, (claim, commit)| {
                Box::pin(commit_consolidation(tx, claim, commit))
            })
            .await
    }

    async fn pending_extractions(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Vec<PendingExtraction>> {
        self.database
            .read(owner.tenant, (), move |tx, ()| {
                Box::pin(extraction::pending(tx, owner, session))
            })
            .await
    }

    async fn commit_extraction(
        &self,
        claim: &ClaimedJob,
        commit: ExtractionCommit,
    ) -> Result<(), JobWriteError> {
        let input = (claim.clone(), commit);
        self.database
            .write(claim.job.owner.tenant, input, |tx, (claim, commit)| {
                Box::pin(extraction::commit(tx, claim, commit))
            })
            .await
    }

    async fn sessions_to_consolidate(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(Owner, SessionId)>> {
        self.database
            .before_tenant((), move |tx, ()| {
                Box::pin(extraction::to_consolidate(tx, before, limit))
            })
            .await
    }

    async fn enqueue_job(
        &self,
        owner: Owner,
        session: SessionId,
        job: NewJob,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.database
            .write(owner.tenant, (), move |tx, ()| {
                Box::pin(async move {
                    if sessions::lock(tx, owner, session).await?.is_some() {
                        jobs::enqueue(tx, owner, session, &[job], now).await?;
                    }
                    Ok::<_, Abort<StoreError>>(())
                })
            })
            .await
    }

    async fn commit_use(
        &self,
        claim: &ClaimedJob,
        change: ChangeId,
        now: Timestamp,
    ) -> Result<u64, JobWriteError> {
        uses::commit(&self.database, claim.clone(), change, now).await
    }

    async fn commit_uses(
        &self,
        owner: Owner,
        claims: Vec<(ClaimedJob, ChangeId)>,
        now: Timestamp,
    ) -> Vec<Result<(), JobWriteError>> {
        uses::commit_all(&self.database, owner, claims, now).await
    }
}
