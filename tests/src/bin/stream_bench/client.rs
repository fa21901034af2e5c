//! One stream, read as a page would, every event of it checked.

use std::borrow::Cow;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::clock;
use crate::http::{Chunks, end_of_head};
use crate::token::{Reader, Stamp};

/// What a stream was to its reader, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Seen {
    /// From the question to the first token, without what the model took of it.
    pub(crate) first: u64,
    /// Of each token: from the model to the reader.
    pub(crate) relayed: Vec<u64>,
    /// How many memories were recalled for it by relevance; a relay recalls none.
    pub(crate) recalled: usize,
    /// A way of recalling did not answer in time.
    pub(crate) degraded: bool,
}

/// Asks, and reads to the end of the answer.
///
/// # Errors
/// Says what a stream is that has not all of its tokens in order and one successful end.
pub(crate) async fn turn(
    address: &str,
    path: &str,
    user: &str,
    tokens: usize,
) -> Result<Seen, String> {
    let asked = clock::now();
    let mut stream = TcpStream::connect(address)
        .await
        .map_err(|error| format!("no connection: {error}"))?;
    stream.set_nodelay(true).map_err(|e| e.to_string())?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\nx-tidemark-user: {user}\r\nconnection: close\r\n\r\n"
    );
    let lost = |error: std::io::Error| format!("the connection broke: {error}");
    stream.write_all(request.as_bytes()).await.map_err(lost)?;
    let mut answer = Answer::default();
    let mut bytes = Vec::with_capacity(4 * 1024);
    while !answer.body_ended() {
        bytes.clear();
        if stream.read_buf(&mut bytes).await.map_err(lost)? == 0 {
            return Err("the connection was closed in the middle".to_owned());
        }
        answer.read(&bytes, clock::now())?;
    }
    answer.seen(asked, tokens)
}

/// What has come of an answer.
#[derive(Debug, Default)]
struct Answer {
    /// The bytes of the head, until it is whole.
    head: Vec<u8>,
    streaming: bool,
    chunks: Chunks,
    /// What of the body is no whole event yet.
    body: Vec<u8>,
    tokens: Reader,
    stamps: Vec<Stamp>,
    /// When each came.
    came: Vec<u64>,
    recalled: usize,
    degraded: bool,
    done: bool,
}

#[derive(Deserialize)]
struct Recall {
    memories: Vec<Recalled>,
    #[serde(default)]
    degraded: Vec<String>,
}

#[derive(Deserialize)]
struct Recalled {
    via: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    token: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Done<'a> {
    status: &'a str,
}

impl Answer {
    fn body_ended(&self) -> bool {
        self.chunks.ended()
    }

