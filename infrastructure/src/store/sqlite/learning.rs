//! What derived work reads, and the commits that apply it and remove its job.

use async_trait::async_trait;
use futures::future::join_all;
use sqlx::SqliteConnection;
use tidemark_application::ports::jobs::{ClaimedJob, JobWriteError, NewJob};
use tidemark_application::ports::learning::{
    ConsolidationCommit, ExtractionCommit, IndexCommit, IndexWork, LearningRepository,
    LearningSnapshot, PendingExtraction, Strengthened, TaughtMessage,
};
use tidemark_application::ports::memories::IndexedMemory;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{ChangeId, MemoryId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item, Op};
use tidemark_domain::memory::conflict::{Touched, repeat_any, said_again};
use tidemark_domain::memory::consolidation::identity;

use super::changes::Change;
use super::errors::store_error;
use super::memories::{lines, memory_columns, unexpired};
use super::messages::message_columns;
use super::rows::{self, Row, fingerprint, micros, owned};
use super::sessions::session_columns;
use super::statements::{database_now, statements};
use super::{SqliteStore, extraction, fading, history, jobs, memories, owners};

statements! {
    /// While a turn runs nobody else appends, so what lies before its first message is closed.
    SNAPSHOT = concat!("SELECT ", session_columns!(), ", owners.erase_epoch, \
         coalesce((SELECT t.first_seq - 1 FROM turns t WHERE t.tenant_id = s.tenant_id AND t.owner_id = s.owner_id \
             AND t.session_id = s.id AND t.status IN ('running', 'awaiting_approval')), s.message_count) AS last_closed \
         FROM sessions s JOIN owners ON owners.tenant_id = s.tenant_id AND owners.owner_id = s.owner_id \
         WHERE s.tenant_id = ?1 AND s.owner_id = ?2 AND s.id = ?3");
    TAUGHT = concat!("SELECT ", message_columns!(), ", coalesce(t.status = 'cancelled', 0) AS cancelled FROM messages m \
         LEFT JOIN turns t ON t.tenant_id = m.tenant_id AND t.owner_id = m.owner_id AND t.id = m.turn_id \
         WHERE m.tenant_id = ?1 AND m.owner_id = ?2 AND m.session_id = ?3 AND m.seq > ?4 AND m.seq <= ?5 \
         ORDER BY m.seq LIMIT ?6");
    MOVE_INDEXED = "UPDATE sessions SET indexed_seq = ?5 \
                    WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND indexed_seq = ?4";
    MOVE_BOUNDARY = "UPDATE sessions SET last_consolidated = ?5 \
                     WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND last_consolidated = ?4";
    COUNT_USE =
        "WITH used AS MATERIALIZED ( \
             SELECT unhex(replace(r.value ->> 'id', '-', '')) AS id, count(DISTINCT t.id) AS times \
             FROM turns t, json_each(t.recalled) r \
             WHERE t.tenant_id = ?1 AND t.owner_id = ?2 AND t.session_id = ?3 AND t.status = 'completed' AND t.use_counted = 0 \
             GROUP BY 1) \
         UPDATE memories SET access_count = access_count + (SELECT times FROM used WHERE used.id = memories.id), \
             last_access = max(last_access, ?4), change = ?5 \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND id IN (SELECT id FROM used)";
    /// Of what is going to be counted.
    SHOWN_FROM_THE_ARCHIVE = concat!("SELECT ", memory_columns!(), " FROM ( \
             SELECT DISTINCT unhex(replace(r.value ->> 'id', '-', '')) AS id FROM turns t, json_each(t.recalled) r \
             WHERE t.tenant_id = ?1 AND t.owner_id = ?2 AND t.session_id = ?3 AND t.status = 'completed' AND t.use_counted = 0) used \
         CROSS JOIN memories m ON m.tenant_id = ?1 AND m.owner_id = ?2 AND m.id = used.id \
         WHERE m.state = 'archived' AND ", unexpired!("?4"));
    MARK_COUNTED = "UPDATE turns SET use_counted = 1 \
                    WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 AND status = 'completed' AND use_counted = 0";
}

/// Removes the job and makes sure that nothing was erased since its work was decided on.
async fn begin(
    connection: &mut SqliteConnection,
    claim: &ClaimedJob,
    erase_epoch: i64,
) -> Result<(), JobWriteError> {
    jobs::finish(connection, claim).await?;
    check_epoch(connection, claim.job.owner, erase_epoch).await
}

