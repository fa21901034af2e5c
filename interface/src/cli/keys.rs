//! `tidemark keys`: who may ask a server whose `auth.mode` is `keys` or `jwt`.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use tidemark_application::access::authenticate::STALE;
use tidemark_application::access::issue::{Issued, Keys as Issue, NewKey};
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::keys::Tenant;
use tidemark_domain::identity::{ApiKey, Expiry, Scopes, Standing};
use tidemark_domain::ids::{KeyId, Timestamp};
use tidemark_infrastructure::system::{SystemClock, SystemEntropy, UuidV7};

use super::{print, tell};
use crate::config::Loaded;
use crate::wiring::OpenStore;

/// What is done to keys.
#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Make a key and print it; it cannot be shown again
    Create(Create),
    /// List keys; their secrets are not kept
    List {
        /// Only those of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
    },
    /// Make a key that follows another and print it; the former is good for a while longer
    Rotate {
        /// The id of the former key, as `keys list` shows it
        id: String,
        /// How long the former key stays good, such as 30m, 24h or 7d
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = lifetime)]
        grace: Duration,
    },
    /// Take a key back
    Revoke {
        /// The id of the key, as `keys list` shows it
        id: String,
    },
}

/// A key that is to be made.
#[derive(Debug, Args)]
pub(super) struct Create {
    /// Whose it is; a tenant of that name is made if there is none
    #[arg(long, value_name = "NAME", default_value = "default")]
    tenant: String,
    /// What it may be used for: chat, memory:read, memory:write, tasks, admin; several with commas
    #[arg(long, value_name = "SCOPES")]
    scopes: Scopes,
    /// The one user it is good for; without, each request names the user in X-Tidemark-User
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// When it ends: a time such as 2027-01-31T00:00:00Z, or a while such as 12h or 90d; never when not said
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Expiry>,
    /// A note of what it is for
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
}

/// A while: a whole number and s, m, h or d.
fn lifetime(text: &str) -> Result<Duration, String> {
    let seconds = || -> Option<u64> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(unit)
    };
    let seconds = seconds().ok_or("must be a whole number and s, m, h or d, such as 90d")?;
    Ok(Duration::from_secs(seconds))
}

fn expiry(text: &str) -> Result<Expiry, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(Expiry::At(time.with_timezone(&Utc)));
    }
    let lifetime = lifetime(text)
        .map_err(|_| "must be a time such as 2027-01-31T00:00:00Z, or a while such as 90d")?;
    Ok(Expiry::After(lifetime))
}

fn id(text: &str) -> Result<KeyId, String> {
    let id = text.parse();
    id.map_err(|_| format!("{text:?} is no id of a key; `tidemark keys list` shows them"))
}

/// Does what the command says.
pub(super) fn run(command: &Keys, loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    super::warn(loaded);
    super::runtime()?.block_on(async {
        let store = OpenStore::open_for_keys(&loaded.settings.store).await?;
        let keys = Issue::new(
            store.store(),
            Arc::new(UuidV7::default()),
            Arc::new(SystemClock),
            Arc::new(SystemEntropy),
        );
        let outcome = execute(command, &keys).await;
        store.close().await;
        outcome
    })
}

async fn execute(command: &Keys, keys: &Issue) -> Result<(), Box<dyn Error>> {
    match command {
        Keys::Create(new) => {
            let name = super::tenant_name(&new.tenant)?;
            let new = NewKey {
                tenant: name.clone(),
                name: new.name.clone(),
                scopes: new.scopes,
                user: new.user.as_deref().map(super::user).transpose()?,
                expires: new.expires.unwrap_or(Expiry::Never),
            };
            let issued = keys.create(new).await?;
            tell(&format!(
                "key {} of the tenant {}: {}",
                issued.key.id,
                name.as_str(),
                about(&issued.key)
            ));
            hand_out(&issued)
        }
        Keys::List { tenant } => {
            let tenant = tenant.as_deref().map(super::tenant_name).transpose()?;
            let listed = keys.list(tenant.as_ref()).await?;
            print::text(&table(&listed, SystemClock.now()))
        }
        Keys::Rotate { id: former, grace } => {
            let rotated = keys.rotate(id(former)?, *grace).await?;
            let key = &rotated.next.key;
            tell(&format!("key {}: {}", key.id, about(key)));
            tell(&format!(
                "it follows {former}, which is good until {}",
                time(rotated.former_until)
            ));
            hand_out(&rotated.next)
        }
        Keys::Revoke { id: revoked } => {
            keys.revoke(id(revoked)?).await?;
            tell(&format!(
                "key {revoked} is revoked; every server refuses it within {} s",
                STALE.as_secs()
            ));
            Ok(())
        }
    }
}

