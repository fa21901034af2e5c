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

/// A list that is ordered by time and id. A cursor says of which it is, so that one of another is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Of sessions.
    Sessions,
    /// Of memories.
    Memories,
    /// Of jobs.
    Jobs,
}

impl List {
    fn mark(self) -> char {
        match self {
            Self::Sessions => 's',
            Self::Memories => 'e',
            Self::Jobs => 'j',
        }
    }
}

/// The cursor behind an item.
pub fn encode(list: List, cursor: &Cursor) -> String {
    format!(
        "{}{:x}.{}",
        list.mark(),
        cursor.at.timestamp_micros(),
        cursor.id.simple()
    )
}

/// The place that a cursor names.
///
/// # Errors
/// When it is none of ours.
pub fn decode(list: List, text: &str) -> Result<Cursor, Problem> {
    let place = text.strip_prefix(list.mark());
    let parsed = place.and_then(|t| t.split_once('.')).and_then(|(at, id)| {
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
    Problem::new(Code::InvalidCursor, "the cursor is not one of this list")
        .field("cursor", "is not one of this list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_in_its_own_list_alone() {
        let place = Cursor {
            at: chrono::DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap(),
            id: Uuid::from_u128(7),
        };
        let text = encode(List::Sessions, &place);
        let back = decode(List::Sessions, &text).unwrap();
        assert_eq!((back.at, back.id), (place.at, place.id));
        for list in [List::Memories, List::Jobs] {
            assert!(decode(list, &text).is_err());
        }
        assert!(decode_seq(&text).is_err());
        assert_eq!(decode_seq(&encode_seq(17)).unwrap(), 17);
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in [
            "",
            "garbage",
            "17",
            "-1",
            "AAAA",
            "\0",
            "🌊",
            "s.",
            "s1.x",
            "szz.00000000000000000000000000000007",
        ] {
            assert!(decode(List::Sessions, text).is_err(), "{text:?}");
            assert!(decode_seq(text).is_err(), "{text:?}");
        }
        assert!(decode_seq("m-1").is_err());
    }
}
