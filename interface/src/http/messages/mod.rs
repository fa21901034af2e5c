//! The messages of a session.

pub mod import;
pub mod list;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list::list_messages, import::import_messages))
}
