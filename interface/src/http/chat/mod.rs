//! Chat over a bare `EventSource`.

pub mod stream;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream::chat_stream))
}
