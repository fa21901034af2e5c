//! The commit boundary of many turns in one transaction. One whose fence has moved takes nothing with it.

use std::collections::{BTreeSet, HashMap};

use futures::future::BoxFuture;
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::jobs::JobKind;
use tidemark_application::ports::store::StoreError;
use tidemark_application::ports::turns::{CommitTurn, Committed, TurnKey, TurnWriteError};
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{TenantId, Timestamp};
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{Turn, Usage, terminal_seq_after};
use uuid::Uuid;

use super::super::recalled::{self, kept_sql};
use super::super::rows::{TurnRow, turn_columns};
use super::super::together::{Asked, tell_failure};
use super::super::transaction::{Abort, Database};
use super::{end, tokens};

/// Locks those of some sessions that nobody else has locked.
const LOCK: &str = "
SELECT s.owner_id, s.id FROM sessions s JOIN unnest($2::bigint[], $3::uuid[]) AS w (owner_id, id) ON w.owner_id = s.owner_id AND w.id = s.id
WHERE s.tenant_id = $1 FOR UPDATE OF s SKIP LOCKED";

/// Ends the turns that are still their callers', appends their answers and enqueues what derives from them.
const COMMIT: &str = concat!(
    "WITH n AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset($2) AS r (owner_id bigint, session_id uuid, turn_id uuid, fence bigint, terminal_seq bigint,
            message_id uuid, text text, tool_calls jsonb, tool_call_id text, partial boolean, learnable boolean, finish_reason text,
            usage jsonb, recalled jsonb, now timestamptz)
     ), ended AS (
        UPDATE turns t SET status = 'completed', terminal_seq = n.terminal_seq, text = n.text, message_id = n.message_id,
            finish_reason = n.finish_reason, usage = n.usage,
            recalled = CASE WHEN n.recalled = '[]' THEN '[]' ELSE ",
    kept_sql!("n.recalled", "n.owner_id"),
    " END, ended_at = n.now, lease_until = NULL
        FROM n
        WHERE t.tenant_id = $1 AND t.owner_id = n.owner_id AND t.id = n.turn_id AND t.session_id = n.session_id AND t.fence = n.fence
            AND t.status = 'running'
        RETURNING t.*
     ), grown AS (
        UPDATE sessions s SET message_count = s.message_count + 1, updated_at = e.ended_at
        FROM ended e WHERE s.tenant_id = $1 AND s.owner_id = e.owner_id AND s.id = e.session_id
        RETURNING s.owner_id, s.id, s.message_count
     ), said AS (
        INSERT INTO messages (tenant_id, owner_id, id, session_id, turn_id, seq, role, content, tool_calls, tool_call_id, partial, learnable,
            created_at)
        SELECT $1, n.owner_id, n.message_id, n.session_id, n.turn_id, g.message_count, 'assistant', n.text, n.tool_calls, n.tool_call_id,
            n.partial, n.learnable, n.now
        FROM n JOIN grown g ON g.owner_id = n.owner_id AND g.id = n.session_id
     ), enqueued AS (
        INSERT INTO jobs (tenant_id, owner_id, session_id, id, kind, state, run_at, created_at)
        SELECT $1, e.owner_id, e.session_id, j.id, j.kind, 'pending', statement_timestamp(), e.ended_at
        FROM jsonb_to_recordset($3) AS j (turn_id uuid, id uuid, kind text) JOIN ended e ON e.id = j.turn_id
        ORDER BY e.owner_id, e.session_id, j.kind
        ON CONFLICT (tenant_id, owner_id, session_id, kind) WHERE state = 'pending' DO UPDATE SET state = 'pending'
     )
     SELECT ",
    turn_columns!(),
    ", EXISTS (
        SELECT FROM turns q WHERE q.tenant_id = $1 AND q.owner_id = t.owner_id AND q.session_id = t.session_id AND q.status = 'queued'
     ) AS may_wait FROM ended t"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK, COMMIT];

/// A turn to be committed, and the right to.
#[derive(Clone, Debug)]
pub(in super::super) struct Commit {
    pub(in super::super) key: TurnKey,
    pub(in super::super) turn: CommitTurn,
}

#[derive(Serialize)]
struct Row<'a> {
    owner_id: i64,
    session_id: Uuid,
    turn_id: Uuid,
    fence: i64,
    terminal_seq: i64,
    message_id: Uuid,
    text: &'a str,
    tool_calls: &'a [ToolCall],
    tool_call_id: Option<&'a str>,
    partial: bool,
    learnable: bool,
    finish_reason: &'static str,
    usage: &'a Usage,
    recalled: &'a [RecalledMemory],
    now: Timestamp,
}

#[derive(sqlx::FromRow)]
struct CommittedRow {
    #[sqlx(flatten)]
    turn: TurnRow,
    may_wait: bool,
}

#[derive(Serialize)]
struct Job {
    turn_id: Uuid,
    id: Uuid,
    kind: &'static str,
}

