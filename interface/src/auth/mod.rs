//! Who asks, and whether they may: decided before an operation sees the request.
//!
//! - [`operations`]: what each operation needs
//! - [`proof`]: by what somebody shows who they are
//! - [`cookie`]: what a page shows that has signed in
//! - [`ticket`]: what an `EventSource` shows
//!
//! An operation that takes a [`Caller`](crate::extract::Caller), a [`Reader`](crate::extract::Reader) or a
//! [`Tenant`](crate::extract::Tenant) gets it of the [`Identity`] that was found here, and none where nothing was looked for: what is not
//! declared is not served.

pub mod cookie;
pub mod operations;
pub mod proof;
pub mod ticket;

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tidemark_application::access::pass::Purpose;
use tidemark_domain::identity::{Denied, Principal, Scope};
use tidemark_domain::ids::{KeyId, UserName};

use self::operations::Need;
use self::proof::{Keys, Proof, challenge, refused_pass};
use crate::app::App;
use crate::limits;
use crate::problem::{Code, Problem};

/// How requests are authenticated.
#[derive(Clone, Debug)]
pub enum Gate {
    /// Not at all: whoever can connect, from this machine alone.
    Open(Arc<Principal>),
    /// By API keys, tokens of an identity provider, and what stands for them.
    Keys(Keys),
}

impl Gate {
    /// Whoever can connect may do everything.
    pub fn open() -> Self {
        Self::Open(Arc::new(Principal::anybody()))
    }
}

/// Who asks, and for whom.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Who was proven to ask.
    pub principal: Arc<Principal>,
    /// The user it is about.
    pub user: UserName,
    /// What it was proven with.
    pub proof: Proof,
}

impl FromRequestParts<App> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Self::of(parts).cloned()
    }
}

impl Identity {
    /// The id of the key it was proven with; none of a token, and where nothing is asked for.
    pub fn key_id(&self) -> Option<KeyId> {
        match &self.proof {
            Proof::Key(known) => Some(known.stored.key.id),
            Proof::Nothing | Proof::Token { .. } => None,
        }
    }

    /// Of a request that has passed the gate.
    ///
    /// # Errors
    /// When it has not: a defect of this server, by which nobody gets anything.
    pub fn of(parts: &Parts) -> Result<&Self, Problem> {
        parts.extensions.get().ok_or_else(|| {
            tracing::error!(
                path = parts.uri.path(),
                "an operation does not say what it needs"
            );
            Problem::new(Code::Internal, "a defect of this server")
        })
    }
}

