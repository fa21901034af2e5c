//! The end of all that belongs to an owner.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use sqlx::types::Json;
use tidemark_application::ports::users::{Erased, Receipt};
use tidemark_domain::ids::{Owner, Timestamp, TurnId};
use uuid::Uuid;

use super::super::rows::{owned, owned_as};

/// Sessions before the owner, as everybody locks them.
const LOCK_SESSIONS: &str = "
SELECT s.id FROM sessions s WHERE s.tenant_id = $1 AND s.owner_id = $2 ORDER BY s.id FOR UPDATE";

/// Whoever is about to store something of the owner waits, and then finds no owner.
const LOCK_OWNER: &str =
    "SELECT o.owner_id FROM owners o WHERE o.tenant_id = $1 AND o.owner_id = $2 FOR UPDATE";

const TURNS: &str = "DELETE FROM turns WHERE tenant_id = $1 AND owner_id = $2 RETURNING id";

/// Keys that are good for this user alone name the user.
const KEYS: &str = "
DELETE FROM api_keys k USING owners o
WHERE o.tenant_id = $1 AND o.owner_id = $2 AND k.tenant_id = o.tenant_id AND k.user_name = o.name";

/// What was used stays in the sums of the tenant, and of those of its keys that stay, as nobody's.
const KEEP_TOKENS: &str = "
INSERT INTO token_days AS n (tenant_id, owner_id, day, key_id, tokens)
SELECT d.tenant_id, 0, d.day, coalesce(k.id, '00000000-0000-0000-0000-000000000000'), sum(d.tokens)::bigint
FROM token_days d LEFT JOIN api_keys k ON k.tenant_id = d.tenant_id AND k.id = d.key_id
WHERE d.tenant_id = $1 AND d.owner_id = $2
GROUP BY 1, 2, 3, 4 ORDER BY 3, 4
ON CONFLICT (tenant_id, owner_id, day, key_id) DO UPDATE SET tokens = n.tokens + excluded.tokens";

const KEEP_RECEIPT: &str = "
INSERT INTO erasures (tenant_id, owner_id, id, erased_at, removed) VALUES ($1, $2, $3, $4, $5)";

#[cfg(test)]
pub(in super::super) const WALKS: &[&str] = &[LOCK_SESSIONS, KEEP_TOKENS];

#[cfg(test)]
pub(in super::super) const STATEMENTS: &[&str] = &[
    LOCK_SESSIONS,
    LOCK_OWNER,
    TURNS,
    KEYS,
    KEEP_TOKENS,
    KEEP_RECEIPT,
];

/// Tables with their deletions.
macro_rules! deletions {
    ($($table:literal),+) => {
        &[$(($table, concat!("DELETE FROM ", $table, " WHERE tenant_id = $1 AND owner_id = $2"))),+]
    };
}

/// Every table that belongs to owners but `turns` and `api_keys`, in an order that no reference forbids. A table that is added has its place here: a
/// test finds those that have none.
pub(in super::super) const DELETIONS: &[(&str, &str)] = deletions![
    "jobs",
    "pending_extractions",
    "messages",
    "embedding_marks",
    "memory_vectors",
    "memory_sources",
    "memory_formers",
    "memories",
    "memory_removals",
    "tombstones",
    "change_items",
    "changes",
    "idempotency",
    "token_days",
    "sessions",
    "owners"
];

/// What stays: receipts hold numbers and times alone.
#[cfg(test)]
pub(in super::super) const KEPT: &[&str] = &["erasures"];

pub(super) async fn erase(
    tx: &mut PgConnection,
    owner: Owner,
    receipt: Uuid,
    now: Timestamp,
) -> Result<Option<Erased>, sqlx::Error> {
    owned(LOCK_SESSIONS, owner).execute(&mut *tx).await?;
    let found = owned(LOCK_OWNER, owner).fetch_optional(&mut *tx).await?;
    if found.is_none() {
        return Ok(None);
    }
    let turns: Vec<(Uuid,)> = owned_as(TURNS, owner).fetch_all(&mut *tx).await?;
    let keys = owned(KEYS, owner).execute(&mut *tx).await?;
    owned(KEEP_TOKENS, owner).execute(&mut *tx).await?;
    let mut removed = BTreeMap::from([
        ("turns".to_owned(), turns.len() as u64),
        ("api_keys".to_owned(), keys.rows_affected()),
    ]);
    for (table, deletion) in DELETIONS {
        let gone = owned(deletion, owner).execute(&mut *tx).await?;
        removed.insert((*table).to_owned(), gone.rows_affected());
    }
    owned(KEEP_RECEIPT, owner)
        .bind(receipt)
        .bind(now)
        .bind(Json(&removed))
        .execute(tx)
        .await?;
    Ok(Some(Erased {
        receipt: Receipt {
            id: receipt,
            erased_at: now,
            removed,
        },
        turns: turns.into_iter().map(|(id,)| TurnId(id)).collect(),
    }))
}
