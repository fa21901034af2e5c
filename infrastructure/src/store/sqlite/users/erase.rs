//! The end of all that belongs to an owner.
//!
//! `secure_delete` overwrites what a statement deletes. It does not reach what the database moved before: when a page is split or filled up
//! again, cells are copied, and their old places are merely free. So the file is rewritten after an erasure, and the log cut to nothing.

use std::collections::BTreeMap;

use sqlx::{SqliteConnection, SqliteExecutor};
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::users::{Erased, Receipt};
use tidemark_domain::ids::{Owner, Timestamp, TurnId};
use uuid::Uuid;

use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, json, micros, owned};
use crate::store::sqlite::statements::statements;

statements! {
    TURNS = "DELETE FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 RETURNING id";
    /// Keys that are good for this user alone name the user.
    KEYS = "DELETE FROM api_keys WHERE tenant_id = ?1 AND user_name = (SELECT user_name FROM owners WHERE tenant_id = ?1 AND owner_id = ?2)";
    /// What was used stays in the sums of the tenant, and of those of its keys that stay, as nobody's.
    KEEP_TOKENS =
        "INSERT INTO token_days (tenant_id, owner_id, day, key_id, tokens) \
         SELECT d.tenant_id, 0, d.day, coalesce(k.id, zeroblob(16)), sum(d.tokens) \
         FROM token_days d LEFT JOIN api_keys k ON k.tenant_id = d.tenant_id AND k.id = d.key_id \
         WHERE d.tenant_id = ?1 AND d.owner_id = ?2 GROUP BY d.tenant_id, d.day, coalesce(k.id, zeroblob(16)) \
         ON CONFLICT (tenant_id, owner_id, day, key_id) DO UPDATE SET tokens = tokens + excluded.tokens";
    KEEP_RECEIPT = "INSERT INTO erasures (tenant_id, owner_id, id, erased_at, removed) VALUES (?1, ?2, ?3, ?4, ?5)";
    UNFINISHED = "SELECT count(*) AS erasures FROM erasures WHERE rewritten = 0";
    MARK_FINISHED = "UPDATE erasures SET rewritten = 1 WHERE rewritten = 0";
}

/// What may cost as much as an owner has: what is erased with it.
#[cfg(test)]
pub(in crate::store::sqlite) const WALKS: &[&str] = &[KEEP_TOKENS];

/// Tables with their deletions.
macro_rules! deletions {
    ($($table:literal),+) => {
        &[$(($table, concat!("DELETE FROM ", $table, " WHERE tenant_id = ?1 AND owner_id = ?2"))),+]
    };
}

/// Every table that belongs to owners but `turns` and `api_keys`, in an order that no reference forbids. A table that is added has its place here: a
/// test finds those that have none.
pub(in crate::store::sqlite) const DELETIONS: &[(&str, &str)] = deletions![
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
    "source_tombstones",
    "change_items",
    "changes",
    "idempotency",
    "token_days",
    "sessions",
    "owners"
];

/// What stays: receipts hold numbers and times alone.
#[cfg(test)]
pub(in crate::store::sqlite) const KEPT: &[&str] = &["erasures"];

/// Removes the owner and everything of theirs.
pub(super) async fn erase(
    connection: &mut SqliteConnection,
    owner: Owner,
    receipt: Uuid,
    now: Timestamp,
) -> StoreResult<Option<Erased>> {
    let turns = owned(TURNS, owner)
        .fetch_all(&mut *connection)
        .await
        .map_err(store_error)?;
    let turns: Vec<TurnId> = turns
        .iter()
        .map(|row| Ok(TurnId(Row::of("turns", row).get("id")?)))
        .collect::<StoreResult<_>>()?;
    let keys = owned(KEYS, owner)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    owned(KEEP_TOKENS, owner)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    let mut removed = BTreeMap::from([
        ("turns".to_owned(), turns.len() as u64),
        ("api_keys".to_owned(), keys.rows_affected()),
    ]);
    for (table, deletion) in DELETIONS {
        let gone = owned(deletion, owner)
            .execute(&mut *connection)
            .await
            .map_err(store_error)?;
        removed.insert((*table).to_owned(), gone.rows_affected());
    }
    if removed.get("owners") == Some(&0) {
        return Ok(None);
    }
    owned(KEEP_RECEIPT, owner)
        .bind(receipt)
        .bind(micros(now))
        .bind(json(&removed)?)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(Some(Erased {
        receipt: Receipt {
            id: receipt,
            erased_at: now,
            removed,
        },
        turns,
    }))
}

/// Whether something was erased since the file was rewritten last.
pub(in crate::store::sqlite) async fn is_unfinished(
    executor: impl SqliteExecutor<'_>,
) -> Result<bool, sqlx::Error> {
    let erasures: i64 = sqlx::query_scalar(UNFINISHED).fetch_one(executor).await?;
    Ok(erasures > 0)
}

/// The file was rewritten.
pub(in crate::store::sqlite) async fn mark_finished(
    connection: &mut SqliteConnection,
) -> Result<(), sqlx::Error> {
    sqlx::query(MARK_FINISHED).execute(connection).await?;
    Ok(())
}
