//! `DELETE /v1/jobs/{id}`.

use axum::extract::State;
use axum::http::StatusCode;
use tidemark_domain::ids::JobId;
use uuid::Uuid;

use crate::app::App;
use crate::extract::{IdPath, NoBody, Tenant};
use crate::problem::{Problem, ProblemDocument};

/// Drop a failed or pending job
///
/// What it was to do is not done. A job that a worker has at the moment cannot be dropped.
#[utoipa::path(
    delete,
    path = "/v1/jobs/{id}",
    operation_id = "drop_job",
    tag = "jobs",
    params(("id" = Uuid, Path, description = "The job")),
    responses(
        (status = 204, description = "It is gone"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn drop_job(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    IdPath(id): IdPath<Uuid>,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    if app.store.drop_job(tenant, JobId(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("failed or pending job"))
    }
}
