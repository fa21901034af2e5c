//! Removing a turn and what came after it, when another takes its place.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use uuid::Uuid;

use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, owned};
use crate::store::sqlite::statements::statements;
use crate::store::sqlite::{extraction, memories, messages, owners, sessions};

statements! {
    BRANCH = "SELECT id, first_seq, created_at FROM turns \
              WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 AND session_id = ?4 AND first_seq IS NOT NULL";
    /// Also those that were cancelled before they had a message.
    REMOVE = "DELETE FROM turns WHERE tenant_id = ?1 AND owner_id = ?2 AND session_id = ?3 \
              AND (first_seq >= ?4 OR (first_seq IS NULL AND (created_at, id) > (?5, ?6)))";
}

/// A turn that has begun, and with it all that came after.
pub(super) struct Branch {
    id: Uuid,
    first_seq: i64,
    created_at: i64,
}

/// The branch that begins with a turn of this session; none if it never started.
pub(super) async fn branch(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    turn: TurnId,
) -> StoreResult<Option<Branch>> {
    let found = owned(BRANCH, owner)
        .bind(turn.0)
        .bind(session.0)
        .fetch_optional(connection)
        .await
        .map_err(store_error)?;
    let Some(row) = found else {
        return Ok(None);
    };
    let row = Row::of("turns", &row);
    Ok(Some(Branch {
        id: row.get("id")?,
        first_seq: row.get("first_seq")?,
        created_at: row.get("created_at")?,
    }))
}

/// Removes a branch: its turns, its messages, and what was learned from these alone.
pub(super) async fn remove(
    connection: &mut SqliteConnection,
    owner: Owner,
    session: SessionId,
    branch: Branch,
) -> StoreResult<()> {
    memories::withdraw(connection, owner, session, branch.first_seq..=i64::MAX).await?;
    messages::remove_from(connection, owner, session, branch.first_seq).await?;
    owned(REMOVE, owner)
        .bind(session.0)
        .bind(branch.first_seq)
        .bind(branch.created_at)
        .bind(branch.id)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    sessions::cut(connection, owner, session, branch.first_seq - 1).await?;
    extraction::cut(connection, owner, session, branch.first_seq).await?;
    // Learning that has read the removed messages and not yet committed may find both cursors where it left them.
    owners::raise_erase_epoch(connection, owner).await
}
