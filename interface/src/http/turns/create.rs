//! `POST /v1/sessions/{id}/turns`: says something in a session.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tidemark_application::chat::accept::Inbound;
use tidemark_domain::ids::{SessionId, TurnId};
use tidemark_domain::turn::{RecallOptions, TurnOptions};
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::{TurnStatusView, TurnView, events_url};
use crate::app::App;
use crate::auth::{Identity, ticket};
use crate::extract::{Caller, IdPath, IdempotencyKey, JsonBody, no_nul};
use crate::http::memories::recall::{ProfileView, TopKView};
use crate::http::memories::view::ScopeView;
use crate::http::sessions::view::MemoryModeView;
use crate::lenient::or_default;
use crate::problem::{Problem, ProblemDocument};
use crate::to_the_end::to_the_end;

/// The longest message, in characters.
pub const MAX_MESSAGE: u64 = 100_000;

/// The longest a `Prefer: wait` is honoured.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// What to do when another turn of the session is open.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// Wait.
    #[default]
    Queue,
    /// Refuse with 409.
    Reject,
}

/// What to say.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTurn {
    /// The message, 1–100,000 characters.
    #[validate(
        length(
            min = 1,
            max = "MAX_MESSAGE",
            message = "must be 1 to 100000 characters"
        ),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(
        min_length = 1,
        max_length = 100_000,
        examples("I prefer answers as tables")
    )]
    pub message: String,
    /// Whether memory is recalled and learned; the session's own mode when not said.
    pub memory: Option<MemoryModeView>,
    /// Only these tools may be called, at most 64; none when empty.
    #[validate(length(max = 64, message = "must be at most 64 tools"))]
    #[schema(max_items = 64)]
    pub tools: Option<Vec<String>>,
    /// What to do when another turn of the session is open.
    #[serde(default, deserialize_with = "or_default")]
    pub if_busy: IfBusy,
    /// Retry, or edit and resend: the turn of that id and all after it are removed from the session, with what was learned from them
    /// alone.
    pub replaces: Option<Uuid>,
    /// How memory is recalled for this turn.
    #[validate(nested)]
    pub recall: Option<TurnRecall>,
}

/// How memory is recalled for a turn; what is not said follows the server's settings.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnRecall {
    /// Only in these scopes; all when not said.
    #[serde(default, deserialize_with = "or_default")]
    #[validate(length(max = 3, message = "must be at most 3 scopes"))]
    #[schema(max_items = 3)]
    pub scopes: Vec<ScopeView>,
    /// How many; `auto` when not said.
    pub top_k: Option<TopKView>,
    /// How to score.
    pub profile: Option<ProfileView>,
    /// Below this nothing is recalled; 0 switches abstention off.
    #[validate(range(min = 0.0, max = 2.0, message = "must be 0 to 2"))]
    #[schema(minimum = 0, maximum = 2)]
    pub min_score: Option<f64>,
    /// Also tell what has faded and is archived; what is shown is told again from then on.
    #[serde(default, deserialize_with = "or_default")]
    pub include_archived: bool,
}

/// What the request sets for its turn alone.
fn options(
    app: &App,
    tools: Option<Vec<String>>,
    recall: Option<TurnRecall>,
) -> Result<TurnOptions, Problem> {
    for (i, name) in tools.iter().flatten().enumerate() {
        if !app.chat.tool_names().any(|known| known == name) {
            return Err(Problem::unacceptable(
                &format!("tools[{i}]"),
                "there is no such tool",
            ));
        }
    }
    let recall = match recall {
        None => RecallOptions::default(),
        Some(recall) => RecallOptions {
            scopes: recall.scopes.into_iter().map(Into::into).collect(),
            top_k: TopKView::fixed(recall.top_k, "recall.top_k")?,
            profile: recall.profile.map(Into::into),
            min_score: recall.min_score,
            archived: recall.include_archived,
        },
    };
    Ok(TurnOptions { tools, recall })
}

/// For `validator`: refuses text of white space alone.
pub fn not_blank(text: &str) -> Result<(), validator::ValidationError> {
    if !text.is_empty() && text.trim().is_empty() {
        let mut error = validator::ValidationError::new("blank");
        error.message = Some("must not be blank".into());
        return Err(error);
    }
    Ok(())
}

