//! Tickets: what an `EventSource`, which can send no header, shows instead of a key. One is good for the events of one turn.

use std::time::Duration;

use axum::http::Uri;
use tidemark_application::access::pass::{Pass, Purpose};
use tidemark_domain::ids::TurnId;

use super::Identity;
use crate::app::App;
use crate::problem::Problem;

/// How long a ticket is good at least, and how long after its turn has ended: for whoever was cut off shortly before.
pub const GRACE: Duration = Duration::from_mins(2);

/// The parameter that shows it.
const PARAMETER: &str = "ticket";

/// The ticket that a request shows.
pub(super) fn shown(uri: &Uri) -> Option<&str> {
    uri.query()?
        .split('&')
        .find_map(|pair| pair.strip_prefix(PARAMETER)?.strip_prefix('='))
}

/// The turn whose events a request is for.
pub(super) fn turn(uri: &Uri) -> Option<TurnId> {
    let rest = uri.path().strip_prefix("/v1/turns/")?;
    rest.strip_suffix("/events")?.parse().ok()
}

/// A ticket of whoever asks, for a turn of theirs. It outlives a token that it stands for only while its turn is open, and shortly after; a key, never.
///
/// # Errors
/// When there is nothing to sign it with.
pub async fn issue(app: &App, identity: &Identity, turn: TurnId) -> Result<String, Problem> {
    let soon = app.clock.now() + GRACE;
    let end = identity.proof.expires_at();
    let pass = Pass {
        of: identity.proof.of(&identity.principal),
        user: Some(identity.user.clone()),
        expires_at: Some(end.map_or(soon, |end| end.min(soon))),
    };
    let purpose = Purpose::Ticket(turn);
    app.gate.seal(&pass, &identity.proof, purpose).await
}

/// Where the events are, with a ticket for them.
pub fn events_url(turn: TurnId, ticket: &str) -> String {
    let events = crate::http::turns::view::events_url(turn);
    format!("{events}?{PARAMETER}={ticket}")
}

/// Whether a ticket is no longer good: it is some time old, and its turn has ended some time ago.
pub(super) async fn is_over(
    app: &App,
    identity: &Identity,
    turn: TurnId,
    pass: &Pass,
) -> Result<bool, Problem> {
    let now = app.clock.now();
    if !pass.is_over(now) {
        return Ok(false);
    }
    let (tenant, user) = (identity.principal.tenant, identity.user.clone());
    let owner = app.owners.find(tenant, user).await?;
    let turn = app.store.turn(owner, turn).await?;
    let ended = turn.and_then(|turn| turn.ended_at);
    Ok(ended.is_some_and(|ended| ended + GRACE <= now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_shown_by_its_parameter_for_the_turn_of_the_path() {
        let id = "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e";
        let uri: Uri = format!("/v1/turns/{id}/events?after=3&ticket=tmt_x&ticket=y")
            .parse()
            .unwrap();
        assert_eq!(shown(&uri), Some("tmt_x"));
        assert_eq!(turn(&uri), Some(id.parse().unwrap()));
        for other in ["/v1/turns/x/events", "/v1/turns/", "/v1/turns?tickets=a"] {
            let uri: Uri = other.parse().unwrap();
            assert_eq!((shown(&uri), turn(&uri)), (None, None), "{other}");
        }
    }
}
