//! What is taken back: forgotten for good, expired, or withdrawn with the messages that taught it.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use sqlx::PgConnection;
use tidemark_application::ports::memories::Forgetting;
use tidemark_application::ports::sessions::Updated;
use tidemark_domain::ids::{MemoryId, MessageId, Owner, SessionId, Timestamp};
use tidemark_domain::memory::change::{self as domain, ChangeKind, Item};
use uuid::Uuid;

use super::changes::Change;
use super::recalled;
use super::rows::{owned, owned_as};
use super::{formers, history, lines};

/// Of pairs of a message and what it taught, those that were forgotten.
const FORGOTTEN: &str = "
WITH asked AS MATERIALIZED (
    SELECT n.message_id, n.identity, sha256(convert_to(n.identity, 'UTF8')) AS identity_hash
    FROM unnest($3::uuid[], $4::text[]) AS n (message_id, identity)
)
SELECT a.message_id, a.identity
FROM asked a
JOIN tombstones b ON b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = a.message_id AND b.identity_hash = a.identity_hash";

/// The version of a memory that has not expired.
const VERSION: &str = "
SELECT m.version FROM memories m
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = $3 AND (m.expires_at IS NULL OR m.expires_at > $4)";

/// Sources go with their memory.
const EXPIRE: &str = "
WITH removed AS (
    DELETE FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.expires_at <= CASE WHEN $3::timestamptz IS NULL THEN statement_timestamp() ELSE $3 END
    RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $4, r.id FROM removed r RETURNING memory_id";

/// What memories were learned from, and other pairs of a message and an identity.
const BURY: &str = "
INSERT INTO tombstones (tenant_id, owner_id, subject_id, identity_hash, created_at)
SELECT $1, $2, s.message_id, m.identity_hash, $6::timestamptz
FROM memories m JOIN memory_sources s ON s.tenant_id = $1 AND s.owner_id = $2 AND s.memory_id = m.id
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3)
UNION
SELECT $1, $2, n.message_id, sha256(convert_to(n.identity, 'UTF8')), $6::timestamptz
FROM unnest($4::uuid[], $5::text[]) AS n (message_id, identity)
ON CONFLICT DO NOTHING";

