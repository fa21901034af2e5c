//! `POST /v1/login`.

use std::fmt;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::access::pass::{Pass, Purpose};
use tidemark_application::access::token::TokenError;
use tidemark_domain::identity::Principal;
use tidemark_domain::ids::UserName;
use utoipa::ToSchema;
use validator::Validate;

use crate::app::App;
use crate::auth::proof::Proof;
use crate::auth::{Gate, cookie};
use crate::extract::JsonBody;
use crate::problem::{Code, Problem, ProblemDocument};

/// What a page signs in with.
#[derive(Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// An API key, or a token of the identity provider where these are accepted.
    #[validate(length(min = 1, max = 8192, message = "must be 1 to 8192 characters"))]
    #[schema(min_length = 1, max_length = 8192)]
    pub key: String,
    /// The user that the page is for, where the key is bound to none; without, each request names the user.
    #[schema(examples("ada@example.org"))]
    pub user: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// What a page may do that has signed in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedIn {
    /// The user that it is for, unless a request names one.
    #[schema(examples("default"))]
    pub user: String,
    /// What it may do.
    #[schema(examples("chat"))]
    pub scopes: Vec<String>,
    /// When it has to sign in again.
    pub expires_at: DateTime<Utc>,
}

/// Sign in
///
/// Trades an API key, or a token of the identity provider, for a cookie that stands for it: `HttpOnly`, `SameSite=Strict`, and `Secure` where the page comes over TLS.
/// The cookie is good for every operation that the key or token is good for, as long as that is, and for `auth.session_hours` at most. Whatever writes, and `GET /v1/chat/stream`, is
/// taken by it from the server's own pages alone.
#[utoipa::path(
    post,
    path = "/v1/login",
    operation_id = "login",
    tag = "sign-in",
    request_body = Login,
    responses(
        (status = 200, description = "Signed in; the cookie is in `Set-Cookie`", body = SignedIn),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn login(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    // Another page is not to sign a browser in as somebody else.
    cookie::from_no_other_page(&parts)?;
    let secure = is_secure(&parts);
    let request = Request::from_parts(parts, body);
    let JsonBody { value: login, .. } = JsonBody::<Login>::from_request(request, &app).await?;
    let Gate::Keys(keys) = &app.gate else {
        return Err(Problem::new(
            Code::NotFound,
            "there is nothing to sign in to: this server asks for no keys",
        ));
    };
    let user = login.user.as_deref().map(str::parse::<UserName>);
    let user = user
        .transpose()
        .map_err(|error| Problem::unacceptable("user", error.to_string()))?;
    let (principal, proof) = keys.by_bearer(&login.key).await?;
    let asks_for = principal.asks_for(user.clone())?;
    let now = app.clock.now();
    let most = now + keys.session;
    let expires_at = proof.expires_at().map_or(most, |end| end.min(most));
    if expires_at <= now {
        // Good for a moment yet, since clocks differ; a cookie that is over already would be none.
        return Err(TokenError::Expired.into());
    }
    let whose = match &user {
        None => Principal::clone(&principal),
        Some(user) => principal.bound_to(user.clone()),
    };
    let pass = Pass {
        of: proof.of(&whose),
        // A key is read again whenever the cookie comes. What a token said is said by the cookie.
        user: match proof {
            Proof::Token { .. } => Some(asks_for.clone()),
            Proof::Key(_) | Proof::Nothing => user,
        },
        expires_at: Some(expires_at),
    };
    let pass = app.gate.seal(&pass, &proof, Purpose::SignIn).await?;
    let lasts = (expires_at - now).to_std().unwrap_or(Duration::ZERO);
    let signed_in = SignedIn {
        user: asks_for.as_str().to_owned(),
        scopes: (principal.scopes.iter())
            .map(|scope| scope.as_str().to_owned())
            .collect(),
        expires_at,
    };
    let mut response = Json(signed_in).into_response();
    let headers = response.headers_mut();
    if let Some(value) = cookie::set(&pass, secure || app.tls, lasts) {
        headers.insert(header::SET_COOKIE, value);
    }
    Ok(response)
}

/// Whether the page came over TLS, which a proxy may have taken off: its browser says so, or the proxy does. Whoever says it falsely gets a
/// cookie that their own browser does not send.
fn is_secure(parts: &Parts) -> bool {
    let begins = |name: &str, with: &str| {
        let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
        value.is_some_and(|value| value.starts_with(with))
    };
    begins("origin", "https://") || begins("x-forwarded-proto", "https")
}
