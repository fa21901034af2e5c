//! What a runner writes between start and end.

use std::time::Duration;

use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection};
use tidemark_application::ports::turns::{NewMessage, Renewed, TurnKey, TurnWriteError};
use tidemark_domain::ids::Timestamp;
use tidemark_domain::session::Message;

use super::fenced;
use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::messages;
use crate::store::sqlite::rows::{Row, duration_micros, owned};
use crate::store::sqlite::statements::{database_now, statements};

statements! {
    RENEW = concat!("UPDATE turns SET lease_until = ", database_now!(), " + ?6 WHERE ", fenced!(), " RETURNING cancel_requested");
    RESERVE = concat!("UPDATE turns SET events_reserved = max(events_reserved, ?6) WHERE ", fenced!());
    GUARD = concat!("SELECT 1 AS held FROM turns WHERE ", fenced!());
}

/// A statement whose first five parameters are the turn's key.
pub(super) fn keyed(sql: &'static str, key: TurnKey) -> Query<'static, Sqlite, SqliteArguments> {
    owned(sql, key.owner)
        .bind(key.turn_id.0)
        .bind(key.session_id.0)
        .bind(key.fence)
}

pub(super) async fn renew(
    connection: &mut SqliteConnection,
    key: TurnKey,
    lease: Duration,
) -> Result<Renewed, TurnWriteError> {
    let row = keyed(RENEW, key)
        .bind(duration_micros(lease))
        .fetch_optional(connection)
        .await
        .map_err(store_error)?
        .ok_or(TurnWriteError::Fenced)?;
    Ok(Renewed {
        cancel_requested: Row::of("turns", &row).get("cancel_requested")?,
    })
}

pub(super) async fn reserve(
    connection: &mut SqliteConnection,
    key: TurnKey,
    up_to: i64,
) -> Result<(), TurnWriteError> {
    let reserved = keyed(RESERVE, key)
        .bind(up_to)
        .execute(connection)
        .await
        .map_err(store_error)?;
    if reserved.rows_affected() == 1 {
        Ok(())
    } else {
        Err(TurnWriteError::Fenced)
    }
}

pub(super) async fn append(
    connection: &mut SqliteConnection,
    key: TurnKey,
    said: Vec<NewMessage>,
    now: Timestamp,
) -> Result<Vec<Message>, TurnWriteError> {
    let held = keyed(GUARD, key)
        .fetch_optional(&mut *connection)
        .await
        .map_err(store_error)?;
    if held.is_none() {
        return Err(TurnWriteError::Fenced);
    }
    Ok(messages::append_said(
        connection,
        key.owner,
        key.session_id,
        key.turn_id,
        said,
        now,
    )
    .await?)
}