/// Commits turns of one tenant.
pub(in super::super) fn commit_all(
    database: &Database,
    tenant: TenantId,
    asked: Vec<Asked<Commit, Result<Committed, TurnWriteError>>>,
) -> BoxFuture<'static, ()> {
    let database = database.clone();
    Box::pin(async move {
        let mut together = Vec::new();
        let mut alone = Vec::new();
        let mut sessions = BTreeSet::new();
        for asked in asked {
            let Commit { key, turn } = &asked.item;
            // What is enqueued once an owner, or twice, is for the ordinary way.
            let (mut kinds, jobs) = (BTreeSet::new(), &turn.jobs);
            let plain = jobs
                .iter()
                .all(|job| job.kind != JobKind::Embed && kinds.insert(job.kind.as_str()));
            if plain && sessions.insert((key.owner.id, key.session_id)) {
                together.push(asked);
            } else {
                alone.push(asked);
            }
        }
        if !together.is_empty() {
            let items: Vec<Commit> = together.iter().map(|asked| asked.item.clone()).collect();
            let committed = database.write_many(tenant, items, move |tx, items| {
                Box::pin(commit(tx, tenant, items))
            });
            match committed.await {
                Ok(mut outcomes) => {
                    for asked in together.drain(..) {
                        match outcomes.remove(&asked.item.key.turn_id.0) {
                            Some(outcome) => {
                                let _ = asked.answer.send(outcome.ok_or(TurnWriteError::Fenced));
                            }
                            None => alone.push(asked),
                        }
                    }
                }
                Err(error) => {
                    tell_failure(&mut together, error);
                    alone.append(&mut together);
                }
            }
        }
        let each = alone.into_iter().map(|Asked { item, answer }| {
            let database = database.clone();
            async move {
                let committed = database.write(tenant, item, |tx, item| {
                    Box::pin(end::commit(tx, item.key, &item.turn))
                });
                let _ = answer.send(committed.await);
            }
        });
        // They may wait for others, and nobody is to wait for them.
        tokio::spawn(futures::future::join_all(each));
    })
}

/// The turns that were still their callers', as they are now; none for one that was not. What is left out is to be committed alone.
async fn commit(
    tx: &mut PgConnection,
    tenant: TenantId,
    commits: &[Commit],
) -> Result<HashMap<Uuid, Option<Committed>>, Abort<StoreError>> {
    let sessions = commits
        .iter()
        .map(|commit| (commit.key.owner.id.0, commit.key.session_id.0));
    let (owners, ids): (Vec<i64>, Vec<Uuid>) = sessions.unzip();
    let locked: Vec<(i64, Uuid)> = sqlx::query_as(LOCK)
        .bind(tenant.0)
        .bind(owners)
        .bind(ids)
        .fetch_all(&mut *tx)
        .await?;
    let locked: BTreeSet<(i64, Uuid)> = locked.into_iter().collect();
    let showing: BTreeSet<i64> = commits
        .iter()
        .filter(|commit| !commit.turn.recalled.is_empty())
        .map(|commit| commit.key.owner.id.0)
        .collect();
    let mut held = Vec::new();
    if !showing.is_empty() {
        let owners: Vec<i64> = showing.into_iter().collect();
        held = recalled::try_hold(tx, tenant, &owners).await?;
    }
    let commits = commits.iter().filter(|commit| {
        let (owner, session) = (commit.key.owner.id.0, commit.key.session_id.0);
        locked.contains(&(owner, session))
            && (commit.turn.recalled.is_empty() || held.contains(&owner))
    });
    let commits: Vec<&Commit> = commits.collect();
    if commits.is_empty() {
        return Ok(HashMap::new());
    }
    let mut outcomes: HashMap<Uuid, Option<Committed>> = commits
        .iter()
        .map(|commit| (commit.key.turn_id.0, None))
        .collect();
    let rows: Vec<Row<'_>> = commits.iter().map(|commit| row(commit)).collect();
    let jobs = commits.iter().flat_map(|commit| {
        commit.turn.jobs.iter().map(|job| Job {
            turn_id: commit.key.turn_id.0,
            id: job.id.0,
            kind: job.kind.as_str(),
        })
    });
    let turns: Vec<CommittedRow> = sqlx::query_as(COMMIT)
        .bind(tenant.0)
        .bind(Json(rows))
        .bind(Json(jobs.collect::<Vec<_>>()))
        .fetch_all(&mut *tx)
        .await?;
    for row in turns {
        let turn = Turn::try_from(row.turn)?;
        let may_wait = row.may_wait;
        outcomes.insert(turn.id.0, Some(Committed { turn, may_wait }));
    }
    let counted = commits.iter().filter(|commit| commit.turn.counts_tokens);
    let counted = counted.filter_map(|commit| {
        let committed = outcomes.get(&commit.key.turn_id.0)?.as_ref()?;
        Some((commit.key, &committed.turn))
    });
    tokens::add(tx, tenant, counted).await?;
    Ok(outcomes)
}

fn row(commit: &Commit) -> Row<'_> {
    let Commit { key, turn } = commit;
    Row {
        owner_id: key.owner.id.0,
        session_id: key.session_id.0,
        turn_id: key.turn_id.0,
        fence: key.fence,
        terminal_seq: terminal_seq_after(turn.events_used),
        message_id: turn.answer.id.0,
        text: &turn.answer.content,
        tool_calls: &turn.answer.tool_calls,
        tool_call_id: turn.answer.tool_call_id.as_deref(),
        partial: turn.answer.partial,
        learnable: turn.answer.learnable,
        finish_reason: turn.finish_reason.as_str(),
        usage: &turn.usage,
        recalled: &turn.recalled,
        now: turn.now,
    }
}
