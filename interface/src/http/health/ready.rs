//! `GET /readyz`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tidemark_application::access::token::Tokens;
use tidemark_application::ports::events::Reach;
use tidemark_application::ports::identity_provider::Reading;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::{Code, Problem, ProblemDocument};

/// The server can do its work.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    /// `ready`.
    #[schema(examples("ready"))]
    pub status: String,
    /// `ok`: the store answers and is migrated.
    #[schema(examples("ok"))]
    pub store: String,
    /// `none`: no embedder is set. `ok`: its last request was answered. `unavailable`: it was not; memory is found by words and times
    /// meanwhile.
    #[schema(examples("ok"))]
    pub embedder: String,
    /// `local`: no Redis is set. `ok`: live events reach followers at every replica. `degraded`: Redis is away; followers at other replicas
    /// get a turn's text with its end.
    #[schema(examples("ok"))]
    pub events: String,
    /// `none`: no tokens of an identity provider are accepted. `ok`: its keys were read when they were to be. `stale`: they could not be read lately;
    /// tokens are judged by those that were read before. `unavailable`: they were never read, or too long ago; tokens are refused with 503, and API keys are
    /// good.
    #[schema(examples("none"))]
    pub identity_provider: String,
}

/// Whether the server can do its work
///
/// For load balancers: 503 while the store does not answer or the server goes down.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    tag = "health",
    responses(
        (status = 200, description = "It can", body = Readiness),
        (status = 503, description = "It cannot now", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn readyz(State(app): State<App>) -> Result<Json<Readiness>, Problem> {
    if app.chat.is_closing() {
        return Err(Problem::new(Code::ShuttingDown, "the server is going down"));
    }
    app.store.ready().await.map_err(|error| {
        tracing::warn!(%error, "not ready");
        Problem::new(
            Code::StoreUnavailable,
            "the store does not answer, or is not migrated",
        )
    })?;
    Ok(Json(Readiness {
        status: "ready".to_owned(),
        store: "ok".to_owned(),
        embedder: match &app.embedders.present {
            None => "none",
            Some(embedder) if embedder.is_well() => "ok",
            Some(_) => "unavailable",
        }
        .to_owned(),
        events: match app.chat.reach() {
            Reach::Process => "local",
            Reach::Replicas => "ok",
            Reach::Degraded => "degraded",
        }
        .to_owned(),
        identity_provider: match app.gate.tokens().map(Tokens::reading) {
            None => "none",
            Some(Reading::Well) => "ok",
            Some(Reading::Stale) => "stale",
            Some(Reading::Missing) => "unavailable",
        }
        .to_owned(),
    }))
}
