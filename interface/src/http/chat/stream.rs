//! `GET /v1/chat/stream`: for a bare `EventSource`, which can only get (C3, C5).

use axum::extract::{FromRequestParts, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tidemark_application::chat::accept::{Inbound, InboundError};
use tidemark_application::ports::store::Idempotency;
use tidemark_application::ports::turns::AcceptError;
use tidemark_domain::ids::{Owner, SessionId};
use tidemark_domain::turn::TurnOptions;
use utoipa::IntoParams;
use uuid::Uuid;
use validator::Validate;

use crate::app::App;
use crate::auth::Identity;
use crate::extract::{Caller, Reader, no_nul};
use crate::http::turns::create::{MAX_MESSAGE, not_blank};
use crate::http::turns::event::Event;
use crate::limits::OnlyKnown;
use crate::problem::{Code, Problem, ProblemDocument};
use crate::sse::{self, Place};
use crate::to_the_end::to_the_end;

/// What to say.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChatStreamParams {
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
    #[param(min_length = 1, max_length = 100_000, example = "What is the budget?")]
    pub query: String,
    /// The session; a new one when none is named.
    pub session_id: Option<Uuid>,
    /// The idempotency key: the same again yields the same turn, from its start. Without it, a connection that is cut before the
    /// first event may ask twice.
    #[validate(
        length(min = 1, max = 255, message = "must be 1 to 255 characters"),
        custom(function = "no_nul")
    )]
    #[param(min_length = 1, max_length = 255)]
    pub request_id: Option<String>,
    /// Also tell the model's reasoning, as it comes.
    pub reasoning: Option<bool>,
}

/// Ask and stream the answer
///
/// For a bare `EventSource`. A reconnect carries `Last-Event-ID`: it wins over all parameters, and no turn is ever started by it.
#[utoipa::path(
    get,
    path = "/v1/chat/stream",
    operation_id = "chat_stream",
    tag = "turns",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen, `<turn_id>:<seq>`; an empty one is none", pattern = "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]{1,18})?$"),
        ChatStreamParams,
    ),
    responses(
        (status = 200, description = "The events, each as the data of a server-sent event", body = Event, content_type = "text/event-stream"),
        (status = 204, description = "There is nothing more to come"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn chat_stream(
    State(app): State<App>,
    headers: HeaderMap,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    if request.method() == Method::HEAD {
        // Whoever wants the headers alone asks nothing.
        return Err(Problem::new(
            Code::MethodNotAllowed,
            "this address does not know that method",
        ));
    }
    if let Some(last) = sse::last_event_id(&headers)? {
        let reasoning = wants_reasoning(request.uri().query().unwrap_or_default());
        let (mut parts, _) = request.into_parts();
        let reader = Reader::from_request_parts(&mut parts, &app).await?;
        return sse::stream(&app, reader.owner, Place::behind(last), reasoning).await;
    }
    let (mut parts, _) = request.into_parts();
    // A stream of a turn that is there is never refused for load, and the request id may name one.
    let refusal = parts.extensions.remove::<OnlyKnown>();
    let key = Identity::of(&parts)?.key_id();
    let params = crate::extract::Params::<ChatStreamParams>::of(&parts)?.0;
    let owner = if let Some(OnlyKnown(problem)) = &refusal {
        let owner = Reader::from_request_parts(&mut parts, &app).await?.owner;
        // Whoever is not known has no turn, and is not made for a request that is refused.
        if owner == Owner::nobody(owner.tenant) {
            return Err(problem.clone());
        }
        owner
    } else {
        Caller::from_request_parts(&mut parts, &app).await?.owner
    };
    let query = params.query;
    let idempotency = params.request_id.map(|key| Idempotency {
        key,
        operation: "GET /v1/chat/stream".to_owned(),
        body_hash: Sha256::digest(query.as_bytes()).into(),
    });
    let inbound = Inbound {
        owner,
        key,
        session: params.session_id.map(SessionId),
        channel: "web".to_owned(),
        message: query,
        memory: None,
        options: TurnOptions::default(),
        reject_if_busy: false,
        replaces: None,
        idempotency,
        only_known: refusal.is_some(),
    };
    let chat = app.chat.clone();
    let accepted = to_the_end(async move { chat.accept(inbound).await })
        .await?
        .map_err(|error| match (error, refusal) {
            (InboundError::NotKnown, Some(OnlyKnown(problem))) => problem,
            (InboundError::Accept(AcceptError::IdempotencyMismatch), _) => Problem::new(
                Code::IdempotencyMismatch,
                "the request id was used with another query",
            )
            .field("request_id", "was used with another query"),
            (error, _) => error.into(),
        })?;
    let reasoning = params.reasoning.unwrap_or(false);
    sse::stream_accepted(&app, owner, accepted.turn, "request_id", reasoning)
}

/// What a reconnect says of reasoning; all its other parameters are passed over, whatever they hold.
fn wants_reasoning(query: &str) -> bool {
    serde_html_form::from_str::<Vec<(String, String)>>(query)
        .unwrap_or_default()
        .iter()
        .any(|(name, value)| name == "reasoning" && value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reconnect_wants_reasoning_when_it_says_so_and_not_when_its_question_does() {
        assert!(wants_reasoning("query=x&reasoning=true"));
        assert!(!wants_reasoning("query=reasoning%3Dtrue"));
        assert!(!wants_reasoning("query=reasoning=true&reasoning=false"));
    }
}
