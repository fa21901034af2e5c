//! What is taken back: forgotten for good, or withdrawn with the messages that taught it.

use std::collections::HashSet;

use sqlx::PgConnection;
use tidemark_domain::ids::{MessageId, Owner, SessionId, Timestamp};
use uuid::Uuid;

use super::owners;
use super::rows::{owned, owned_as};

/// Of pairs of a message and what it taught, those that were forgotten.
const FORGOTTEN: &str = "
SELECT n.message_id, n.identity
FROM unnest($3::uuid[], $4::text[]) AS n (message_id, identity)
JOIN tombstones b ON b.tenant_id = $1 AND b.owner_id = $2 AND b.subject_id = n.message_id
    AND b.identity_hash = sha256(convert_to(n.identity, 'UTF8'))";

/// Sources and terms go with their memory.
const FORGET: &str = "
WITH forgotten AS (
    SELECT m.id, m.identity_hash FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = ANY($3)
), marked AS (
    INSERT INTO tombstones (tenant_id, owner_id, subject_id, identity_hash, created_at)
    SELECT $1, $2, f.id, ''::bytea, $4::timestamptz FROM forgotten f
    UNION
    SELECT $1, $2, s.message_id, f.identity_hash, $4::timestamptz
    FROM forgotten f JOIN memory_sources s ON s.tenant_id = $1 AND s.owner_id = $2 AND s.memory_id = f.id
    ON CONFLICT DO NOTHING
)
DELETE FROM memories m USING forgotten f WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = f.id";

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
)
UPDATE memories m SET version = m.version + 1 FROM touched t
WHERE m.tenant_id = $1 AND m.owner_id = $2 AND m.id = t.memory_id AND t.kept";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FORGOTTEN, FORGET, WITHDRAW];

pub(super) async fn forget(
    tx: &mut PgConnection,
    owner: Owner,
    ids: &[Uuid],
    now: Timestamp,
) -> Result<u64, sqlx::Error> {
    owners::lock(tx, owner).await?;
    let forgotten = owned(FORGET, owner).bind(ids).bind(now).execute(tx).await?;
    Ok(forgotten.rows_affected())
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

/// Withdraws what was learned from a session's messages from `from_seq` on. Whoever calls holds the locks of session and owner.
pub(super) async fn withdraw(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
    from_seq: i64,
) -> Result<(), sqlx::Error> {
    owned(WITHDRAW, owner)
        .bind(session.0)
        .bind(from_seq)
        .execute(tx)
        .await?;
    Ok(())
}
