//! `POST /v1/jobs/{id}/retry`.

use axum::Json;
use axum::extract::State;
use tidemark_domain::ids::JobId;
use uuid::Uuid;

use super::view::JobView;
use crate::app::App;
use crate::extract::{IdPath, NoBody, NoFields, Tenant};
use crate::problem::{Problem, ProblemDocument};

/// Retry a failed job
///
/// It waits for a worker again, with all its attempts. Only what has failed can be retried.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/retry",
    operation_id = "retry_job",
    tag = "jobs",
    params(("id" = Uuid, Path, description = "The job")),
    request_body = NoFields,
    responses(
        (status = 200, description = "The job that now waits: this one, or one of its kind that waited for the session already", body = JobView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn retry_job(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    IdPath(id): IdPath<Uuid>,
    _: NoBody,
) -> Result<Json<JobView>, Problem> {
    let job = app.store.retry_job(tenant, JobId(id)).await?;
    let job = job.ok_or_else(|| Problem::not_found("failed job"))?;
    app.work.notify_one();
    Ok(Json(job.into()))
}
