//! When to try again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The longest wait that a server may ask for before it is taken at its word that it does not want to serve: 20 s. A person who
/// waits for an answer is better told.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Longer requests to wait are reported as this.
const LONGEST_REPORTED: Duration = Duration::from_hours(24);

const FIRST_BACKOFF: Duration = Duration::from_millis(250);

/// Whether a status may be another at the next try.
pub(super) fn is_transient(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}

/// The wait before retry number `retry` (from 0): doubling from 250 ms, each shortened at random by up to half, so that clients that
/// failed together do not return together.
pub(super) fn backoff(retry: u32) -> Duration {
    let full = FIRST_BACKOFF
        .saturating_mul(1_u32.checked_shl(retry).unwrap_or(u32::MAX))
        .min(LONGEST_WAIT);
    let dice = RandomState::new().hash_one(retry) % 1_000;
    full.mul_f64(1.0 - dice as f64 / 2_000.0)
}

/// How long `Retry-After` asks to wait: seconds, or a date (RFC 9110, 10.2.3), which is read against the server's own `Date`, where it sends one,
/// so that its clock does not matter.
pub(super) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if let Ok(seconds) = value.parse::<f64>() {
        Duration::try_from_secs_f64(seconds).ok()?
    } else {
        let until = DateTime::parse_from_rfc2822(value).ok()?;
        let since = date(headers, &DATE).unwrap_or(now);
        (until.to_utc() - since).to_std().unwrap_or(Duration::ZERO)
    };
    Some(wait.min(LONGEST_REPORTED))
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<DateTime<Utc>> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect()
    }

    fn now() -> DateTime<Utc> {
        "2026-01-05T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn seconds_are_understood() {
        for (text, millis) in [("3", 3_000), ("0.5", 500), (" 0 ", 0)] {
            let wait = retry_after(&headers(&[(RETRY_AFTER, text)]), now());
            assert_eq!(wait, Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_date_is_read_against_the_servers_own_clock() {
        let until = (RETRY_AFTER, "Mon, 05 Jan 2026 10:00:30 GMT");
        assert_eq!(
            retry_after(&headers(std::slice::from_ref(&until)), now()),
            Some(Duration::from_secs(30))
        );
        let behind = (DATE, "Mon, 05 Jan 2026 10:00:25 GMT");
        assert_eq!(
            retry_after(&headers(&[until, behind]), now()),
            Some(Duration::from_secs(5))
        );
    }

    #[test]
    fn a_date_that_has_passed_is_no_wait() {
        let past = headers(&[(RETRY_AFTER, "Mon, 05 Jan 2026 09:00:00 GMT")]);
        assert_eq!(retry_after(&past, now()), Some(Duration::ZERO));
    }

    #[test]
    fn nonsense_is_no_request_to_wait_and_an_age_is_reported_as_a_day() {
        for text in ["soon", "-5", "NaN", "inf", ""] {
            assert_eq!(
                retry_after(&headers(&[(RETRY_AFTER, text)]), now()),
                None,
                "{text}"
            );
        }
        let age = headers(&[(RETRY_AFTER, "99999999999")]);
        assert_eq!(retry_after(&age, now()), Some(LONGEST_REPORTED));
    }

    #[test]
    fn waits_double_within_their_jitter_and_never_overflow() {
        for (retry, full) in [(0, 250), (1, 500), (2, 1_000)] {
            let wait = backoff(retry).as_millis();
            assert!((full / 2..=full).contains(&wait), "{retry}: {wait}");
        }
        assert!(backoff(u32::MAX) <= LONGEST_WAIT);
    }
}