/// Makes sure that nothing was erased since work was decided on.
pub(super) async fn check_epoch(
    connection: &mut SqliteConnection,
    owner: Owner,
    erase_epoch: i64,
) -> Result<(), JobWriteError> {
    if owners::erase_epoch(connection, owner).await? == erase_epoch {
        Ok(())
    } else {
        Err(JobWriteError::Conflict)
    }
}

/// Moves one of a session's cursors, if it is where the work found it.
async fn move_cursor(
    connection: &mut SqliteConnection,
    statement: &'static str,
    claim: &ClaimedJob,
    from: i64,
    to: i64,
) -> Result<(), JobWriteError> {
    let moved = owned(statement, claim.job.owner)
        .bind(claim.session()?.0)
        .bind(from)
        .bind(to)
        .execute(connection)
        .await
        .map_err(store_error)?;
    if moved.rows_affected() == 1 {
        Ok(())
    } else {
        Err(JobWriteError::Conflict)
    }
}

async fn index(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    commit: IndexCommit,
) -> Result<(), JobWriteError> {
    begin(connection, &claim, commit.erase_epoch).await?;
    move_cursor(
        connection,
        MOVE_INDEXED,
        &claim,
        commit.from_seq,
        commit.to_seq,
    )
    .await?;
    let (job, session) = (&claim.job, claim.session()?);
    let change = &Change::begin(connection, job.owner).await?;
    memories::expire(connection, job.owner, change, Some(commit.now)).await?;
    let mut added = Vec::new();
    for memory in commit.memories {
        if let Some(item) = teachable(connection, job.owner, memory).await?
            && memories::add(connection, job.owner, change, &item).await?
        {
            added.push(item.memory);
        }
    }
    let touched = Touched::by(&added);
    let settled = lines::settle(connection, job.owner, change, touched, Some(commit.now)).await?;
    let kept = domain::Change::indexing(
        commit.change,
        session,
        (commit.from_seq, commit.to_seq),
        commit.now,
        &added,
        settled,
    );
    if let Some(kept) = kept {
        history::record(connection, job.owner, kept).await?;
    }
    jobs::enqueue(connection, job.owner, session, &commit.jobs, commit.now).await?;
    Ok(())
}

/// Stores that a memory was said once more. The decision was made on this version of it, or on another one.
async fn strengthen(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    known: &Memory,
    strengthened: Strengthened,
    now: Timestamp,
) -> Result<(), JobWriteError> {
    if known.version != strengthened.version {
        return Err(JobWriteError::Conflict);
    }
    let said = said_again(known, strengthened.confidence, now);
    fading::put(connection, owner, change, &said).await?;
    let print = fingerprint(&identity(known));
    let sources = memories::teaching(connection, owner, &print, strengthened.sources).await?;
    Ok(memories::add_sources(connection, owner, strengthened.id, &sources).await?)
}

/// A memory without the sources that were forgotten for what it says; none if no other taught it.
async fn teachable(
    connection: &mut SqliteConnection,
    owner: Owner,
    mut item: IndexedMemory,
) -> StoreResult<Option<IndexedMemory>> {
    let taught = !item.memory.sources.is_empty();
    let print = fingerprint(&item.identity);
    item.memory.sources =
        memories::teaching(connection, owner, &print, item.memory.sources).await?;
    let forgotten = taught && item.memory.sources.is_empty();
    Ok((!forgotten).then_some(item))
}

/// New memories as they may be stored; what has no key and does not wait, each identity once.
async fn admitted(
    connection: &mut SqliteConnection,
    owner: Owner,
    new: Vec<IndexedMemory>,
) -> StoreResult<Vec<IndexedMemory>> {
    let mut admitted: Vec<IndexedMemory> = Vec::with_capacity(new.len());
    for item in new {
        let once = item.memory.key.is_some() || memories::waits(&item);
        let mut others = admitted.iter().filter(|other| !memories::waits(other));
        let twice = !once && others.any(|other| other.identity == item.identity);
        if !twice && let Some(item) = teachable(connection, owner, item).await? {
            admitted.push(item);
        }
    }
    Ok(admitted)
}

