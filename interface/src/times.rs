//! Times as callers give them.

use chrono::{DateTime, Datelike, SubsecRound, Utc};

/// For `validator`: refuses times outside the years 1–9999, which not every store keeps and RFC 3339 cannot write.
pub fn calendar_time(time: &DateTime<Utc>) -> Result<(), validator::ValidationError> {
    if (1..=9_999).contains(&time.year()) {
        return Ok(());
    }
    let mut error = validator::ValidationError::new("calendar_time");
    error.message = Some("must lie in the years 1 to 9999".into());
    Err(error)
}

/// What a caller gives may be finer than what both stores keep.
pub fn microseconds(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}
