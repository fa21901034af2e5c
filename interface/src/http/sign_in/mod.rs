//! Signing in: a page trades a key for a cookie that no script can read.

pub mod login;
pub mod logout;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(login::login))
        .routes(routes!(logout::logout))
}
