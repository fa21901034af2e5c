//! Reading turns, and finding those that somebody has to care for.

use sqlx::{SqliteExecutor, SqlitePool};
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::TurnKey;
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use tidemark_domain::turn::Turn;

use super::turn_columns;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{self, Row, owned};
use crate::store::sqlite::statements::{database_now, statements};

statements! {
    FIND = concat!("SELECT ", turn_columns!(), " FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3");
    OPEN =
        "SELECT id FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND (?3 IS NULL OR session_id = ?3) \
         AND status IN ('queued', 'running', 'awaiting_approval') ORDER BY created_at DESC, id DESC";
    LAPSED = concat!(
        "SELECT tenant_id, owner_id, session_id, id, fence FROM turns \
         WHERE status IN ('running', 'awaiting_approval') AND lease_until <= ", database_now!(), " \
         ORDER BY lease_until LIMIT ?1");
    WAITING =
        "SELECT q.tenant_id, q.owner_id, q.session_id FROM turns q WHERE q.status = 'queued' AND NOT EXISTS ( \
             SELECT 1 FROM turns r WHERE r.tenant_id = q.tenant_id AND r.owner_id = q.owner_id AND r.session_id = q.session_id \
             AND r.status IN ('running', 'awaiting_approval')) \
         GROUP BY q.tenant_id, q.owner_id, q.session_id ORDER BY min(q.created_at) LIMIT ?1";
}

/// The turn, if it is this owner's.
pub(super) async fn find(
    executor: impl SqliteExecutor<'_>,
    owner: Owner,
    id: TurnId,
) -> StoreResult<Option<Turn>> {
    owned(FIND, owner)
        .bind(id.0)
        .fetch_optional(executor)
        .await
        .map_err(store_error)?
        .as_ref()
        .map(rows::turn)
        .transpose()
}

/// Turns that have not ended, the newest first.
pub(super) async fn open(
    readers: &SqlitePool,
    owner: Owner,
    session: Option<SessionId>,
) -> StoreResult<Vec<TurnId>> {
    let found = owned(OPEN, owner)
        .bind(session.map(|id| id.0))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| Ok(TurnId(Row::of("turns", row).get("id")?)))
        .collect()
}

/// Running turns whose lease has lapsed, the longest first.
pub(super) async fn lapsed(readers: &SqlitePool, limit: u32) -> StoreResult<Vec<TurnKey>> {
    let found = sqlx::query(LAPSED)
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let owner = rows::owner(row)?;
            let row = Row::of("turns", row);
            Ok(TurnKey {
                owner,
                session_id: SessionId(row.get("session_id")?),
                turn_id: TurnId(row.get("id")?),
                fence: row.get("fence")?,
            })
        })
        .collect()
}

/// Sessions whose oldest queued turn can start, the longest waiting first.
pub(super) async fn waiting(
    readers: &SqlitePool,
    limit: u32,
) -> StoreResult<Vec<(Owner, SessionId)>> {
    let found = sqlx::query(WAITING)
        .bind(i64::from(limit))
        .fetch_all(readers)
        .await
        .map_err(store_error)?;
    found
        .iter()
        .map(|row| {
            let owner = rows::owner(row)?;
            Ok((owner, SessionId(Row::of("turns", row).get("session_id")?)))
        })
        .collect()
}
