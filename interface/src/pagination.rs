//! Lists: opaque cursors, stable under insertion.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tidemark_application::ports::store::Cursor;
use tidemark_domain::ids::Owner;
use utoipa::IntoParams;
use uuid::Uuid;
use validator::Validate;

use crate::app::App;
use crate::extract::Reader;
use crate::problem::{Code, Problem};

/// How much of a list is asked for.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    #[param(min_length = 1)]
    pub cursor: Option<String>,
}

/// Items of a page when none is said.
pub const DEFAULT_LIMIT: u32 = 20;

/// The list that a request asks for: of this user, at this path, under this filter. Its cursors say so, and one of another list is
/// refused: it would name a place that is none there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(u64);

impl FromRequestParts<App> for List {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let reader = Reader::from_request_parts(parts, app).await?;
        Ok(Self::of(reader.owner, &parts.uri))
    }
}

impl List {
    fn of(owner: Owner, uri: &Uri) -> Self {
        let mut filter: Vec<(String, String)> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .filter(|(name, _)| !matches!(*name, "limit" | "cursor" | ""))
            .map(|(name, value)| (decoded(name), decoded(value)))
            .collect();
        filter.sort();
        let mut hash = Sha256::new();
        let of = (owner.tenant.0, owner.id, uri.path(), filter);
        hash.update(format!("{of:?}"));
        let digest: [u8; 32] = hash.finalize().into();
        let (first, _) = digest.split_at(8);
        Self(
            first
                .iter()
                .fold(0, |print, byte| print << 8 | u64::from(*byte)),
        )
    }

    /// The cursor behind an item of a list that is ordered by time and id.
    pub fn encode(self, cursor: &Cursor) -> String {
        format!(
            "{:016x}.{:x}.{}",
            self.0,
            cursor.at.timestamp_micros(),
            cursor.id.simple()
        )
    }

    /// The place that a cursor names.
    ///
    /// # Errors
    /// When it is none of this list.
    pub fn decode(self, text: &str) -> Result<Cursor, Problem> {
        let place = self.place(text).and_then(|place| place.split_once('.'));
        let parsed = place.and_then(|(at, id)| {
            let micros = i64::from_str_radix(at, 16).ok()?;
            Some(Cursor {
                at: chrono::DateTime::from_timestamp_micros(micros)?,
                id: Uuid::try_parse(id).ok()?,
            })
        });
        parsed.ok_or_else(invalid)
    }

    /// The cursor behind a message.
    pub fn encode_seq(self, seq: i64) -> String {
        format!("{:016x}.{seq}", self.0)
    }

    /// The message that a cursor names.
    ///
    /// # Errors
    /// When it is none of this list.
    pub fn decode_seq(self, text: &str) -> Result<i64, Problem> {
        self.place(text)
            .and_then(|place| place.parse().ok())
            .filter(|seq| *seq >= 0)
            .ok_or_else(invalid)
    }

    /// What follows the list's own mark.
    fn place(self, text: &str) -> Option<&str> {
        text.strip_prefix(&format!("{:016x}.", self.0))
    }
}

/// A part of a query as its reader takes it.
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

fn invalid() -> Problem {
    Problem::new(Code::InvalidCursor, "the cursor is not one of this list")
        .field("cursor", "is not one of this list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_domain::ids::{OwnerId, TenantId};

    fn list(uri: &'static str) -> List {
        owned(1, uri)
    }

    fn owned(id: i64, uri: &'static str) -> List {
        let tenant = TenantId::DEFAULT;
        List::of(
            Owner {
                tenant,
                id: OwnerId(id),
            },
            &Uri::from_static(uri),
        )
    }

    #[test]
    fn a_cursor_leads_back_to_its_place_in_its_own_list_alone() {
        let place = Cursor {
            at: chrono::DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap(),
            id: Uuid::from_u128(7),
        };
        let own = list("/v1/memories?text=a+b&kind=fact&limit=3");
        let text = own.encode(&place);
        let again = list("/v1/memories?cursor=x&kind=fact&limit=9&text=a%20b");
        let back = again.decode(&text).unwrap();
        assert_eq!((back.at, back.id), (place.at, place.id));
        for other in [
            list("/v1/memories"),
            list("/v1/memories?text=a+b"),
            list("/v1/memories?text=a+b&kind=decision"),
            list("/v1/sessions?text=a+b&kind=fact"),
            owned(2, "/v1/memories?text=a+b&kind=fact"),
        ] {
            assert!(other.decode(&text).is_err());
        }
        let messages = list("/v1/sessions/a/messages");
        let text = messages.encode_seq(17);
        assert_eq!(messages.decode_seq(&text).unwrap(), 17);
        assert!(list("/v1/sessions/b/messages").decode_seq(&text).is_err());
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let list = list("/v1/sessions");
        let mark = list.encode_seq(0);
        let mark = mark.trim_end_matches('0');
        for text in [
            "", "garbage", "17", "-1", "AAAA", "\0", "🌊", "s.", "s1.x", mark,
        ] {
            assert!(list.decode(text).is_err(), "{text:?}");
            assert!(list.decode_seq(text).is_err(), "{text:?}");
        }
        for place in ["-1", "x", "1.x", "zz.00000000000000000000000000000007"] {
            let text = format!("{mark}{place}");
            assert!(list.decode(&text).is_err(), "{text:?}");
            assert!(list.decode_seq(&text).is_err(), "{text:?}");
        }
    }
}