/// Lets through whoever may ask for what they ask, and as often as they do.
pub async fn admit(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match identify(&app, &parts).await {
        Ok(identity) => {
            let counted = identity.as_ref();
            let standing = counted.and_then(|identity| limits::count(&app, &parts, identity));
            if let Some(identity) = identity {
                parts.extensions.insert(identity);
            }
            limits::hold(standing, Request::from_parts(parts, body), next).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Nobody, where nobody is needed or there is no such operation.
async fn identify(app: &App, parts: &Parts) -> Result<Option<Identity>, Problem> {
    let need = parts
        .extensions
        .get::<MatchedPath>()
        .and_then(|path| operations::need(&parts.method, path.as_str()));
    let Some(need) = need.filter(|need| *need != Need::Nothing) else {
        return Ok(None);
    };
    if need.takes_ticket()
        && bearer(&parts.headers).is_none()
        && let Some(ticket) = ticket::shown(&parts.uri)
    {
        return by_ticket(app, parts, ticket).await.map(Some);
    }
    let (principal, proof) = match &app.gate {
        Gate::Open(anybody) => (Arc::clone(anybody), Proof::Nothing),
        Gate::Keys(keys) => by_bearer_or_cookie(app, keys, parts).await?,
    };
    match need {
        Need::Nothing => {}
        Need::Key(scope) | Need::KeyOrTicket(scope) => principal.permit(scope)?,
        Need::Operator => principal.permit_operator()?,
    }
    let user = principal.asks_for(named_user(&parts.headers)?)?;
    Ok(Some(Identity {
        principal,
        user,
        proof,
    }))
}

async fn by_bearer_or_cookie(
    app: &App,
    keys: &Keys,
    parts: &Parts,
) -> Result<(Arc<Principal>, Proof), Problem> {
    if let Some(text) = bearer(&parts.headers) {
        return keys.by_bearer(text).await;
    }
    let cookie = cookie::read(&parts.headers).ok_or_else(|| {
        let what = keys.what_is_needed();
        let detail = format!("{what} is needed, as the header Authorization: Bearer …");
        Problem::new(Code::Unauthenticated, detail).challenge(challenge(""))
    })?;
    cookie::from_own_page(parts)?;
    let opened = app.gate.open_pass(cookie, Purpose::SignIn).await?;
    if opened.pass.is_over(app.clock.now()) {
        return Err(refused_pass("the page has to sign in again"));
    }
    Ok((opened.principal, opened.proof))
}

/// A ticket names the user, whatever else the request says.
async fn by_ticket(app: &App, parts: &Parts, ticket: &str) -> Result<Identity, Problem> {
    let turn = ticket::turn(&parts.uri)
        .ok_or_else(|| refused_pass("the ticket is not valid for this turn"))?;
    let opened = app.gate.open_pass(ticket, Purpose::Ticket(turn)).await?;
    opened.principal.permit(Scope::Chat)?;
    let identity = Identity {
        user: opened.principal.asks_for(None)?,
        principal: opened.principal,
        proof: opened.proof,
    };
    if ticket::is_over(app, &identity, turn, &opened.pass).await? {
        return Err(refused_pass(
            "the ticket is no longer good: its turn has ended",
        ));
    }
    Ok(identity)
}

/// The bearer token of a request. The scheme's name has no case (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}

fn named_user(headers: &HeaderMap) -> Result<Option<UserName>, Problem> {
    let Some(value) = headers.get("x-tidemark-user") else {
        return Ok(None);
    };
    let name = value.to_str().ok().and_then(|text| text.parse().ok());
    name.map(Some).ok_or_else(|| {
        Problem::new(Code::InvalidHeader, "the user is not named properly").field(
            "X-Tidemark-User",
            "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -",
        )
    })
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let detail = denied.to_string();
        let lacks = |detail: String, scope: Scope| {
            let scope = scope.as_str();
            let said = format!("error=\"insufficient_scope\", scope=\"{scope}\"");
            Self::new(Code::InsufficientScope, detail)
                .field("scope", format!("{scope} is needed"))
                .challenge(challenge(&said))
        };
        match denied {
            Denied::LacksScope(scope) => lacks(detail, scope),
            Denied::NotOperator => lacks(
                "the scope admin of the tenant default is needed".to_owned(),
                Scope::Admin,
            ),
            Denied::AnotherUser => Self::new(Code::UserNotAllowed, detail).field(
                "X-Tidemark-User",
                "must be the caller's own user, or absent",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_bearer_token_is_read_whatever_the_case_of_its_scheme() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            bearer(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(read("Bearer tmk_x").as_deref(), Some("tmk_x"));
        assert_eq!(read("bearer  tmk_x ").as_deref(), Some("tmk_x"));
        for other in ["tmk_x", "Basic dXNlcg==", "Bearer", ""] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_refusal_names_what_is_lacking() {
        let refused = Problem::from(Denied::LacksScope(Scope::MemoryWrite));
        assert_eq!(refused.code(), Code::InsufficientScope);
        assert_eq!(refused.errors()[0].message, "memory:write is needed");
        let headers = refused.into_response().headers().clone();
        assert_eq!(
            headers[header::WWW_AUTHENTICATE],
            "Bearer realm=\"tidemark\", error=\"insufficient_scope\", scope=\"memory:write\""
        );
    }
}