    fn read(&mut self, bytes: &[u8], at: u64) -> Result<(), String> {
        if self.streaming {
            return self.read_body(bytes, at);
        }
        self.head.extend_from_slice(bytes);
        let Some(end) = end_of_head(&self.head) else {
            return Ok(());
        };
        let first = String::from_utf8_lossy(&self.head);
        let status = first.lines().next().unwrap_or_default();
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the answer was {status}"));
        }
        self.streaming = true;
        let rest = self.head.split_off(end);
        self.read_body(&rest, at)
    }

    fn read_body(&mut self, bytes: &[u8], at: u64) -> Result<(), String> {
        self.chunks
            .read(bytes, &mut self.body)
            .ok_or("the body is no sequence of chunks")?;
        let body = std::mem::take(&mut self.body);
        let mut rest = body.as_slice();
        while let Some(end) = rest.windows(2).position(|w| w == b"\n\n") {
            let event = std::str::from_utf8(&rest[..end]).map_err(|e| e.to_string())?;
            self.read_event(event, at)?;
            rest = &rest[end + 2..];
        }
        self.body = rest.to_vec();
        Ok(())
    }

    fn read_event(&mut self, event: &str, at: u64) -> Result<(), String> {
        let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
        let (Some(kind), Some(data)) = (field("event: "), field("data: ")) else {
            return Ok(());
        };
        if self.done {
            return Err(format!("`{kind}` came after the end"));
        }
        match kind {
            "message" => {
                let message: Message<'_> =
                    serde_json::from_str(data).map_err(|e| format!("{e}: {data}"))?;
                self.tokens
                    .read(&message.token, &mut self.stamps)
                    .ok_or_else(|| format!("not of the model: {data}"))?;
                self.came.resize(self.stamps.len(), at);
            }
            "recall" => {
                let recall: Recall =
                    serde_json::from_str(data).map_err(|e| format!("{e}: {data}"))?;
                let by_relevance = recall.memories.iter().filter(|m| m.via == "relevance");
                self.recalled = by_relevance.count();
                self.degraded = !recall.degraded.is_empty();
            }
            "done" => {
                let done: Done<'_> =
                    serde_json::from_str(data).map_err(|e| format!("{e}: {data}"))?;
                if done.status != "completed" {
                    return Err(format!("the turn ended as {}", done.status));
                }
                self.done = true;
            }
            "reset" | "snapshot" => return Err(format!("the text was replaced by a {kind}")),
            _ => {}
        }
        Ok(())
    }

    fn seen(self, asked: u64, tokens: usize) -> Result<Seen, String> {
        if !self.done {
            return Err("the stream ended without its last event".to_owned());
        }
        let in_order = self.stamps.iter().map(|s| s.number).eq(0..tokens);
        let first = self.stamps.first().zip(self.came.first());
        let (true, Some((first, came))) = (in_order, first) else {
            return Err(format!(
                "{} tokens came of {tokens}, or in another order",
                self.stamps.len()
            ));
        };
        let arrived = first.arrived.ok_or("the first token is not the first")?;
        let by_model = first.sent.saturating_sub(arrived);
        Ok(Seen {
            first: (came - asked).saturating_sub(by_model),
            recalled: self.recalled,
            degraded: self.degraded,
            relayed: self
                .stamps
                .iter()
                .zip(&self.came)
                .map(|(stamp, came)| came.saturating_sub(stamp.sent))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{LAST_CHUNK, put_chunk};
    use crate::token::text;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const DONE: &str = "event: done\ndata: {\"type\":\"done\",\"status\":\"completed\"}\n\n";

    fn message(token: &str) -> String {
        format!("id: t:2\nevent: message\ndata: {{\"token\":\"{token}\"}}\n\n")
    }

    fn read(events: &[String]) -> Result<Seen, String> {
        let mut sent = HEAD.to_vec();
        for event in events {
            put_chunk(&mut sent, event);
        }
        sent.extend_from_slice(LAST_CHUNK);
        let mut answer = Answer::default();
        for (at, byte) in sent.iter().enumerate() {
            answer.read(&[*byte], 10_000 + at as u64)?;
        }
        assert!(answer.body_ended());
        answer.seen(1_000, 3)
    }

    #[test]
    fn what_the_model_took_is_no_part_of_the_first_tokens_delay() {
        let (first, more) = (
            text(0, 6_000, 2_000),
            text(1, 6_500, 0) + &text(2, 6_500, 0),
        );
        let events = [
            ": ok\n\n".to_owned(),
            message(&first),
            message(&more),
            DONE.to_owned(),
        ];
        let seen = read(&events).unwrap();
        assert_eq!(seen.relayed.len(), 3);
        // Asked at 1,000; the model had it from 2,000 to 6,000; the rest is between them.
        assert_eq!(seen.first, 1_000 + seen.relayed[0]);
        assert_eq!(seen.relayed[1], seen.relayed[2]);
    }

    #[test]
    fn a_stream_that_is_not_as_it_should_be_is_an_error() {
        let token = |n| message(&text(n, 6_000, 2_000));
        let done = || DONE.to_owned();
        let failed = "event: done\ndata: {\"status\":\"failed\"}\n\n".to_owned();
        for wrong in [
            vec![token(0), token(1), done()],
            vec![token(0), token(2), token(1), done()],
            vec![token(0), token(1), token(2)],
            vec![token(0), token(1), token(2), failed],
            vec![token(0), token(1), token(2), done(), done()],
            vec![token(0), token(1), done(), token(2)],
            vec![message("Sorry; no"), done()],
        ] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut answer = Answer::default();
        let refused = answer.read(b"HTTP/1.1 429 Too Many Requests\r\n\r\n", 1);
        assert!(refused.unwrap_err().contains("429"));
    }
}
