//! Tokens that turns have used in a day. Where no limit of them is set, nothing is asked and nothing is written.

use sqlx::SqliteConnection;
use tidemark_application::ports::store::StoreResult;
use tidemark_application::ports::turns::{AcceptError, AcceptTurn, TokensUsed, TurnKey};
use tidemark_domain::ids::Timestamp;
use tidemark_domain::turn::Turn;

use crate::store::sqlite::errors::store_error;
use crate::store::sqlite::rows::{Row, owned};
use crate::store::sqlite::statements::statements;

statements! {
    /// What those have used who are limited: the tenant, the key, the owner.
    USED =
        "SELECT \
         CASE WHEN ?5 THEN (SELECT coalesce(sum(tokens), 0) FROM token_days INDEXED BY token_days_by_day \
             WHERE tenant_id = ?1 AND day = ?3) ELSE 0 END AS of_tenant, \
         (SELECT coalesce(sum(tokens), 0) FROM token_days INDEXED BY token_days_by_day \
             WHERE tenant_id = ?1 AND day = ?3 AND key_id = ?4) AS of_key, \
         (SELECT coalesce(sum(tokens), 0) FROM token_days WHERE tenant_id = ?1 AND owner_id = ?2 AND day = ?3) AS of_owner";
    ADD =
        "INSERT INTO token_days (tenant_id, owner_id, day, key_id, tokens) \
         SELECT tenant_id, owner_id, ?4, coalesce(key_id, zeroblob(16)), ?5 FROM turns \
         WHERE tenant_id = ?1 AND owner_id = ?2 AND id = ?3 \
         ON CONFLICT (tenant_id, owner_id, day, key_id) DO UPDATE SET tokens = tokens + excluded.tokens";
    /// A few at each addition, so that no turn pays for all.
    CLEAN =
        "DELETE FROM token_days WHERE (tenant_id, owner_id, day, key_id) IN \
         (SELECT tenant_id, owner_id, day, key_id FROM token_days INDEXED BY token_days_by_day \
          WHERE tenant_id = ?1 AND day < ?2 ORDER BY day LIMIT 16)";
}

/// As days are stored.
fn day(at: Timestamp) -> i64 {
    at.timestamp().div_euclid(86_400)
}

/// Whether the turn may be accepted after what was used on its day.
pub(super) async fn admit(
    connection: &mut SqliteConnection,
    accept: &AcceptTurn,
) -> Result<(), AcceptError> {
    let limits = accept.max_tokens;
    if !limits.is_some() {
        return Ok(());
    }
    let key = accept.key.filter(|_| limits.key.is_some());
    let row = owned(USED, accept.owner)
        .bind(day(accept.now))
        .bind(key.map(|key| key.0))
        .bind(limits.tenant.is_some())
        .fetch_one(connection)
        .await
        .map_err(store_error)?;
    let row = Row::of("token_days", &row);
    let used = TokensUsed {
        tenant: row.get("of_tenant")?,
        key: row.get("of_key")?,
        user: row.get("of_owner")?,
    };
    limits.admit(used, accept.now)
}

/// Adds what a turn that has just ended has used, to the day on which it did.
pub(super) async fn add(
    connection: &mut SqliteConnection,
    key: TurnKey,
    turn: &Turn,
) -> StoreResult<()> {
    let (Some(ended_at), Some(usage)) = (turn.ended_at, turn.usage) else {
        return Ok(());
    };
    let (day, tokens) = (day(ended_at), usage.tokens());
    if tokens == 0 {
        return Ok(());
    }
    sqlx::query(CLEAN)
        .bind(key.owner.tenant.0)
        // Whoever's clock is late counts to yesterday.
        .bind(day - 1)
        .execute(&mut *connection)
        .await
        .map_err(store_error)?;
    owned(ADD, key.owner)
        .bind(key.turn_id.0)
        .bind(day)
        .bind(tokens)
        .execute(connection)
        .await
        .map_err(store_error)?;
    Ok(())
}
