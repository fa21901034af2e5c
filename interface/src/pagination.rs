//! Lists: opaque cursors, stable under insertion.

use serde::Deserialize;
use tidemark_application::ports::store::Cursor;
use utoipa::IntoParams;
use uuid::Uuid;
use validator::Validate;

use crate::problem::{Code, Problem};

/// How much of a list is asked for.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// The most items, 1–100; 20 when not said.
    #[validate(range(min = 1, max = 100, message = "must be 1 to 100"))]
    pub limit: Option<u32>,
    /// Goes on behind the page that gave it.
    pub cursor: Option<String>,
}

/// Items of a page when none is said.
pub const DEFAULT_LIMIT: u32 = 20;

/// The cursor behind an item ordered by time and id.
pub fn encode(cursor: &Cursor) -> String {
    format!("{:x}.{}", cursor.at.timestamp_micros(), cursor.id.simple())
}

/// The place that a cursor names.
///
/// # Errors
/// When it is none of ours.
pub fn decode(text: &str) -> Result<Cursor, Problem> {
    let parsed = text.split_once('.').and_then(|(at, id)| {
        let micros = i64::from_str_radix(at, 16).ok()?;
        Some(Cursor {
            at: chrono::DateTime::from_timestamp_micros(micros)?,
            id: Uuid::try_parse(id).ok()?,
        })
    });
    parsed.ok_or_else(invalid)
}

/// The cursor behind a message.
pub fn encode_seq(seq: i64) -> String {
    format!("m{seq}")
}

/// The message that a cursor names.
///
/// # Errors
/// When it is none of ours.
pub fn decode_seq(text: &str) -> Result<i64, Problem> {
    text.strip_prefix('m')
        .and_then(|t| t.parse().ok())
        .filter(|seq| *seq >= 0)
        .ok_or_else(invalid)
}

fn invalid() -> Problem {
    Problem::new(Code::InvalidCursor, "the cursor is not one of this list").field("cursor", "is not one of this list")
}

