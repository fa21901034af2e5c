//! Reading a body: up to 1 MiB, within a time.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use futures::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::problem::{Code, Problem};

/// The largest body: 1 MiB.
pub const MAX_BODY: usize = 1 << 20;

/// How long a body may take.
const LIMIT: Duration = Duration::from_secs(30);

/// So much of a body that is too large is read and dropped: closing the connection on a client that still writes could cost it the
/// answer.
const MAX_DROPPED: usize = 8 << 20;

/// How long that may take.
const DROP_LIMIT: Duration = Duration::from_secs(2);

/// Refuses what says of itself that it is too large.
pub async fn refuse_large(request: Request, next: Next) -> Response {
    let length = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    if length.is_none_or(|length| length <= MAX_BODY as u64) {
        return next.run(request).await;
    }
    // Who asks before sending has nothing on its way.
    if !request.headers().contains_key(header::EXPECT) {
        discard(request.into_body()).await;
    }
    too_large().into_response()
}

/// The whole body.
///
/// # Errors
/// When it is too large, too slow, or breaks off.
pub async fn read(body: Body) -> Result<Bytes, Problem> {
    let until = Instant::now() + LIMIT;
    let expected = body.size_hint().lower().min(MAX_BODY as u64) as usize;
    let mut whole = BytesMut::with_capacity(expected);
    let mut stream = body.into_data_stream();
    loop {
        let next = timeout_at(until, stream.next()).await;
        let next =
            next.map_err(|_| Problem::new(Code::BodyTimeout, "the body did not come in time"))?;
        match next {
            None => return Ok(whole.freeze()),
            Some(Ok(piece)) if whole.len() + piece.len() <= MAX_BODY => {
                whole.extend_from_slice(&piece);
            }
            Some(Ok(_)) => {
                discard(Body::from_stream(stream)).await;
                return Err(too_large());
            }
            Some(Err(_)) => {
                return Err(Problem::new(
                    Code::MalformedBody,
                    "the body could not be read",
                ));
            }
        }
    }
}

fn too_large() -> Problem {
    Problem::new(Code::BodyTooLarge, "the body is larger than 1 MiB")
        .field("body", "must be at most 1 MiB")
}

async fn discard(body: Body) {
    let until = Instant::now() + DROP_LIMIT;
    let mut stream = body.into_data_stream();
    let mut dropped = 0;
    while let Ok(Some(Ok(piece))) = timeout_at(until, stream.next()).await {
        dropped += piece.len();
        if dropped > MAX_DROPPED {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn pieces(count: usize, size: usize) -> Body {
        let piece = Bytes::from(vec![b'x'; size]);
        Body::from_stream(futures::stream::iter(vec![
            Ok::<_, Infallible>(piece);
            count
        ]))
    }

    #[tokio::test]
    async fn a_body_of_one_mebibyte_is_read_and_a_larger_one_refused() {
        assert_eq!(read(pieces(4, MAX_BODY / 4)).await.unwrap().len(), MAX_BODY);
        let refused = read(pieces(5, MAX_BODY / 4)).await.unwrap_err();
        assert_eq!(refused.code(), Code::BodyTooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>());
        assert_eq!(read(body).await.unwrap_err().code(), Code::BodyTimeout);
    }
}
