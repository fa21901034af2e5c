//! Tokens that turns have used in a day. Where no limit of them is set, nothing is asked and nothing is written.

use std::collections::HashMap;

use chrono::NaiveDate;
use sqlx::PgConnection;
use tidemark_application::ports::turns::{AcceptError, AcceptTurn, TokensUsed, TurnKey};
use tidemark_domain::ids::{KeyId, OwnerId, TenantId};
use tidemark_domain::turn::Turn;
use uuid::Uuid;

/// What those have used who are limited: the tenant, some of its keys, some of its users.
const USED: &str = "
SELECT NULL::bigint, NULL::uuid, sum(d.tokens)::bigint FROM token_days d WHERE $3 AND d.tenant_id = $1 AND d.day = $2
UNION ALL
SELECT NULL, d.key_id, sum(d.tokens)::bigint FROM token_days d WHERE d.tenant_id = $1 AND d.day = $2 AND d.key_id = ANY($4) GROUP BY d.key_id
UNION ALL
SELECT d.owner_id, NULL, sum(d.tokens)::bigint FROM token_days d WHERE d.tenant_id = $1 AND d.owner_id = ANY($5) AND d.day = $2
GROUP BY d.owner_id";

/// Adds what turns have used. As each addition clears a few old rows, they do not pile up.
const ADD: &str = "
WITH cleared AS (
    DELETE FROM token_days WHERE ctid = ANY (ARRAY(
        SELECT o.ctid FROM token_days o WHERE o.tenant_id = $1 AND o.day < $6 ORDER BY o.day LIMIT 16 FOR UPDATE SKIP LOCKED
    ))
)
INSERT INTO token_days AS d (tenant_id, owner_id, day, key_id, tokens)
SELECT t.tenant_id, t.owner_id, e.day, coalesce(t.key_id, '00000000-0000-0000-0000-000000000000'), sum(e.tokens)::bigint
FROM unnest($2::bigint[], $3::uuid[], $4::date[], $5::bigint[]) AS e (owner_id, id, day, tokens)
    JOIN turns t ON t.tenant_id = $1 AND t.owner_id = e.owner_id AND t.id = e.id
GROUP BY 1, 2, 3, 4 ORDER BY 2, 3, 4
ON CONFLICT (tenant_id, owner_id, day, key_id) DO UPDATE SET tokens = d.tokens + excluded.tokens";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[USED, ADD];

/// What was used on the day.
#[derive(Debug, Default)]
pub(super) struct Used {
    tenant: i64,
    keys: HashMap<KeyId, i64>,
    owners: HashMap<OwnerId, i64>,
}

impl Used {
    /// Whether the turn may be accepted.
    pub(super) fn admit(&self, turn: &AcceptTurn) -> Result<(), AcceptError> {
        let of_key = turn.key.and_then(|key| self.keys.get(&key));
        let of_user = self.owners.get(&turn.owner.id);
        let used = TokensUsed {
            tenant: self.tenant,
            key: of_key.copied().unwrap_or_default(),
            user: of_user.copied().unwrap_or_default(),
        };
        turn.max_tokens.admit(used, turn.now)
    }
}

/// What was used by those who are limited.
pub(super) async fn used(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[&AcceptTurn],
) -> Result<Used, sqlx::Error> {
    let limited = || wanted.iter().filter(|turn| turn.max_tokens.is_some());
    let Some(day) = limited().map(|turn| turn.now.date_naive()).max() else {
        return Ok(Used::default());
    };
    let keys = limited().filter(|turn| turn.max_tokens.key.is_some());
    let keys: Vec<Uuid> = keys.filter_map(|turn| turn.key).map(|key| key.0).collect();
    let owners = limited().filter(|turn| turn.max_tokens.user.is_some());
    let owners: Vec<i64> = owners.map(|turn| turn.owner.id.0).collect();
    let rows: Vec<(Option<i64>, Option<Uuid>, Option<i64>)> = sqlx::query_as(USED)
        .bind(tenant.0)
        .bind(day)
        .bind(limited().any(|turn| turn.max_tokens.tenant.is_some()))
        .bind(keys)
        .bind(owners)
        .fetch_all(tx)
        .await?;
    let mut used = Used::default();
    for (owner, key, tokens) in rows {
        let tokens = tokens.unwrap_or_default();
        match (owner, key) {
            (Some(owner), _) => _ = used.owners.insert(OwnerId(owner), tokens),
            (None, Some(key)) => _ = used.keys.insert(KeyId(key), tokens),
            (None, None) => used.tenant = tokens,
        }
    }
    Ok(used)
}

/// Adds what turns that have just ended have used, to the days on which they did. The last that a transaction does, so that it waits for nobody
/// who waits for it.
pub(super) async fn add<'a>(
    tx: &mut PgConnection,
    tenant: TenantId,
    ended: impl Iterator<Item = (TurnKey, &'a Turn)>,
) -> Result<(), sqlx::Error> {
    let used = ended.filter_map(|(key, turn)| {
        let (ended_at, usage) = (turn.ended_at?, turn.usage?);
        Some((key, ended_at.date_naive(), usage.tokens()))
    });
    let used: Vec<(TurnKey, NaiveDate, i64)> = used.filter(|(_, _, tokens)| *tokens > 0).collect();
    let Some(last) = used.iter().map(|(_, day, _)| *day).max() else {
        return Ok(());
    };
    let owners: Vec<i64> = used.iter().map(|(key, _, _)| key.owner.id.0).collect();
    let ids: Vec<Uuid> = used.iter().map(|(key, _, _)| key.turn_id.0).collect();
    let days: Vec<NaiveDate> = used.iter().map(|(_, day, _)| *day).collect();
    let tokens: Vec<i64> = used.iter().map(|(_, _, tokens)| *tokens).collect();
    sqlx::query(ADD)
        .bind(tenant.0)
        .bind(owners)
        .bind(ids)
        .bind(days)
        .bind(tokens)
        // Whoever's clock is late counts to yesterday.
        .bind(last - chrono::Days::new(1))
        .execute(tx)
        .await?;
    Ok(())
}
