//! What turns have shown: copies of memories, which go when the memories go.

use sqlx::PgConnection;
use tidemark_domain::ids::{Owner, SessionId, TenantId};
use uuid::Uuid;

use super::changes::Change;
use super::rows::owned;

/// Takes out of the turns what was removed with change `$3`, and the ids `$4`. Only turns that have ended show anything, and nobody else
/// changes what they show.
const WITHDRAW: &str = "
WITH gone AS MATERIALIZED (
    SELECT r.memory_id::text AS id FROM memory_removals r WHERE r.tenant_id = $1 AND r.owner_id = $2 AND r.change = $3
    UNION
    SELECT unnest($4::uuid[])::text
)
UPDATE turns t
SET recalled = (
    SELECT coalesce(jsonb_agg(r.memory ORDER BY r.place), '[]')
    FROM jsonb_array_elements(t.recalled) WITH ORDINALITY AS r (memory, place)
    WHERE r.memory ->> 'id' NOT IN (SELECT g.id FROM gone g)
)
WHERE t.tenant_id = $1 AND t.owner_id = $2 AND t.recalled <> '[]' AND EXISTS (
    SELECT FROM jsonb_array_elements(t.recalled) AS r (memory) WHERE r.memory ->> 'id' IN (SELECT g.id FROM gone g)
)";

/// Lets no memory of the owner be removed before the transaction ends. The session first, as everybody locks them.
const HOLD: &str = "
WITH held AS MATERIALIZED (
    SELECT s.tenant_id, s.owner_id FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 AND s.id = $3 FOR UPDATE
)
SELECT FROM owners o JOIN held h ON h.tenant_id = o.tenant_id AND h.owner_id = o.owner_id FOR SHARE OF o";

/// The same for several owners, whose sessions the transaction has locked: for those whom nobody else holds.
const TRY_HOLD: &str = "SELECT o.owner_id FROM owners o WHERE o.tenant_id = $1 AND o.owner_id = ANY ($2) FOR SHARE SKIP LOCKED";

/// Of the memories in a parameter those that were not removed since they were found. One that is found before it is stored is only known by
/// its tombstone. They are few: each is looked for, where the planner would rather read all that the owner has (`OFFSET 0`).
macro_rules! kept_sql {
    ($recalled:literal) => {
        kept_sql!($recalled, "$2")
    };
    ($recalled:literal, $owner:literal) => {
        concat!(
            "(WITH shown AS MATERIALIZED (SELECT r.memory, r.place, (r.memory ->> 'id')::uuid AS id FROM jsonb_array_elements(",
            $recalled,
            "::jsonb) WITH ORDINALITY AS r (memory, place)) \
             SELECT coalesce(jsonb_agg(r.memory ORDER BY r.place), '[]') FROM shown r \
             WHERE EXISTS (SELECT FROM memories m WHERE m.tenant_id = $1 AND m.owner_id = ", $owner, " AND m.id = r.id OFFSET 0) \
                OR NOT EXISTS (SELECT FROM memory_removals d WHERE d.tenant_id = $1 AND d.owner_id = ", $owner, " AND d.memory_id = r.id OFFSET 0) \
                AND NOT EXISTS (SELECT FROM tombstones b WHERE b.tenant_id = $1 AND b.owner_id = ", $owner, " AND b.subject_id = r.id OFFSET 0))"
        )
    };
}
pub(super) use kept_sql;

/// Forgetting looks through the turns that have shown anything.
#[cfg(test)]
pub(super) const WALKS: &[&str] = &[WITHDRAW];

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[WITHDRAW, HOLD, TRY_HOLD];

/// Takes what this change has removed out of the turns that have shown it, and what has these ids.
pub(super) async fn withdraw(
    tx: &mut PgConnection,
    owner: Owner,
    change: &Change,
    ids: &[Uuid],
) -> Result<(), sqlx::Error> {
    owned(WITHDRAW, owner)
        .bind(change.number())
        .bind(ids)
        .execute(tx)
        .await?;
    Ok(())
}

/// To be called before the statement that stores what a turn has shown: that one sees then whatever was removed.
pub(super) async fn hold(
    tx: &mut PgConnection,
    owner: Owner,
    session: SessionId,
) -> Result<(), sqlx::Error> {
    owned(HOLD, owner).bind(session.0).execute(tx).await?;
    Ok(())
}

/// As [`hold`], of those of several owners whom nobody else holds. The transaction has locked their sessions.
pub(super) async fn try_hold(
    tx: &mut PgConnection,
    tenant: TenantId,
    owners: &[i64],
) -> Result<Vec<i64>, sqlx::Error> {
    let held: Vec<(i64,)> = sqlx::query_as(TRY_HOLD)
        .bind(tenant.0)
        .bind(owners)
        .fetch_all(tx)
        .await?;
    Ok(held.into_iter().map(|(id,)| id).collect())
}
