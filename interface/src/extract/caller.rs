//! Who asks.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use tidemark_domain::ids::{Owner, TenantId, UserName};

use crate::app::App;
use crate::problem::{Code, Problem};

/// Who asks for something to be written. Without authentication the header names the user of the one tenant, who is made on first sight.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Whose data the request is about.
    pub owner: Owner,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let owner = app
            .owners
            .resolve(TenantId::DEFAULT, user(&parts.headers)?)
            .await?;
        Ok(Self { owner })
    }
}

/// Who asks for what is there already. Nobody is made for it: who is not known yet has nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Whose data the request is about.
    pub owner: Owner,
}

impl FromRequestParts<App> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let owner = app
            .owners
            .find(TenantId::DEFAULT, user(&parts.headers)?)
            .await?;
        Ok(Self { owner })
    }
}

fn user(headers: &HeaderMap) -> Result<UserName, Problem> {
    let Some(value) = headers.get("x-tidemark-user") else {
        return Ok(UserName::default_user());
    };
    value
        .to_str()
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            Problem::new(Code::InvalidHeader, "the user is not named properly").field(
                "X-Tidemark-User",
                "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -",
            )
        })
}
