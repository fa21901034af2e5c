//! Rows as types, and the names of values in columns.

use sqlx::postgres::PgArguments;
use sqlx::query::{Query, QueryAs};
use sqlx::types::Json;
use sqlx::{FromRow, Postgres};
use tidemark_application::ports::jobs::{Job, JobKind, JobState};
use tidemark_domain::event::RecalledMemory;
use tidemark_domain::ids::{
    JobId, MemoryId, MessageId, Owner, OwnerId, SessionId, TenantId, Timestamp, TurnId,
};
use tidemark_domain::memory::{Kind, Layer, Memory, Scope, Source, State, Trust};
use tidemark_domain::session::{MemoryMode, Message, Role, Session};
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Turn, TurnOptions, TurnProblem, TurnStatus, Usage};
use uuid::Uuid;

/// A statement whose first two parameters are the owner.
pub(super) fn owned(sql: &'static str, owner: Owner) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(sql).bind(owner.tenant.0).bind(owner.id.0)
}

/// The same, with rows of a type.
pub(super) fn owned_as<T>(
    sql: &'static str,
    owner: Owner,
) -> QueryAs<'static, Postgres, T, PgArguments>
where
    T: for<'r> FromRow<'r, sqlx::postgres::PgRow>,
{
    sqlx::query_as(sql).bind(owner.tenant.0).bind(owner.id.0)
}

/// A column holds what this program cannot have written.
pub(super) fn unexpected(column: &'static str) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: "an unexpected value".into(),
    }
}

pub(super) fn named<T>(
    column: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, sqlx::Error> {
    parse(text).ok_or_else(|| unexpected(column))
}

/// The columns of [`SessionRow`], of the table alias `s`.
macro_rules! session_columns {
    () => {
        "s.id, s.title, s.labels, s.channel, s.memory, s.message_count, s.last_consolidated, s.indexed_seq, s.version, \
         s.created_at, s.updated_at, \
         (SELECT a.id FROM turns a WHERE a.tenant_id = s.tenant_id AND a.owner_id = s.owner_id AND a.session_id = s.id \
          AND a.status IN ('queued', 'running', 'awaiting_approval') \
          ORDER BY a.status = 'queued', a.created_at, a.id LIMIT 1) AS active_turn"
    };
}
pub(super) use session_columns;

#[derive(FromRow)]
pub(super) struct SessionRow {
    id: Uuid,
    title: Option<String>,
    labels: Vec<String>,
    channel: String,
    memory: String,
    message_count: i64,
    last_consolidated: i64,
    indexed_seq: i64,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    active_turn: Option<Uuid>,
}

impl TryFrom<SessionRow> for Session {
    type Error = sqlx::Error;

    fn try_from(row: SessionRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: SessionId(row.id),
            title: row.title,
            labels: row.labels,
            channel: row.channel,
            memory: named("sessions.memory", &row.memory, MemoryMode::parse)?,
            created_at: row.created_at,
            updated_at: row.updated_at,
            message_count: row.message_count,
            last_consolidated: row.last_consolidated,
            indexed_seq: row.indexed_seq,
            version: row.version,
            active_turn: row.active_turn.map(TurnId),
        })
    }
}

/// The columns of [`MessageRow`], of the table alias `m`.
macro_rules! message_columns {
    () => {
        "m.id, m.session_id, m.turn_id, m.seq, m.role, m.content, m.name, m.tool_calls, m.tool_call_id, m.partial, m.learnable, \
         m.created_at"
    };
}
pub(super) use message_columns;

#[derive(FromRow)]
pub(super) struct MessageRow {
    id: Uuid,
    session_id: Uuid,
    turn_id: Option<Uuid>,
    seq: i64,
    role: String,
    content: String,
    name: Option<String>,
    tool_calls: Json<Vec<ToolCall>>,
    tool_call_id: Option<String>,
    partial: bool,
    learnable: bool,
    created_at: Timestamp,
}

impl TryFrom<MessageRow> for Message {
    type Error = sqlx::Error;

    fn try_from(row: MessageRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: MessageId(row.id),
            session_id: SessionId(row.session_id),
            turn_id: row.turn_id.map(TurnId),
            seq: row.seq,
            role: named("messages.role", &row.role, Role::parse)?,
            content: row.content,
            name: row.name,
            tool_calls: row.tool_calls.0,
            tool_call_id: row.tool_call_id,
            partial: row.partial,
            learnable: row.learnable,
            created_at: row.created_at,
        })
    }
}

/// The columns of [`TurnRow`], of the table alias `t`.
macro_rules! turn_columns {
    () => {
        "t.id, t.session_id, t.status, t.input, t.memory, t.options, t.fence, t.events_reserved, t.terminal_seq, t.text, t.message_id, \
         t.finish_reason, t.usage, t.recalled, t.problem, t.cancel_requested, t.created_at, t.started_at, t.ended_at"
    };
}
pub(super) use turn_columns;

#[derive(FromRow)]
pub(super) struct TurnRow {
    id: Uuid,
    session_id: Uuid,
    status: String,
    input: String,
    memory: String,
    options: Json<TurnOptions>,
    fence: i64,
    events_reserved: i64,
    terminal_seq: Option<i64>,
    text: Option<String>,
    message_id: Option<Uuid>,
    finish_reason: Option<String>,
    usage: Option<Json<Usage>>,
    recalled: Json<Vec<RecalledMemory>>,
    problem: Option<Json<TurnProblem>>,
    cancel_requested: bool,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

impl TryFrom<TurnRow> for Turn {
    type Error = sqlx::Error;

