//! Limits of the open turns of a tenant, and of one of its keys. Where none is set, nothing is asked.

use std::collections::HashMap;

use sqlx::PgConnection;
use tidemark_application::ports::turns::{AcceptError, AcceptTurn, SharedLimits};
use tidemark_domain::ids::{KeyId, TenantId};
use uuid::Uuid;

/// The tenant's open turns, by their keys.
const OPEN: &str = "
SELECT key_id, count(*) FROM turns
WHERE tenant_id = $1 AND status IN ('queued', 'running', 'awaiting_approval')
GROUP BY key_id";

/// Lets no other turn of the tenant be accepted before the transaction ends, where the limit is near.
const HOLD: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('turns of tenant ' || $1::text, 0))";

/// Whether that could be had at once.
const TRY_HOLD: &str =
    "SELECT pg_try_advisory_xact_lock(hashtextextended('turns of tenant ' || $1::text, 0))";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[OPEN, HOLD, TRY_HOLD];

/// Further from a limit than this nobody waits for anybody: fewer are accepted at the same time by all processes that have not seen each other's.
const MARGIN: i64 = 256;

/// How many turns are open.
#[derive(Debug, Default)]
pub(super) struct Open {
    of_tenant: i64,
    of_key: HashMap<KeyId, i64>,
}

impl Open {
    /// Counts one more, if it may be open too.
    pub(super) fn take(&mut self, turn: &AcceptTurn) -> Result<(), AcceptError> {
        let limits = turn.max_open_shared;
        let of_key = turn.key.map(|key| self.of_key.entry(key).or_default());
        if let (Some(open), Some(most)) = (&of_key, limits.key)
            && **open >= most
        {
            return Err(AcceptError::TooManyOfKey);
        }
        if limits.tenant.is_some_and(|most| self.of_tenant >= most) {
            return Err(AcceptError::TooManyOfTenant);
        }
        self.of_tenant += 1;
        if let Some(open) = of_key {
            *open += 1;
        }
        Ok(())
    }

    /// Whether these could come to a limit, with what others may be accepting.
    fn is_near(&self, wanted: &[&AcceptTurn]) -> bool {
        let more = wanted.len() as i64 + MARGIN;
        wanted.iter().any(|turn| {
            let limits = turn.max_open_shared;
            let of_key = turn.key.and_then(|key| self.of_key.get(&key));
            let of_key = of_key.copied().unwrap_or_default();
            limits
                .tenant
                .is_some_and(|most| self.of_tenant + more > most)
                || (turn.key.is_some() && limits.key.is_some_and(|most| of_key + more > most))
        })
    }
}

/// How many are open, beside these. Where that is near a limit, nobody else accepts one of the tenant's until the transaction ends.
pub(super) async fn count(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[&AcceptTurn],
) -> Result<Open, sqlx::Error> {
    if is_unlimited(wanted) {
        return Ok(Open::default());
    }
    let open = open(tx, tenant).await?;
    if !open.is_near(wanted) {
        return Ok(open);
    }
    sqlx::query(HOLD).bind(tenant.0).execute(&mut *tx).await?;
    self::open(tx, tenant).await
}

/// The same; none where somebody else is accepting near the limit.
pub(super) async fn try_count(
    tx: &mut PgConnection,
    tenant: TenantId,
    wanted: &[&AcceptTurn],
) -> Result<Option<Open>, sqlx::Error> {
    if is_unlimited(wanted) {
        return Ok(Some(Open::default()));
    }
    let open = open(tx, tenant).await?;
    if !open.is_near(wanted) {
        return Ok(Some(open));
    }
    let (held,): (bool,) = sqlx::query_as(TRY_HOLD)
        .bind(tenant.0)
        .fetch_one(&mut *tx)
        .await?;
    if !held {
        return Ok(None);
    }
    // A statement of its own: it sees what was stored by those who had the lock before.
    self::open(tx, tenant).await.map(Some)
}

/// Whether nobody asks for these to be counted.
pub(super) fn is_unlimited(wanted: &[&AcceptTurn]) -> bool {
    wanted
        .iter()
        .all(|turn| turn.max_open_shared == SharedLimits::default())
}

async fn open(tx: &mut PgConnection, tenant: TenantId) -> Result<Open, sqlx::Error> {
    let rows: Vec<(Option<Uuid>, i64)> = sqlx::query_as(OPEN).bind(tenant.0).fetch_all(tx).await?;
    Ok(Open {
        of_tenant: rows.iter().map(|(_, open)| open).sum(),
        of_key: rows
            .into_iter()
            .filter_map(|(key, open)| key.map(|key| (KeyId(key), open)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_application::ports::turns::{TokenLimits, TurnSession};
    use tidemark_domain::ids::{Owner, OwnerId, SessionId, Timestamp, TurnId};
    use tidemark_domain::turn::TurnOptions;

    #[test]
    fn nobody_waits_further_from_a_limit_than_others_may_come_between() {
        let key = KeyId(Uuid::from_u128(1));
        for (limits, with_key, open, near) in [
            (limits(Some(1_000), None), false, 1_000 - MARGIN - 2, false),
            (limits(Some(1_000), None), false, 1_000 - MARGIN - 1, true),
            (limits(Some(1_000), None), false, 2_000, true),
            (limits(None, Some(1_000)), true, 1_000 - MARGIN - 2, false),
            (limits(None, Some(1_000)), true, 1_000 - MARGIN - 1, true),
            (limits(None, Some(1_000)), false, 2_000, false),
            (limits(Some(9_000), Some(1_000)), true, 1_000, true),
        ] {
            let turn = AcceptTurn {
                key: with_key.then_some(key),
                max_open_shared: limits,
                ..turn_of_nobody()
            };
            let counted = Open {
                of_tenant: open,
                of_key: HashMap::from([(key, open)]),
            };
            let found = counted.is_near(&[&turn, &turn]);
            assert_eq!(found, near, "{open} open with {limits:?}");
        }
    }

    fn turn_of_nobody() -> AcceptTurn {
        AcceptTurn {
            owner: Owner {
                tenant: TenantId(Uuid::nil()),
                id: OwnerId(1),
            },
            id: TurnId(Uuid::nil()),
            session: TurnSession::Existing(SessionId(Uuid::nil())),
            input: String::new(),
            memory: None,
            options: TurnOptions::default(),
            reject_if_busy: false,
            replaces: None,
            admit: true,
            max_queued: 1,
            max_open_per_owner: 1,
            key: None,
            max_open_shared: SharedLimits::default(),
            max_tokens: TokenLimits::default(),
            idempotency: None,
            start: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn limits(tenant: Option<i64>, key: Option<i64>) -> SharedLimits {
        SharedLimits { tenant, key }
    }
}
