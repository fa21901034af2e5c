//! Changes of what is remembered: listed, and undone as a whole.

pub mod list;
pub mod revert;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_changes))
        .routes(routes!(revert::revert_change))
}