/// Removes memories, and of what the same messages taught that of which each source has been buried. The ids that were asked for are buried
/// even where no memory has them yet.
const FORGET: &str = "
WITH asked AS (
    SELECT s.message_id FROM memory_sources s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.memory_id = ANY($3)
    UNION
    SELECT unnest($4::uuid[])
), forgotten AS (
    SELECT m.id FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3)
    UNION
    SELECT m.id
    FROM asked a
    JOIN memory_sources t ON t.tenant_id = $1 AND t.owner_id = $2 AND t.message_id = a.message_id
    JOIN memories m ON m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id
    WHERE NOT EXISTS (
        SELECT FROM memory_sources o
        WHERE o.tenant_id = $1 AND o.owner_id = $2 AND o.memory_id = m.id AND NOT EXISTS (
            SELECT FROM tombstones b
            WHERE b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = o.message_id AND b.identity_hash = m.identity_hash
        )
    )
), marked AS (
    INSERT INTO tombstones (tenant_id, owner_id, subject_id, identity_hash, created_at)
    SELECT $1, $2, f.id, ''::bytea, $5::timestamptz FROM (SELECT id FROM forgotten UNION SELECT unnest($3::uuid[])) f
    ON CONFLICT DO NOTHING
), removed AS (
    DELETE FROM memories m USING forgotten f WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = f.id RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $6, r.id FROM removed r RETURNING memory_id";

/// Removes memories, and keeps their ids from being stored again.
const REMOVE: &str = "
WITH marked AS (
    INSERT INTO tombstones (tenant_id, owner_id, subject_id, identity_hash, created_at)
    SELECT $1, $2, f.id, ''::bytea, $4::timestamptz FROM unnest($3::uuid[]) AS f (id)
    ON CONFLICT DO NOTHING
), removed AS (
    DELETE FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3) RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $5, r.id FROM removed r RETURNING memory_id";

/// What was learned from the messages of a session from a number on: memories of these alone go, others lose these sources.
const WITHDRAW: &str = "
WITH removed AS (
    DELETE FROM memory_sources s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.session_id = $3 AND s.seq BETWEEN $4 AND $6
    RETURNING s.memory_id
), touched AS (
    SELECT DISTINCT r.memory_id, EXISTS (
        SELECT FROM memory_sources o
        WHERE o.tenant_id = $1 AND o.owner_id = $2 AND o.memory_id = r.memory_id AND NOT (o.session_id = $3 AND o.seq BETWEEN $4 AND $6)
    ) AS kept
    FROM removed r
), orphaned AS (
    DELETE FROM memories m USING touched t WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id AND NOT t.kept
    RETURNING m.id
), changed AS (
    UPDATE memories m SET version = m.version + 1, change = $5 FROM touched t
    WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id AND t.kept
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $5, o.id FROM orphaned o RETURNING memory_id";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[FORGOTTEN, VERSION, EXPIRE, BURY, FORGET, REMOVE, WITHDRAW];

/// Removes what has expired then, or by the database's clock. Whoever calls has changed none of the owner's memories yet.
pub(super) async fn expire(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    now: Option<Timestamp>,
) -> Result<(), sqlx::Error> {
    if !change.may_find_expired(now) {
        return Ok(());
    }
    let expired: Vec<(Uuid,)> = owned_as(EXPIRE, owner)
        .bind(now)
        .bind(change.number())
        .fetch_all(&mut *tx)
        .await?;
    let mut expired = raw(expired);
    expired.extend(formers::remove_of(tx, owner, change, &expired).await?);
    if !expired.is_empty() {
        history::scrub(tx, owner, &expired).await?;
        recalled::withdraw(tx, owner, change, &[]).await?;
    }
    lines::release(tx, owner, change, &expired).await
}

fn raw(rows: Vec<(Uuid,)>) -> Vec<Uuid> {
    rows.into_iter().map(|(id,)| id).collect()
}

pub(super) async fn forget(
    tx: &mut PgConnection,
    owner: Owner,
    what: &Forgetting,
) -> Result<Updated<u64>, sqlx::Error> {
    let change = Change::begin(tx, owner).await?;
    let found: Option<(i64,)> = owned_as(VERSION, owner)
        .bind(what.id.0)
        .bind(what.now)
        .fetch_optional(&mut *tx)
        .await?;
    match found {
        None if !what.fresh => return Ok(Updated::NotFound),
        Some((version,)) if what.expected.is_some_and(|seen| seen != version) => {
            return Ok(Updated::Stale);
        }
        _ => {}
    }
    expire(tx, owner, &change, Some(what.now)).await?;
    let mut ids: Vec<Uuid> = vec![what.id.0];
    ids.extend(what.echoes.iter().map(|id| id.0));
    let (messages, identities): (Vec<Uuid>, Vec<&str>) = what
        .buried
        .iter()
        .map(|(message, identity)| (message.0, identity.as_str()))
        .unzip();
    owned(BURY, owner)
        .bind(&ids)
        .bind(&messages)
        .bind(identities)
        .bind(what.now)
        .execute(&mut *tx)
        .await?;
    // A statement of its own, to see what has been buried.
    let forgotten: Vec<(Uuid,)> = owned_as(FORGET, owner)
        .bind(&ids)
        .bind(&messages)
        .bind(what.now)
        .bind(change.number())
        .fetch_all(&mut *tx)
        .await?;
    let mut forgotten = raw(forgotten);
    forgotten.extend(formers::remove_of(tx, owner, &change, &forgotten).await?);
    recalled::withdraw(tx, owner, &change, &ids).await?;
    history::scrub(tx, owner, &forgotten).await?;
    lines::release(tx, owner, &change, &forgotten).await?;
    if !forgotten.is_empty() {
        let items = forgotten.iter().map(|id| Item::removed(MemoryId(*id)));
        let kept = domain::Change::new(what.change, ChangeKind::Forget, what.now, items.collect());
        history::record(tx, owner, kept).await?;
    }
    Ok(Updated::Done(forgotten.len() as u64))
}

/// Of what messages are said to teach, the pairs that were forgotten.
pub(super) async fn forgotten(
    tx: &mut PgConnection,
    owner: Owner,
    pairs: &[(MessageId, &str)],
) -> Result<HashSet<(MessageId, String)>, sqlx::Error> {
    if pairs.is_empty() {
        return Ok(HashSet::new());
    }
    let (messages, identities): (Vec<Uuid>, Vec<&str>) = pairs
        .iter()
        .map(|(message, identity)| (message.0, *identity))
        .unzip();
    let rows: Vec<(Uuid, String)> = owned_as(FORGOTTEN, owner)
        .bind(messages)
        .bind(identities)
        .fetch_all(tx)
        .await?;
    Ok(rows
        .into_iter()
        .map(|(message, identity)| (MessageId(message), identity))
        .collect())
}

/// Withdraws what was learned from messages of a session; what this had ended holds again. What became of the memories. Whoever calls holds the lock of the session.
pub(super) async fn withdraw(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    session: SessionId,
    range: RangeInclusive<i64>,
) -> Result<Vec<Item>, sqlx::Error> {
    // What they had ended stays ended.
    expire(tx, owner, change, None).await?;
    let removed: Vec<(Uuid,)> = owned_as(WITHDRAW, owner)
        .bind(session.0)
        .bind(*range.start())
        .bind(change.number())
        .bind(*range.end())
        .fetch_all(&mut *tx)
        .await?;
    let mut removed = raw(removed);
    removed.extend(formers::remove_of(tx, owner, change, &removed).await?);
    if !removed.is_empty() {
        recalled::withdraw(tx, owner, change, &[]).await?;
    }
    history::scrub(tx, owner, &removed).await?;
    let reopened = lines::ended_by(tx, owner, &removed).await?;
    let gone = removed.iter().map(|id| Item::removed(MemoryId(*id)));
    let mut items: Vec<Item> = gone.collect();
    items.extend(lines::settle(tx, owner, change, reopened, None).await?);
    Ok(items)
}

/// Removes memories, and keeps the messages behind them from teaching them again. What they had ended is not looked at.
pub(super) async fn bury_all(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    ids: &[Uuid],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let (messages, identities): (Vec<Uuid>, Vec<&str>) = (Vec::new(), Vec::new());
    owned(BURY, owner)
        .bind(ids)
        .bind(messages)
        .bind(identities)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    let removed: Vec<(Uuid,)> = owned_as(REMOVE, owner)
        .bind(ids)
        .bind(now)
        .bind(change.number())
        .fetch_all(&mut *tx)
        .await?;
    let mut removed = raw(removed);
    removed.extend(formers::remove_of(tx, owner, change, &removed).await?);
    recalled::withdraw(tx, owner, change, ids).await?;
    history::scrub(tx, owner, &removed).await
}

/// Keeps messages from teaching again what they taught.
pub(super) async fn bury_pairs(
    tx: &mut PgConnection,
    owner: Owner,
    pairs: &[(MessageId, String)],
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    if pairs.is_empty() {
        return Ok(());
    }
    let (messages, identities): (Vec<Uuid>, Vec<&str>) = pairs
        .iter()
        .map(|(message, identity)| (message.0, identity.as_str()))
        .unzip();
    owned(BURY, owner)
        .bind(Vec::<Uuid>::new())
        .bind(messages)
        .bind(identities)
        .bind(now)
        .execute(tx)
        .await?;
    Ok(())
}
