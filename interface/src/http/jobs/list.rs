//! `GET /v1/jobs`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidemark_application::ports::embedder::Embedder as _;
use tidemark_application::ports::jobs::{Job, JobKind};
use tidemark_application::ports::store::Cursor;
use utoipa::{IntoParams, ToSchema};
use validator::Validate;

use super::view::{JobProgress, JobStateView, JobView};
use crate::app::App;
use crate::extract::{Params, Tenant};
use crate::pagination::{DEFAULT_LIMIT, List};
use crate::problem::{Problem, ProblemDocument};

/// Which jobs.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListJobsParams {
    /// Only in this state.
    #[param(inline)]
    pub state: Option<JobStateView>,
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    #[param(min_length = 1)]
    pub cursor: Option<String>,
}

/// A part of the list of jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobPage {
    /// The jobs, the newest first.
    pub items: Vec<JobView>,
    /// For the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// List jobs
///
/// Derived work of the tenant, the newest first. What is done is no longer listed.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "list_jobs",
    tag = "jobs",
    params(ListJobsParams),
    responses(
        (status = 200, description = "A part of the list", body = JobPage),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn list_jobs(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    list: List,
    Params(params): Params<ListJobsParams>,
) -> Result<Json<JobPage>, Problem> {
    let after = params
        .cursor
        .as_deref()
        .map(|cursor| list.decode(cursor))
        .transpose()?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    let state = params.state.map(Into::into);
    let page = app.store.list_jobs(tenant, state, after, limit).await?;
    let next_cursor = page.items.last().filter(|_| page.more).map(|last| {
        let place = Cursor {
            at: last.created_at,
            id: last.id.0,
        };
        list.encode(&place)
    });
    let mut items = Vec::with_capacity(page.items.len());
    for job in page.items {
        let progress = progress(&app, &job).await?;
        items.push(JobView {
            progress,
            ..job.into()
        });
    }
    Ok(Json(JobPage { items, next_cursor }))
}

async fn progress(app: &App, job: &Job) -> Result<Option<JobProgress>, Problem> {
    let (JobKind::Embed, Some(embedder)) = (job.kind, &app.embedders.present) else {
        return Ok(None);
    };
    let progress = app
        .store
        .embedding_progress(job.owner, embedder.model())
        .await?;
    Ok(Some(progress.into()))
}
