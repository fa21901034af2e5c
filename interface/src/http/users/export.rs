//! `POST /v1/users/{id}/export`.

use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tidemark_application::users::export::Export;
use tidemark_domain::ids::{Timestamp, UserName};

use super::UserPath;
use super::record::{EndLine, Line, UserLine};
use crate::app::App;
use crate::extract::{NoBody, NoFields, Tenant};
use crate::problem::{Problem, ProblemDocument};

/// Export a user
///
/// Everything that is kept of the user, as JSON Lines. Each line is an object whose `type` says what it is: `user`, then `session`,
/// `message`, `turn`, `memory`, `change`, `tombstone`, `job` and `idempotency_key`, each as its own operation shows it, then `end` with the number
/// of `records`. An export that breaks off has no end. What is written meanwhile may be in it. With `Accept: text/plain` it is declared so.
#[utoipa::path(
    post,
    path = "/v1/users/{id}/export",
    operation_id = "export_user",
    tag = "users",
    params(("id" = String, Path, description = "The tenant's own name for the user", pattern = "^[A-Za-z0-9._:@-]{1,128}$")),
    request_body = NoFields,
    responses(
        (status = 200, description = "The records, one a line", content((String = "application/jsonl"), (String = "text/plain"))),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn export_user(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    UserPath(user): UserPath,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Response, Problem> {
    let store = Arc::clone(&app.store);
    let export = Export::of(store, tenant, &user).await?;
    let export = export.ok_or_else(|| Problem::not_found("user"))?;
    let mut response = Body::from_stream(lines(export, user, app.clock.now())).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(if wants_text(&headers) {
            "text/plain; charset=utf-8"
        } else {
            "application/jsonl"
        }),
    );
    Ok(response)
}

/// For clients that know no other lines.
fn wants_text(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.trim().starts_with("text/plain"))
}

/// The export as text, a page of records at a time. It breaks off where the store fails, so that nobody takes it for whole.
pub fn lines(
    mut export: Export,
    user: UserName,
    now: Timestamp,
) -> impl futures::Stream<Item = Result<Bytes, Box<dyn Error + Send + Sync>>> + Send {
    async_stream::try_stream! {
        let first = Line::User(UserLine {
            id: user.as_str().to_owned(),
            created_at: export.user().since,
            exported_at: now,
        });
        yield Bytes::from(first.text()?);
        let mut records = 0;
        while let Some(page) = export.next().await? {
            let mut text = String::new();
            for record in page {
                text.push_str(&Line::of(record, now).text()?);
                records += 1;
            }
            yield Bytes::from(text);
        }
        yield Bytes::from(Line::End(EndLine { records }).text()?);
    }
}