/// Stores new semantic memory, as rules found and as a model worded it, strengthens what was said again, settles what is said of their keys, and
/// tells what became of each.
pub(super) async fn learn(
    connection: &mut SqliteConnection,
    owner: Owner,
    (new, worded, strengthened): (Vec<IndexedMemory>, Vec<IndexedMemory>, Vec<Strengthened>),
    now: Timestamp,
) -> Result<Vec<Item>, JobWriteError> {
    let change = &Change::begin(connection, owner).await?;
    memories::expire(connection, owner, change, Some(now)).await?;
    let mut items = strengthen_all(connection, owner, change, strengthened, now).await?;
    let mut all = new;
    all.extend(extraction::admitted(connection, owner, worded).await?);
    let new = admitted(connection, owner, all).await?;
    let new = memories::unsaid(connection, owner, new).await?;
    refuse_repetitions(connection, owner, &new, now).await?;
    for item in &new {
        if memories::add(connection, owner, change, item).await? {
            items.push(Item::created(&item.memory));
        }
    }
    let touched = Touched::by(new.iter().map(|item| &item.memory));
    items.extend(lines::settle(connection, owner, change, touched, Some(now)).await?);
    Ok(items)
}

/// Refuses what would only repeat something that came after the work was decided on.
async fn refuse_repetitions(
    connection: &mut SqliteConnection,
    owner: Owner,
    new: &[IndexedMemory],
    now: Timestamp,
) -> Result<(), JobWriteError> {
    let (keyed, others): (Vec<_>, Vec<_>) = new.iter().partition(|item| item.memory.key.is_some());
    let identities: Vec<String> = others.iter().map(|item| item.identity.clone()).collect();
    let keyed: Vec<&Memory> = keyed.iter().map(|item| &item.memory).collect();
    let line = match Touched::by(keyed.iter().copied()) {
        Some(touched) => lines::of(&mut *connection, owner, &touched, Some(now)).await?,
        None => Vec::new(),
    };
    let moved = repeat_any(&line, &keyed)
        || memories::any_known(connection, owner, &identities, now).await?;
    if moved {
        Err(JobWriteError::Conflict)
    } else {
        Ok(())
    }
}

/// Strengthens memories, and tells what became of each.
async fn strengthen_all(
    connection: &mut SqliteConnection,
    owner: Owner,
    change: &Change,
    strengthened: Vec<Strengthened>,
    now: Timestamp,
) -> Result<Vec<Item>, JobWriteError> {
    let ids: Vec<MemoryId> = strengthened.iter().map(|s| s.id).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let before = memories::by_ids(&mut *connection, owner, &ids, Some(now)).await?;
    for again in strengthened {
        let known = before.iter().find(|memory| memory.id == again.id);
        let known = known.ok_or(JobWriteError::Conflict)?;
        strengthen(connection, owner, change, known, again, now).await?;
    }
    let after = memories::by_ids(&mut *connection, owner, &ids, Some(now)).await?;
    let changed = after.iter().filter_map(|after| {
        let before = before.iter().find(|before| before.id == after.id)?;
        Some(Item::changed(before, after, Op::Strengthened))
    });
    Ok(changed.collect())
}

async fn consolidate(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    commit: ConsolidationCommit,
) -> Result<(), JobWriteError> {
    begin(connection, &claim, commit.erase_epoch).await?;
    let (from, to) = (commit.from_seq, commit.to_seq);
    move_cursor(connection, MOVE_BOUNDARY, &claim, from, to).await?;
    let (owner, session, now) = (claim.job.owner, claim.session()?, commit.now);
    let taught = (commit.new, commit.worded, commit.strengthened);
    let items = learn(connection, owner, taught, now).await?;
    if let Some(unanswered) = commit.pending {
        let note = ((from, to), unanswered);
        extraction::note(connection, owner, session, note, now).await?;
    }
    let kept = domain::Change::new(commit.change, ChangeKind::Consolidation, now, items)
        .of_session(Some(session))
        .over(from, to);
    history::record(connection, owner, kept).await?;
    jobs::enqueue(connection, owner, session, &commit.jobs, now).await?;
    Ok(())
}

async fn count_use(
    connection: &mut SqliteConnection,
    claim: ClaimedJob,
    id: ChangeId,
    now: Timestamp,
) -> Result<u64, JobWriteError> {
    jobs::finish(connection, &claim).await?;
    let (owner, session) = (claim.job.owner, claim.session()?);
    let change = Change::begin(connection, owner).await?;
    let archived = owned(SHOWN_FROM_THE_ARCHIVE, owner)
        .bind(session.0)
        .bind(micros(now))
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let counted = owned(COUNT_USE, owner)
        .bind(session.0)
        .bind(micros(now))
        .bind(change.number())
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    owned(MARK_COUNTED, owner)
        .bind(session.0)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let archived = memories::read_all(&archived)?;
    fading::revive(connection, owner, &change, &archived, (id, session), now).await?;
    Ok(counted.rows_affected())
}

