//! A client of event streams as strict as the standard (WHATWG HTML, "Server-sent events"), which also notes when what arrived.

use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::header::HeaderMap;

/// What a stream is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A block with data.
    Event(SseEvent),
    /// A comment line without its colon and first blank.
    Comment(String),
    /// A block that holds `retry` and no data, in milliseconds.
    Retry(u64),
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its own `id` field; not the last one seen.
    pub id: Option<String>,
    /// The `event` field, or `message`.
    pub kind: String,
    /// The `data` lines, joined by LF.
    pub data: String,
    /// Number of `data` lines.
    pub data_lines: usize,
    /// The `retry` field.
    pub retry: Option<u64>,
}

/// Splits bytes into frames, wherever they were cut.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    block: Block,
    /// Whether a CR came, which this contract has none of.
    pub saw_cr: bool,
}

#[derive(Debug, Default)]
struct Block {
    id: Option<String>,
    kind: Option<String>,
    data: Vec<String>,
    retry: Option<u64>,
}

impl Parser {
    /// Takes bytes and gives the frames that they completed.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8(std::mem::take(&mut self.line))
                        .expect("an event stream is UTF-8");
                    frames.extend(self.take_line(&line));
                }
                b'\r' => self.saw_cr = true,
                other => self.line.push(other),
            }
        }
        frames
    }

    /// Whether bytes lie here that no blank line has ended.
    pub fn is_mid_block(&self) -> bool {
        !self.line.is_empty()
            || self.block.id.is_some()
            || self.block.kind.is_some()
            || !self.block.data.is_empty()
    }

    fn take_line(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            return std::mem::take(&mut self.block).into_frame();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => return Some(Frame::Comment(value.to_owned())),
            "id" => self.block.id = Some(value.to_owned()),
            "event" => self.block.kind = Some(value.to_owned()),
            "data" => self.block.data.push(value.to_owned()),
            "retry" => self.block.retry = value.parse().ok(),
            other => panic!("a field that the standard does not know: {other:?}"),
        }
        None
    }
}

impl Block {
    fn into_frame(self) -> Option<Frame> {
        if self.data.is_empty() {
            return self.retry.map(Frame::Retry);
        }
        Some(Frame::Event(SseEvent {
            id: self.id,
            kind: self.kind.unwrap_or_else(|| "message".to_owned()),
            data_lines: self.data.len(),
            data: self.data.join("\n"),
            retry: self.retry,
        }))
    }
}

/// A frame and when it came.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// What came.
    pub frame: Frame,
    /// When its last byte came.
    pub at: Instant,
}

/// An open stream.
pub struct EventStream {
    /// The answer's headers.
    pub headers: HeaderMap,
    /// When the request was sent.
    pub asked_at: Instant,
    /// When the first bytes of the body came.
    pub first_bytes_at: Option<Instant>,
    /// How the stream ended: `None` while open, an error when it was cut.
    pub ended: Option<Result<(), String>>,
    parser: Parser,
    waiting: std::collections::VecDeque<Arrived>,
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream")
            .field("ended", &self.ended)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl EventStream {
    /// Reads an answer that was asked for at `asked_at`.
    pub fn new(response: reqwest::Response, asked_at: Instant) -> Self {
        Self {
            headers: response.headers().clone(),
            asked_at,
            first_bytes_at: None,
            ended: None,
            parser: Parser::default(),
            waiting: std::collections::VecDeque::new(),
            body: Box::pin(response.bytes_stream()),
        }
    }

    /// The next frame; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Arrived> {
        loop {
            if let Some(arrived) = self.waiting.pop_front() {
                return Some(arrived);
            }
            match self.body.next().await {
                Some(Ok(bytes)) => {
                    let at = Instant::now();
                    self.first_bytes_at.get_or_insert(at);
                    let frames = self.parser.push(&bytes);
                    self.waiting
                        .extend(frames.into_iter().map(|frame| Arrived { frame, at }));
                    assert!(!self.parser.saw_cr, "the stream holds a CR");
                }
                Some(Err(error)) => {
                    self.ended = Some(Err(error.to_string()));
                    return None;
                }
                None => {
                    self.ended = Some(if self.parser.is_mid_block() {
                        Err("ended inside an event".to_owned())
                    } else {
                        Ok(())
                    });
                    return None;
                }
            }
        }
    }

    /// Frames up to the end of the stream, or up to and with the first that `enough` accepts.
    pub async fn collect_until(
        &mut self,
        limit: Duration,
        enough: impl Fn(&Frame) -> bool,
    ) -> Vec<Arrived> {
        crate::wait::within("a stream to end", limit, async {
            let mut all = Vec::new();
            while let Some(arrived) = self.next().await {
                let last = enough(&arrived.frame);
                all.push(arrived);
                if last {
                    break;
                }
            }
            all
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "retry: 2000\nid: t:1\nevent: start\ndata: {\"a\":\"é\"}\n\n: heartbeat\n\nid: t:2\nevent: message\ndata: x\n\nretry: 500\n\n";

    fn expected() -> Vec<Frame> {
        let event = |id: &str, kind: &str, data: &str, retry| {
            Frame::Event(SseEvent {
                id: Some(id.to_owned()),
                kind: kind.to_owned(),
                data: data.to_owned(),
                data_lines: 1,
                retry,
            })
        };
        vec![
            event("t:1", "start", "{\"a\":\"é\"}", Some(2000)),
            Frame::Comment("heartbeat".to_owned()),
            event("t:2", "message", "x", None),
            Frame::Retry(500),
        ]
    }

    #[test]
    fn a_stream_cut_at_any_byte_gives_the_same_frames() {
        for cut in 0..SAMPLE.len() {
            let mut parser = Parser::default();
            let (head, tail) = SAMPLE.as_bytes().split_at(cut);
            let mut frames = parser.push(head);
            frames.extend(parser.push(tail));
            assert_eq!(frames, expected(), "cut at {cut}");
            assert!(!parser.is_mid_block());
        }
    }

    #[test]
    fn an_unfinished_block_gives_no_event() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"id: t:1\ndata: x\n"), Vec::new());
        assert!(parser.is_mid_block());
    }
}
