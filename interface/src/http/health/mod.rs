//! Whether the server is well.

pub mod live;
pub mod metrics;
pub mod ready;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(live::healthz))
        .routes(routes!(ready::readyz))
        .routes(routes!(metrics::metrics))
}