/// The key alone on standard output, so that a script can take it.
fn hand_out(issued: &Issued) -> Result<(), Box<dyn Error>> {
    tell("it is shown this once:");
    print::text(&format!("{}\n", issued.text.expose()))
}

fn about(key: &ApiKey) -> String {
    let user = key.user.as_ref().map_or_else(
        || "any user".to_owned(),
        |user| format!("the user {} alone", user.as_str()),
    );
    let end = key.expires_at.map_or_else(
        || "without end".to_owned(),
        |end| format!("until {}", time(end)),
    );
    format!("good for {}, for {user}, {end}", key.scopes)
}

fn time(time: Timestamp) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn state(key: &ApiKey, now: Timestamp) -> String {
    match (key.standing(now), key.successor) {
        (Standing::Revoked, _) => "revoked".to_owned(),
        (Standing::Expired, _) => "expired".to_owned(),
        (Standing::Good, Some(next)) => format!("good, followed by {next}"),
        (Standing::Good, None) => "good".to_owned(),
    }
}

fn table(keys: &[(Tenant, ApiKey)], now: Timestamp) -> String {
    let mut text = "ID\tTENANT\tUSER\tSCOPES\tCREATED\tEXPIRES\tSTATE\tNAME\n".to_owned();
    for (tenant, key) in keys {
        // A note may hold anything, tabs too.
        let note: String = key.name.as_deref().unwrap_or("-").escape_debug().collect();
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{note}",
            key.id,
            tenant.name.as_str(),
            key.user.as_ref().map_or("*", |user| user.as_str()),
            key.scopes.to_string().replace(' ', ","),
            time(key.created_at),
            key.expires_at.map_or_else(|| "never".to_owned(), time),
            state(key, now),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_domain::ids::TenantId;
    use uuid::Uuid;

    #[test]
    fn a_while_is_a_number_and_its_unit() {
        assert_eq!(lifetime("90d"), Ok(Duration::from_hours(90 * 24)));
        assert_eq!(lifetime("0s"), Ok(Duration::ZERO));
        for bad in [
            "",
            "d",
            "90",
            "1w",
            "-1d",
            "1.5h",
            "é",
            "99999999999999999999d",
        ] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
        let end = "2027-01-31T00:00:00Z";
        let read = DateTime::parse_from_rfc3339(end).unwrap();
        assert_eq!(expiry(end), Ok(Expiry::At(read.with_timezone(&Utc))));
        assert_eq!(expiry("12h"), Ok(Expiry::After(Duration::from_hours(12))));
        assert!(expiry("tomorrow").is_err());
    }

    #[test]
    fn a_list_tells_of_each_key_in_one_line_and_nothing_of_its_secret() {
        let now = Timestamp::from_timestamp(1_800_000_000, 0).unwrap();
        let tenant = Tenant {
            id: TenantId(Uuid::from_u128(1)),
            name: "acme".parse().unwrap(),
            created_at: now,
        };
        let key = ApiKey {
            id: KeyId(Uuid::from_u128(2)),
            tenant: tenant.id,
            name: Some("two\nlines\tof text".to_owned()),
            scopes: "chat,admin".parse().unwrap(),
            user: None,
            created_at: now,
            expires_at: Some(now),
            revoked_at: None,
            successor: None,
        };
        let text = table(&[(tenant, key)], now);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split('\t').count(), 8);
        assert_eq!(
            lines[1],
            "00000000-0000-0000-0000-000000000002\tacme\t*\tchat,admin\t2027-01-15T08:00:00Z\t2027-01-15T08:00:00Z\texpired\ttwo\\nlines\\tof text"
        );
    }
}
