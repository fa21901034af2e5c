//! What turns' contexts are made from: of many turns in one transaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use sqlx::PgConnection;
use tidemark_application::ports::context::{
    ContextRepository, ContextWanted, RecallBase, TurnContext,
};
use tidemark_application::ports::store::{StoreError, StoreResult};
use tidemark_domain::ids::{Owner, TenantId, Timestamp};
use tidemark_domain::memory::Memory;
use tidemark_domain::session::Message;
use uuid::Uuid;

use super::PostgresStore;
use super::rows::{MemoryRow, MessageRow, memory_columns, message_columns};
use super::together::Asked;
use super::transaction::{Abort, Database};

/// A subquery of one row: the planner would rather look through all tombstones than for one.
const OWNERS: &str = "
SELECT o.owner_id, o.memory_change, (
    SELECT b.owner_id FROM tombstones b WHERE b.tenant_id = $1 AND b.owner_id = o.owner_id LIMIT 1
) IS NOT NULL FROM owners o WHERE o.tenant_id = $1 AND o.owner_id = ANY ($2)";

/// The newest messages of each session, the newest first.
const MESSAGES: &str = concat!(
    "SELECT w.place, ",
    message_columns!(),
    " FROM unnest($2::bigint[], $3::uuid[], $4::bigint[]) WITH ORDINALITY AS w (owner_id, session_id, most, place)
      CROSS JOIN LATERAL (
        SELECT * FROM messages n
        WHERE n.tenant_id = $1 AND n.owner_id = w.owner_id AND n.session_id = w.session_id ORDER BY n.seq DESC LIMIT w.most
      ) m
      ORDER BY w.place, m.seq DESC"
);

/// As `messages::UNINDEXED`, of several owners.
const UNINDEXED: &str = concat!(
    "SELECT w.place, ",
    message_columns!(),
    " FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (owner_id, most, place)
      CROSS JOIN LATERAL (
        SELECT n.* FROM sessions s CROSS JOIN LATERAL (
            SELECT * FROM messages o
            WHERE o.tenant_id = $1 AND o.owner_id = w.owner_id AND o.session_id = s.id AND o.learnable
                AND o.seq > greatest(s.indexed_seq, s.message_count - w.most)
            OFFSET 0
        ) n
        WHERE s.tenant_id = $1 AND s.owner_id = w.owner_id AND s.unindexed
            AND (n.turn_id IS NULL OR (
                SELECT t.status FROM turns t WHERE t.tenant_id = $1 AND t.owner_id = w.owner_id AND t.id = n.turn_id
            ) IN ('completed', 'failed', 'interrupted'))
        ORDER BY n.created_at DESC, n.id DESC LIMIT w.most
      ) m
      ORDER BY w.place, m.created_at DESC, m.id DESC"
);

/// As `memories::PREFERENCES`, of several owners.
const PREFERENCES: &str = concat!(
    "SELECT w.place, ",
    memory_columns!(),
    " FROM unnest($2::bigint[], $3::timestamptz[], $4::bigint[]) WITH ORDINALITY AS w (owner_id, now, most, place)
      CROSS JOIN LATERAL (
        SELECT * FROM memories n
        WHERE n.tenant_id = $1 AND n.owner_id = w.owner_id AND n.state = 'current' AND n.scope = 'user_profile' AND n.kind = 'preference'
            AND (n.expires_at IS NULL OR n.expires_at > w.now)
        ORDER BY n.valid_from DESC, n.id DESC LIMIT w.most
      ) m
      ORDER BY w.place, m.valid_from DESC, m.id DESC"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[OWNERS, MESSAGES, UNINDEXED, PREFERENCES];

/// What is wanted of whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    owner: Owner,
    context: ContextWanted,
}

#[derive(sqlx::FromRow)]
struct PlacedMessage {
    place: i64,
    #[sqlx(flatten)]
    message: MessageRow,
}

#[derive(sqlx::FromRow)]
struct PlacedMemory {
    place: i64,
    #[sqlx(flatten)]
    memory: MemoryRow,
}

/// Reads for turns of one tenant.
pub(super) fn read_all(
    database: &Database,
    tenant: TenantId,
    asked: Vec<Asked<Wanted, StoreResult<TurnContext>>>,
) -> BoxFuture<'static, ()> {
    let database = database.clone();
    Box::pin(async move {
        let wanted: Vec<Wanted> = asked.iter().map(|asked| asked.item).collect();
        let contexts = database.read_many(tenant, wanted, move |tx, wanted| {
            Box::pin(read(tx, tenant, wanted))
        });
        match contexts.await {
            Ok(contexts) => {
                for (asked, context) in asked.into_iter().zip(contexts) {
                    let _ = asked.answer.send(Ok(context));
                }
            }
            // Each reads what it needs by itself then.
            Err(error) => {
                let error = Arc::new(error);
                for asked in asked {
                    let _ = asked.answer.send(Err(error.shared()));
                }
            }
        }
    })
}

