//! `POST /v1/logout`.

use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::auth::cookie;
use crate::extract::{NoBody, NoFields};
use crate::problem::{Problem, ProblemDocument};

/// Sign out
///
/// Has the browser forget the cookie. Revoking the key ends every cookie that was got for it.
#[utoipa::path(
    post,
    path = "/v1/logout",
    operation_id = "logout",
    tag = "sign-in",
    request_body = NoFields,
    responses(
        (status = 204, description = "Signed out"),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn logout(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    cookie::from_no_other_page(&parts)?;
    NoBody::from_request(Request::from_parts(parts, body), &app).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    for value in cookie::clear() {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    Ok(response)
}
