//! What is there at the end: in the database, and as each replica tells it.

use std::collections::BTreeMap;

use futures::StreamExt;
use serde::Serialize;
use serde_json::Value;
use sqlx::{Connection, FromRow, PgConnection};

use super::cluster::Cluster;

/// How many requests are sent to a replica at once.
const AT_ONCE: usize = 8;

/// Everything that the checker looks at beside the history.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Stored {
    pub turns: Vec<TurnRow>,
    /// By session and number.
    pub messages: Vec<MessageRow>,
    pub sessions: Vec<SessionRow>,
    pub jobs: Vec<JobRow>,
    pub memories: Vec<MemoryRow>,
    /// By session, in the order in which they were made.
    pub consolidations: Vec<ConsolidationRow>,
    pub replicas: Vec<AtReplica>,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct TurnRow {
    pub id: String,
    pub session: String,
    pub status: String,
    pub input: String,
    pub text: Option<String>,
    pub message_id: Option<String>,
    pub terminal_seq: Option<i64>,
    pub first_seq: Option<i64>,
    /// The memories that it was shown.
    pub recalled: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct MessageRow {
    pub id: String,
    pub session: String,
    pub turn: String,
    pub seq: i64,
    pub role: String,
    pub content: String,
    pub partial: bool,
    pub learnable: bool,
    /// How many calls of tools it makes.
    pub calls: i32,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct SessionRow {
    pub id: String,
    pub user: String,
    pub message_count: i64,
    pub last_consolidated: i64,
    pub indexed_seq: i64,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct JobRow {
    pub id: String,
    pub session: Option<String>,
    pub kind: String,
    pub state: String,
    pub attempts: i32,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct MemoryRow {
    pub id: String,
    pub user: String,
    pub layer: String,
    pub content: String,
    pub access_count: i64,
    /// The messages that it is from.
    pub sources: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, FromRow)]
pub(crate) struct ConsolidationRow {
    pub session: String,
    pub from_seq: i64,
    pub to_seq: i64,
}

/// What one replica tells.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct AtReplica {
    pub ready: Value,
    pub turns: BTreeMap<String, Value>,
    pub histories: BTreeMap<String, Vec<Value>>,
}

/// How much is still open: turns that have not ended, and jobs that are to be done.
pub(crate) async fn open(url: &str) -> (i64, i64) {
    let mut connection = connect(url).await;
    let counts = sqlx::query_as(
        "SELECT (SELECT count(*) FROM turns WHERE ended_at IS NULL), (SELECT count(*) FROM jobs WHERE state <> 'failed')",
    );
    counts.fetch_one(&mut connection).await.expect("counts")
}

/// Reads everything; nothing may happen meanwhile.
pub(crate) async fn read(cluster: &Cluster) -> Stored {
    let mut connection = connect(&cluster.store_url).await;
    let mut stored = Stored {
        turns: rows(&mut connection, TURNS).await,
        messages: rows(&mut connection, MESSAGES).await,
        sessions: rows(&mut connection, SESSIONS).await,
        jobs: rows(&mut connection, JOBS).await,
        memories: rows(&mut connection, MEMORIES).await,
        consolidations: rows(&mut connection, CONSOLIDATIONS).await,
        replicas: Vec::new(),
    };
    for at in 0..cluster.replicas.len() {
        let told = at_replica(cluster, at, &stored).await;
        stored.replicas.push(told);
    }
    stored
}

const TURNS: &str = "
SELECT t.id::text, t.session_id::text AS session, t.status, t.input, t.text, t.message_id::text, t.terminal_seq, t.first_seq,
    ARRAY(SELECT r ->> 'id' FROM jsonb_array_elements(t.recalled) r) AS recalled
FROM turns t ORDER BY t.session_id, t.created_at, t.id";

const MESSAGES: &str = "
SELECT id::text, session_id::text AS session, turn_id::text AS turn, seq, role, content, partial, learnable,
    jsonb_array_length(tool_calls) AS calls
FROM messages ORDER BY session_id, seq";

const SESSIONS: &str = "
SELECT s.id::text, o.name AS user, s.message_count, s.last_consolidated, s.indexed_seq
FROM sessions s JOIN owners o USING (tenant_id, owner_id) ORDER BY s.id";

const JOBS: &str = "
SELECT id::text, session_id::text AS session, kind, state, attempts, last_error AS error FROM jobs ORDER BY created_at";

const MEMORIES: &str = "
SELECT m.id::text, o.name AS user, m.layer, m.content, m.access_count,
    ARRAY(
        SELECT s.message_id::text FROM memory_sources s
        WHERE s.tenant_id = m.tenant_id AND s.owner_id = m.owner_id AND s.memory_id = m.id
    ) AS sources
FROM memories m JOIN owners o USING (tenant_id, owner_id) ORDER BY m.id";

const CONSOLIDATIONS: &str = "
SELECT session_id::text AS session, from_seq, to_seq FROM changes
WHERE kind = 'consolidation' AND session_id IS NOT NULL ORDER BY session_id, number";

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url)
        .await
        .expect("PostgreSQL answers")
}

async fn rows<T>(connection: &mut PgConnection, statement: &'static str) -> Vec<T>
where
    T: for<'r> FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
{
    let rows = sqlx::query_as(statement).fetch_all(connection).await;
    rows.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

async fn at_replica(cluster: &Cluster, at: usize, stored: &Stored) -> AtReplica {
    let user_of: BTreeMap<&str, &str> = stored
        .sessions
        .iter()
        .map(|session| (session.id.as_str(), session.user.as_str()))
        .collect();
    let turns = stored.turns.iter().map(|turn| {
        let client = cluster.client(at, user_of[turn.session.as_str()]);
        async move {
            let told = client.get(&format!("/v1/turns/{}", turn.id)).await;
            (turn.id.clone(), told.body)
        }
    });
    let histories = stored.sessions.iter().map(|session| {
        let client = cluster.client(at, &session.user);
        async move { (session.id.clone(), client.history(&session.id).await) }
    });
    AtReplica {
        ready: cluster.client(at, "nobody").get("/readyz").await.body,
        turns: all(turns).await,
        histories: all(histories).await,
    }
}

async fn all<T>(
    asked: impl Iterator<Item = impl Future<Output = (String, T)>>,
) -> BTreeMap<String, T> {
    futures::stream::iter(asked)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}
