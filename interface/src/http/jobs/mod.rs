//! Jobs: derived work, governed.

pub mod drop;
pub mod list;
pub mod retry;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_jobs))
        .routes(routes!(retry::retry_job))
        .routes(routes!(drop::drop_job))
}