/// A turn that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedTurn {
    /// The turn.
    pub turn_id: Uuid,
    /// Its session.
    pub session_id: Uuid,
    /// Where it stands.
    pub status: TurnStatusView,
    /// Where its events are.
    #[schema(examples("/v1/turns/0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e/events"))]
    pub events_url: String,
    /// A ticket for the events, for an `EventSource`; see `POST /v1/turns/{id}/ticket`.
    #[schema(examples("tmt_AZLwwStefDqdHk9aa3yNng"))]
    pub ticket: String,
}

/// Say something in a session
///
/// The turn is stored and runs on, whoever is listening. With `Prefer: wait=60` the answer comes with the response, if it is
/// finished in that time.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/turns",
    operation_id = "create_turn",
    tag = "turns",
    params(
        ("id" = Uuid, Path, description = "The session"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable for 24 hours", pattern = "^[!-~]{1,255}$"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`, at most 300: answer with the finished turn"),
    ),
    request_body = NewTurn,
    responses(
        (
            status = 200, description = "The finished turn, when `Prefer: wait` was given", body = TurnView,
            headers(("Preference-Applied" = String, description = "The `wait` that was honoured"))
        ),
        (
            status = 202, description = "The turn was accepted", body = AcceptedTurn,
            headers(("Location" = String, description = "Where the turn is"))
        ),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn create_turn(
    State(app): State<App>,
    identity: Identity,
    caller: Caller,
    IdPath(session): IdPath<Uuid>,
    key: IdempotencyKey,
    headers: HeaderMap,
    body: JsonBody<NewTurn>,
) -> Result<Response, Problem> {
    let wait = preferred_wait(&headers);
    let JsonBody { value: new, hash } = body;
    let inbound = Inbound {
        owner: caller.owner,
        key: identity.key_id(),
        session: Some(SessionId(session)),
        channel: "api".to_owned(),
        message: new.message,
        memory: new.memory.map(Into::into),
        options: options(&app, new.tools, new.recall)?,
        reject_if_busy: matches!(new.if_busy, IfBusy::Reject),
        replaces: new.replaces.map(TurnId),
        idempotency: key.with_body(hash),
        only_known: false,
    };
    let chat = app.chat.clone();
    let accepted = to_the_end(async move { chat.accept(inbound).await }).await??;
    let mut turn = accepted.turn;
    if let Some(limit) = wait {
        turn = app.chat.wait(caller.owner, turn.id, limit).await?;
        if turn.status.is_terminal() {
            let mut response = Json(TurnView::from(turn)).into_response();
            applied(&mut response, limit);
            return Ok(response);
        }
    }
    let mut response = (
        StatusCode::ACCEPTED,
        Json(AcceptedTurn {
            turn_id: turn.id.0,
            session_id: turn.session_id.0,
            status: turn.status.into(),
            events_url: events_url(turn.id),
            ticket: ticket::issue(&app, &identity, turn.id).await?,
        }),
    )
        .into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/v1/turns/{}", turn.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

fn applied(response: &mut Response, limit: Duration) {
    if let Ok(value) = HeaderValue::from_str(&format!("wait={}", limit.as_secs())) {
        response.headers_mut().insert("preference-applied", value);
    }
}

/// `wait=SECONDS` of `Prefer` (RFC 7240). What is not understood is ignored, as the RFC asks.
fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    headers
        .get_all("prefer")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split([',', ';']))
        .find_map(|p| p.trim().strip_prefix("wait="))
        .and_then(|seconds| seconds.trim_matches('"').parse().ok())
        .map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preference_is_honoured_up_to_its_limit_and_nonsense_ignored() {
        let wait = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(text));
            preferred_wait(&headers)
        };
        assert_eq!(wait("wait=60"), Some(Duration::from_mins(1)));
        assert_eq!(wait("respond-async, wait=5"), Some(Duration::from_secs(5)));
        assert_eq!(wait("wait=99999"), Some(MAX_WAIT));
        assert_eq!(wait("wait=soon"), None);
    }
}
