//! What is taken back: forgotten for good, expired, or withdrawn with the messages that taught it.

use std::collections::HashSet;

use sqlx::PgConnection;
use tidemark_application::ports::memories::Forgetting;
use tidemark_application::ports::sessions::Updated;
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp};
use uuid::Uuid;

use super::changes::Change;
use super::recalled;
use super::rows::{owned, owned_as};

/// Of pairs of a message and what it taught, those that were forgotten.
const FORGOTTEN: &str = "
SELECT n.message_id, n.identity
FROM unnest($3::uuid[], $4::text[]) AS n (message_id, identity)
JOIN tombstones b ON b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = n.message_id
    AND b.identity_hash = sha256(convert_to(n.identity, 'UTF8'))";

/// The version of a memory that has not expired.
const VERSION: &str = "
SELECT m.version FROM memories m
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = $3 AND (m.expires_at IS NULL OR m.expires_at > $4)";

/// Sources go with their memory.
const EXPIRE: &str = "
WITH removed AS (
    DELETE FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.expires_at <= $3 RETURNING m.id
)
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $4, r.id FROM removed r";

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
INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $6, r.id FROM removed r";

/// What was learned from the messages of a session from a number on: memories of these alone go, others lose these sources.
const WITHDRAW: &str = "
WITH removed AS (
    DELETE FROM memory_sources s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.session_id = $3 AND s.seq >= $4
    RETURNING s.memory_id
), touched AS (
    SELECT DISTINCT r.memory_id, EXISTS (
        SELECT FROM memory_sources o
        WHERE o.tenant_id = $1 AND o.owner_id = $2 AND o.memory_id = r.memory_id AND NOT (o.session_id = $3 AND o.seq >= $4)
    ) AS kept
    FROM removed r
), orphaned AS (
    DELETE FROM memories m USING touched t WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id AND NOT t.kept
    RETURNING m.id
), removals AS (
    INSERT INTO memory_removals (tenant_id, owner_id, change, memory_id) SELECT $1, $2, $5, o.id FROM orphaned o
)
UPDATE memories m SET version = m.version + 1, change = $5 FROM touched t
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id AND t.kept";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FORGOTTEN, VERSION, EXPIRE, BURY, FORGET, WITHDRAW];

/// Removes what has expired. Whoever calls has changed none of the owner's memories yet.
pub(super) async fn expire(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let expired = owned(EXPIRE, owner)
        .bind(now)
        .bind(change.number())
        .execute(&mut *tx)
        .await?;
    if expired.rows_affected() > 0 {
        recalled::withdraw(tx, owner, change, &[]).await?;
    }
    Ok(())
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
    expire(tx, owner, &change, what.now).await?;
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
    let forgotten = owned(FORGET, owner)
        .bind(&ids)
        .bind(&messages)
        .bind(what.now)
        .bind(change.number())
        .execute(&mut *tx)
        .await?;
    recalled::withdraw(tx, owner, &change, &ids).await?;
    Ok(Updated::Done(forgotten.rows_affected()))
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

/// Withdraws what was learned from a session's messages from `from_seq` on. Whoever calls holds the lock of the session.
pub(super) async fn withdraw(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    session: SessionId,
    from_seq: i64,
) -> Result<(), sqlx::Error> {
    owned(WITHDRAW, owner)
        .bind(session.0)
        .bind(from_seq)
        .bind(change.number())
        .execute(&mut *tx)
        .await?;
    recalled::withdraw(tx, owner, change, &[]).await
}
