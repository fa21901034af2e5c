//! `DELETE /v1/users/{id}`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use tidemark_application::ports::users::Receipt;
use utoipa::ToSchema;
use uuid::Uuid;

use super::UserPath;
use crate::app::App;
use crate::extract::{NoBody, Tenant};
use crate::problem::{Problem, ProblemDocument};
use crate::to_the_end::to_the_end;

/// What was erased.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ErasureReceipt)]
pub struct ReceiptView {
    /// Its id.
    pub id: Uuid,
    /// When it was done.
    pub erased_at: DateTime<Utc>,
    /// How many rows of each table were removed.
    pub removed: BTreeMap<String, u64>,
}

impl From<Receipt> for ReceiptView {
    fn from(receipt: Receipt) -> Self {
        Self {
            id: receipt.id,
            erased_at: receipt.erased_at,
            removed: receipt.removed,
        }
    }
}

/// Erase a user
///
/// Turns that run are cancelled; then everything of the user is removed at once: sessions, messages, turns, memories with all that is
/// derived from them, jobs, idempotency keys, API keys that are bound to the user, and the user. The receipt is what stays. Who asks under that name again is a new user.
#[utoipa::path(
    delete,
    path = "/v1/users/{id}",
    operation_id = "erase_user",
    tag = "users",
    params(("id" = String, Path, description = "The tenant's own name for the user", pattern = "^[A-Za-z0-9._:@-]{1,128}$")),
    responses(
        (status = 200, description = "Everything is gone", body = ReceiptView),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn erase_user(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    UserPath(user): UserPath,
    _: NoBody,
) -> Result<Json<ReceiptView>, Problem> {
    let erasing = async move {
        let gone = || app.owners.forget(tenant, user.clone());
        app.erase.run(tenant, &user, gone).await
    };
    let erasure = to_the_end(erasing).await??;
    let erasure = erasure.ok_or_else(|| Problem::not_found("user"))?;
    Ok(Json(erasure.receipt.into()))
}