    fn try_from(row: TurnRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: TurnId(row.id),
            session_id: SessionId(row.session_id),
            status: named("turns.status", &row.status, TurnStatus::parse)?,
            input: row.input,
            memory: named("turns.memory", &row.memory, MemoryMode::parse)?,
            options: row.options.0,
            fence: row.fence,
            events_reserved: row.events_reserved,
            terminal_seq: row.terminal_seq,
            text: row.text,
            message_id: row.message_id.map(MessageId),
            finish_reason: row
                .finish_reason
                .map(|name| named("turns.finish_reason", &name, FinishReason::parse))
                .transpose()?,
            usage: row.usage.map(|usage| usage.0),
            recalled: row.recalled.0,
            problem: row.problem.map(|problem| problem.0),
            cancel_requested: row.cancel_requested,
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
        })
    }
}

/// The columns of [`JobRow`], of the table alias `j`.
macro_rules! job_columns {
    () => {
        "j.tenant_id, j.owner_id, j.id, j.session_id, j.kind, j.state, j.attempts, j.run_at, j.token, j.last_error, j.created_at"
    };
}
pub(super) use job_columns;

#[derive(FromRow)]
pub(super) struct JobRow {
    tenant_id: Uuid,
    owner_id: i64,
    id: Uuid,
    session_id: Option<Uuid>,
    kind: String,
    state: String,
    attempts: i32,
    run_at: Timestamp,
    pub(super) token: i64,
    last_error: Option<String>,
    created_at: Timestamp,
}

impl TryFrom<JobRow> for Job {
    type Error = sqlx::Error;

    fn try_from(row: JobRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: JobId(row.id),
            owner: Owner {
                tenant: TenantId(row.tenant_id),
                id: OwnerId(row.owner_id),
            },
            session_id: row.session_id.map(SessionId),
            kind: job_kind(&row.kind)?,
            state: job_state(&row.state)?,
            attempts: row.attempts,
            run_at: row.run_at,
            last_error: row.last_error,
            created_at: row.created_at,
        })
    }
}

pub(super) fn job_kind(name: &str) -> Result<JobKind, sqlx::Error> {
    named("jobs.kind", name, JobKind::parse)
}

pub(super) fn job_state(name: &str) -> Result<JobState, sqlx::Error> {
    named("jobs.state", name, JobState::parse)
}

/// The columns of [`MemoryRow`], of the table alias `m`.
macro_rules! memory_columns {
    () => {
        "m.id, m.content, m.speaker, m.scope, m.kind, m.layer, m.state, m.importance, m.confidence, m.trust, m.pinned, m.key, m.session_id, \
         m.valid_from, m.valid_to, m.superseded_by, m.ended_at, m.expires_at, m.created_at, m.access_count, m.last_access, m.version, \
         (SELECT coalesce(jsonb_agg(jsonb_build_object('message_id', x.message_id, 'session_id', x.session_id, 'seq', x.seq) \
          ORDER BY x.session_id, x.seq), '[]') \
          FROM memory_sources x WHERE x.tenant_id = m.tenant_id AND x.owner_id = m.owner_id AND x.memory_id = m.id) AS sources"
    };
}
pub(super) use memory_columns;

#[derive(FromRow)]
pub(super) struct MemoryRow {
    id: Uuid,
    content: String,
    speaker: Option<String>,
    scope: String,
    kind: String,
    layer: String,
    state: String,
    importance: i16,
    confidence: f64,
    trust: String,
    pinned: bool,
    key: Option<String>,
    session_id: Option<Uuid>,
    sources: Json<Vec<Source>>,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    superseded_by: Option<Uuid>,
    ended_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
    access_count: i64,
    last_access: Timestamp,
    version: i64,
}

impl TryFrom<MemoryRow> for Memory {
    type Error = sqlx::Error;

    fn try_from(row: MemoryRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: MemoryId(row.id),
            content: row.content,
            speaker: row.speaker,
            scope: named("memories.scope", &row.scope, Scope::parse)?,
            kind: named("memories.kind", &row.kind, Kind::parse)?,
            layer: named("memories.layer", &row.layer, Layer::parse)?,
            state: named("memories.state", &row.state, State::parse)?,
            importance: u8::try_from(row.importance)
                .map_err(|_| unexpected("memories.importance"))?,
            confidence: row.confidence,
            trust: named("memories.trust", &row.trust, Trust::parse)?,
            pinned: row.pinned,
            key: row.key,
            session_id: row.session_id.map(SessionId),
            sources: row.sources.0,
            valid_from: row.valid_from,
            valid_to: row.valid_to,
            superseded_by: row.superseded_by.map(MemoryId),
            ended_at: row.ended_at,
            expires_at: row.expires_at,
            created_at: row.created_at,
            access_count: row.access_count,
            last_access: row.last_access,
            version: row.version,
        })
    }
}

/// Rows as values.
pub(super) fn all<R, T: TryFrom<R, Error = sqlx::Error>>(
    rows: Vec<R>,
) -> Result<Vec<T>, sqlx::Error> {
    rows.into_iter().map(T::try_from).collect()
}