async fn read(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[Wanted],
) -> Result<Vec<TurnContext>, Abort<StoreError>> {
    let mut messages = messages(tx, tenant, wanted).await?;
    let asking: BTreeSet<i64> = wanted
        .iter()
        .filter(|wanted| wanted.context.recall.is_some())
        .map(|wanted| wanted.owner.id.0)
        .collect();
    if asking.is_empty() {
        let contexts = wanted.iter().enumerate().map(|(place, _)| TurnContext {
            messages: messages.remove(&place).unwrap_or_default(),
            recall: None,
        });
        return Ok(contexts.collect());
    }
    let owners: Vec<i64> = asking.into_iter().collect();
    let states: Vec<(i64, i64, bool)> = sqlx::query_as(OWNERS)
        .bind(tenant.0)
        .bind(owners)
        .fetch_all(&mut *tx)
        .await?;
    let states: HashMap<i64, (i64, bool)> = states
        .into_iter()
        .map(|(owner, change, forgotten)| (owner, (change, forgotten)))
        .collect();
    let mut unindexed = unindexed(tx, tenant, wanted).await?;
    let mut preferences = preferences(tx, tenant, wanted, &states).await?;
    let contexts = wanted.iter().enumerate().map(|(place, wanted)| {
        let (change, has_forgotten) = states.get(&wanted.owner.id.0).copied().unwrap_or_default();
        TurnContext {
            messages: messages.remove(&place).unwrap_or_default(),
            recall: wanted.context.recall.map(|_| RecallBase {
                unindexed: unindexed.remove(&place).unwrap_or_default(),
                preferences: preferences.remove(&place).unwrap_or_default(),
                has_forgotten,
                change,
            }),
        }
    });
    Ok(contexts.collect())
}

/// The newest messages of the sessions, the oldest of them first.
async fn messages(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[Wanted],
) -> Result<HashMap<usize, Vec<Message>>, sqlx::Error> {
    let reading = wanted
        .iter()
        .enumerate()
        .filter(|(_, wanted)| wanted.context.messages > 0);
    let places: Vec<usize> = reading.clone().map(|(place, _)| place).collect();
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let owners: Vec<i64> = reading.clone().map(|(_, w)| w.owner.id.0).collect();
    let sessions: Vec<Uuid> = reading.clone().map(|(_, w)| w.context.session.0).collect();
    let most: Vec<i64> = reading.map(|(_, w)| w.context.messages.into()).collect();
    let rows: Vec<PlacedMessage> = sqlx::query_as(MESSAGES)
        .bind(tenant.0)
        .bind(owners)
        .bind(sessions)
        .bind(most)
        .fetch_all(tx)
        .await?;
    let mut read = placed(
        rows.into_iter().map(|row| (row.place, row.message)),
        &places,
    )?;
    for messages in read.values_mut() {
        messages.reverse();
    }
    Ok(read)
}

async fn unindexed(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[Wanted],
) -> Result<HashMap<usize, Vec<Message>>, sqlx::Error> {
    let asking = wanted
        .iter()
        .enumerate()
        .filter_map(|(place, wanted)| Some((place, wanted.owner.id.0, wanted.context.recall?)));
    let places: Vec<usize> = asking.clone().map(|(place, ..)| place).collect();
    let owners: Vec<i64> = asking.clone().map(|(_, owner, _)| owner).collect();
    let most: Vec<i64> = asking.map(|(.., recall)| recall.unindexed.into()).collect();
    let rows: Vec<PlacedMessage> = sqlx::query_as(UNINDEXED)
        .bind(tenant.0)
        .bind(owners)
        .bind(most)
        .fetch_all(tx)
        .await?;
    placed(
        rows.into_iter().map(|row| (row.place, row.message)),
        &places,
    )
}

/// Of those who have any memory at all.
async fn preferences(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[Wanted],
    states: &HashMap<i64, (i64, bool)>,
) -> Result<HashMap<usize, Vec<Memory>>, sqlx::Error> {
    let has_memory = |owner: i64| states.get(&owner).is_some_and(|(change, _)| *change > 0);
    let asking = wanted
        .iter()
        .enumerate()
        .filter_map(|(place, wanted)| Some((place, wanted.owner.id.0, wanted.context.recall?)))
        .filter(|(_, owner, _)| has_memory(*owner));
    let places: Vec<usize> = asking.clone().map(|(place, ..)| place).collect();
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let owners: Vec<i64> = asking.clone().map(|(_, owner, _)| owner).collect();
    let times: Vec<Timestamp> = asking.clone().map(|(.., recall)| recall.now).collect();
    let most: Vec<i64> = asking
        .map(|(.., recall)| recall.preferences.into())
        .collect();
    let rows: Vec<PlacedMemory> = sqlx::query_as(PREFERENCES)
        .bind(tenant.0)
        .bind(owners)
        .bind(times)
        .bind(most)
        .fetch_all(tx)
        .await?;
    placed(rows.into_iter().map(|row| (row.place, row.memory)), &places)
}

/// Rows by the place of whoever they were read for; ordinality counts from 1.
fn placed<R, T>(
    rows: impl Iterator<Item = (i64, R)>,
    places: &[usize],
) -> Result<HashMap<usize, Vec<T>>, sqlx::Error>
where
    T: TryFrom<R, Error = sqlx::Error>,
{
    let mut out: HashMap<usize, Vec<T>> = HashMap::new();
    for (ordinal, row) in rows {
        let place = usize::try_from(ordinal - 1).ok();
        let place = place.and_then(|place| places.get(place));
        let place = *place.ok_or(sqlx::Error::RowNotFound)?;
        out.entry(place).or_default().push(row.try_into()?);
    }
    Ok(out)
}

#[async_trait]
impl ContextRepository for PostgresStore {
    async fn turn_context(&self, owner: Owner, context: ContextWanted) -> StoreResult<TurnContext> {
        let wanted = Wanted { owner, context };
        self.contexts.ask(owner.tenant, wanted).await?
    }
}
