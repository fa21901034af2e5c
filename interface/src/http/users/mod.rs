//! Users as a whole: everything that is kept of one, and its end.

pub mod erase;
pub mod export;
pub mod record;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use tidemark_domain::ids::UserName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::problem::{Code, Problem};

/// The operations.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(export::export_user))
        .routes(routes!(erase::erase_user))
}

/// The user named in the path.
#[derive(Debug)]
pub struct UserPath(pub UserName);

impl<S: Send + Sync> FromRequestParts<S> for UserPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state)
            .await
            .map(|Path(text)| text);
        text.ok()
            .and_then(|text| text.parse().ok())
            .map(Self)
            .ok_or_else(|| {
                Problem::new(
                    Code::InvalidId,
                    "the user in the path is not named properly",
                )
                .field(
                    "id",
                    "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -",
                )
            })
    }
}
