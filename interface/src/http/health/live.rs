//! `GET /healthz`.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// The server lives.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`.
    #[schema(examples("ok"))]
    pub status: String,
    /// The server's version.
    #[schema(examples("0.1.0"))]
    pub version: String,
}

/// Whether the server lives
///
/// For supervisors: it asks nothing of the store or the model.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "healthz",
    tag = "health",
    responses((status = 200, description = "It does", body = Health))
)]
pub async fn healthz() -> Json<Health> {
    Json(Health {
        status: "ok".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
