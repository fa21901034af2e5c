//! Sessions: conversations of one user.

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod update;
pub mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create_session, list::list_sessions))
        .routes(routes!(
            get::get_session,
            update::update_session,
            delete::delete_session
        ))
}