#[async_trait]
impl LearningRepository for SqliteStore {
    async fn learning_snapshot(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Option<LearningSnapshot>> {
        let found = owned(SNAPSHOT, owner)
            .bind(session.0)
            .fetch_optional(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .map(|row| {
                let session = rows::session(&row)?;
                let row = Row::of("sessions", &row);
                Ok(LearningSnapshot {
                    session,
                    erase_epoch: row.get("erase_epoch")?,
                    last_closed: row.get("last_closed")?,
                })
            })
            .transpose()
    }

    async fn taught_messages(
        &self,
        owner: Owner,
        session: SessionId,
        after: i64,
        up_to: i64,
        limit: u32,
    ) -> StoreResult<Vec<TaughtMessage>> {
        let found = owned(TAUGHT, owner)
            .bind(session.0)
            .bind(after)
            .bind(up_to)
            .bind(i64::from(limit))
            .fetch_all(&self.readers)
            .await
            .map_err(store_error)?;
        found
            .iter()
            .map(|row| {
                Ok(TaughtMessage {
                    message: rows::message(row)?,
                    cancelled: Row::of("turns", row).get("cancelled")?,
                })
            })
            .collect()
    }

    async fn index_work(
        &self,
        owner: Owner,
        sessions: &[SessionId],
        limit: u32,
    ) -> StoreResult<Vec<IndexWork>> {
        let mut all = Vec::with_capacity(sessions.len());
        for session in sessions {
            let Some(snapshot) = self.learning_snapshot(owner, *session).await? else {
                continue;
            };
            let (after, up_to) = (snapshot.session.indexed_seq, snapshot.last_closed);
            let messages = self.taught_messages(owner, *session, after, up_to, limit);
            let messages = messages.await?;
            all.push(IndexWork { snapshot, messages });
        }
        Ok(all)
    }

    async fn commit_index(
        &self,
        claim: &ClaimedJob,
        commit: IndexCommit,
    ) -> Result<(), JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(index(c, claim, commit)))
            .await
    }

    /// The writer takes them into one transaction.
    async fn commit_indexes(
        &self,
        _owner: Owner,
        commits: Vec<(ClaimedJob, IndexCommit)>,
    ) -> Vec<Result<(), JobWriteError>> {
        let each = commits
            .into_iter()
            .map(|(claim, commit)| async move { self.commit_index(&claim, commit).await });
        join_all(each).await
    }

    async fn commit_consolidation(
        &self,
        claim: &ClaimedJob,
        commit: ConsolidationCommit,
    ) -> Result<(), JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(consolidate(c, claim, commit)))
            .await
    }

    async fn pending_extractions(
        &self,
        owner: Owner,
        session: SessionId,
    ) -> StoreResult<Vec<PendingExtraction>> {
        extraction::pending(&self.readers, owner, session).await
    }

    async fn commit_extraction(
        &self,
        claim: &ClaimedJob,
        commit: ExtractionCommit,
    ) -> Result<(), JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(extraction::commit(c, claim, commit)))
            .await
    }

    async fn sessions_to_consolidate(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(Owner, SessionId)>> {
        extraction::to_consolidate(&self.readers, before, limit).await
    }

    async fn enqueue_job(
        &self,
        owner: Owner,
        session: SessionId,
        job: NewJob,
        now: Timestamp,
    ) -> StoreResult<()> {
        self.writer
            .write(move |c| Box::pin(extraction::enqueue(c, owner, session, job, now)))
            .await
    }

    async fn commit_use(
        &self,
        claim: &ClaimedJob,
        change: ChangeId,
        now: Timestamp,
    ) -> Result<u64, JobWriteError> {
        let claim = claim.clone();
        self.writer
            .write(move |c| Box::pin(count_use(c, claim, change, now)))
            .await
    }

    /// The writer takes them into one transaction.
    async fn commit_uses(
        &self,
        _owner: Owner,
        claims: Vec<(ClaimedJob, ChangeId)>,
        now: Timestamp,
    ) -> Vec<Result<(), JobWriteError>> {
        let each = claims.into_iter().map(|(claim, change)| async move {
            self.commit_use(&claim, change, now).await.map(|_| ())
        });
        join_all(each).await
    }
}
