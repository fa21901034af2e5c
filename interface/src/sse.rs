//! Server-sent events: framing, heartbeat, resume, backpressure, drain.
//!
//! The body is pulled by the connection: a reader that does not read holds one batch of events and nothing else. The heartbeat has
//! a timer of its own, so that it comes whatever the model does (C4).

use std::convert::Infallible;
use std::fmt::Write as _;
use std::str::FromStr;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use tidemark_application::chat::follow::{Follow, FollowError, Follower, Frame};
use tidemark_domain::ids::{Owner, TurnId};
use tidemark_domain::turn::Turn;
use tokio::time::{Instant, MissedTickBehavior};

use crate::app::App;
use crate::http::turns::event::{Event, ReasoningEvent};
use crate::problem::{Code, Problem};

/// Where a client was: `<turn_id>:<seq>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The turn.
    pub turn: TurnId,
    /// The last event it has seen.
    pub seq: i64,
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (turn, seq) = text.split_once(':').ok_or(())?;
        let digits = !seq.is_empty() && seq.bytes().all(|b| b.is_ascii_digit());
        let seq = seq.parse().ok().filter(|_| digits).ok_or(())?;
        Ok(Self {
            turn: turn.parse().map_err(|_| ())?,
            seq,
        })
    }
}

/// The `Last-Event-ID` of a request. An empty one is none: browsers send it so after an event without id.
///
/// # Errors
/// When it is none of ours.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get("last-event-id").filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .and_then(|text| text.parse().ok())
        .map(Some)
        .ok_or_else(|| {
            Problem::new(
                Code::InvalidPosition,
                "the Last-Event-ID is not one of this server",
            )
            .field(LAST_EVENT_ID, "must be <turn_id>:<seq>")
        })
}

/// Where a stream is to begin.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The turn.
    pub turn: TurnId,
    /// Behind the event of this number; 0 is the start.
    pub after: i64,
    /// The header or parameter that says so.
    pub said_in: &'static str,
}

impl Place {
    /// Where a `Last-Event-ID` says.
    pub fn behind(last: EventId) -> Self {
        Self {
            turn: last.turn,
            after: last.seq,
            said_in: LAST_EVENT_ID,
        }
    }
}

/// The header's name, for people.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// Streams a turn from a place on; 204 when there is nothing more to come, ever.
///
/// # Errors
/// When there is no such turn or place.
pub async fn stream(
    app: &App,
    owner: Owner,
    place: Place,
    reasoning: bool,
) -> Result<Response, Problem> {
    let follow = app.chat.follow(owner, place.turn, place.after).await;
    followed(app, place, reasoning, follow)
}

/// Streams a turn that has just been accepted, from its start.
///
/// # Errors
/// None where it was accepted just now; see [`stream`].
pub fn stream_accepted(
    app: &App,
    owner: Owner,
    turn: Turn,
    said_in: &'static str,
    reasoning: bool,
) -> Result<Response, Problem> {
    let place = Place {
        turn: turn.id,
        after: 0,
        said_in,
    };
    followed(app, place, reasoning, app.chat.follow_from(owner, turn, 0))
}

fn followed(
    app: &App,
    place: Place,
    reasoning: bool,
    follow: Result<Follow, FollowError>,
) -> Result<Response, Problem> {
    let turn = place.turn;
    let follow = follow.map_err(|error| match error {
        FollowError::BeyondEnd => {
            Problem::from(error).field(place.said_in, "lies beyond the end of the turn")
        }
        error => error.into(),
    })?;
    let follower = match follow {
        Follow::AtEnd => return Ok(StatusCode::NO_CONTENT.into_response()),
        Follow::From(follower) => follower,
    };
    let mut response =
        Body::from_stream(events(app.clone(), turn, follower, reasoning)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (
            header::CACHE_CONTROL.as_str(),
            "no-cache, no-store, no-transform",
        ),
        ("x-accel-buffering", "no"),
    ] {
        if let Ok(name) = header::HeaderName::from_str(name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(response)
}

fn events(
    app: App,
    turn: TurnId,
    mut follower: Follower,
    reasoning: bool,
) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send {
    async_stream::stream! {
        let mut thoughts = if reasoning {
            app.chat.reasoning(turn).await
        } else {
            futures::stream::pending().boxed()
        };
        let period = app.streams.heartbeat;
        let mut heartbeat = tokio::time::interval_at(Instant::now() + period, period);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let open = metrics::gauge!("tidemark_streams_open");
        open.increment(1);
        let _closed = OnDrop(move || open.decrement(1));
        let retry = format!("retry: {}\n", app.streams.retry.as_millis());
        // The first bytes at once, whatever the first event waits for.
        yield Ok(Bytes::from_static(b": ok\n\n"));
        let mut first = Some(retry.clone());
        loop {
            tokio::select! {
                biased;
                () = app.draining.cancelled() => {
                    yield Ok(Bytes::from(format!("{retry}\n")));
                    return;
                }
                frames = follower.next() => match frames {
                    Ok(Some(frames)) => {
                        let mut text = first.take().unwrap_or_default();
                        for frame in &frames {
                            write_frame(&mut text, turn, frame);
                            if let Some(log) = &app.streams.event_log {
                                log.write(turn, frame);
                            }
                        }
                        yield Ok(Bytes::from(text));
                    }
                    Ok(None) => return,
                    Err(error) => {
                        // Without a terminal event: the client comes back and finds what is stored.
                        log_lost(turn, &error);
                        return;
                    }
                },
                Some(token) = thoughts.next() => {
                    yield Ok(Bytes::from(reasoning_text(turn, token)));
                }
                _ = heartbeat.tick() => yield Ok(Bytes::from_static(b": heartbeat\n\n")),
            }
        }
    }
}

fn log_lost(turn: TurnId, error: &FollowError) {
    tracing::warn!(%turn, %error, "a stream ended without its terminal event");
}

/// One event. `serde_json` escapes line breaks, so that `data` is one line.
pub(crate) fn write_frame(text: &mut String, turn: TurnId, frame: &Frame) {
    let event = Event::of(turn, frame);
    let (seq, name) = (event.seq(), event.name());
    let data = serde_json::to_string(&event).unwrap_or_default();
    let _ = write!(text, "id: {turn}:{seq}\nevent: {name}\ndata: {data}\n\n");
}

/// Reasoning has neither id nor number and is never replayed.
pub(crate) fn reasoning_text(turn: TurnId, token: String) -> String {
    let event = ReasoningEvent::new(turn, token);
    let data = serde_json::to_string(&event).unwrap_or_default();
    format!("event: reasoning\ndata: {data}\n\n")
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_turn_and_a_number() {
        let id = "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e:17";
        assert_eq!(id.parse::<EventId>().unwrap().seq, 17);
        for bad in [
            "",
            ":",
            "x:1",
            "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e",
            "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e:-1",
            "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e:+1",
            "0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e:99999999999999999999",
        ] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }
}
