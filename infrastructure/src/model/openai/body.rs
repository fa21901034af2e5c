//! An answer's body, from bytes to events; pure, so that every way of splitting it can be tried.

use tidemark_application::ports::model::{ModelError, ModelEvent};

use super::assemble::Assembler;
use super::sse::{SseDecoder, SseError, SseEvent};
use super::wire::{self, ChunkError};

/// The longest line or event: 1 MiB. A chunk of a model's answer is a few hundred bytes.
pub(super) const MAX_LINE: usize = 1 << 20;

/// Reads the body of an answer with a good status.
#[derive(Debug)]
pub(super) struct BodyReader {
    format: Format,
    assembler: Assembler,
    bound: usize,
    seen: usize,
    done: bool,
}

#[derive(Debug)]
enum Format {
    /// Nothing but white space so far.
    Unknown(Vec<u8>),
    Sse(SseDecoder),
    /// The server ignores `stream`, or reports an error.
    Json(Vec<u8>),
}

/// What a piece of the body brought.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Progress {
    /// What can be told.
    pub(super) events: Vec<ModelEvent>,
    /// Whether there was a sign of life of the model, rather than of a proxy that keeps the connection open.
    pub(super) alive: bool,
}

impl BodyReader {
    /// A reader that refuses bodies longer than `bound` bytes.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            format: Format::Unknown(Vec::new()),
            assembler: Assembler::default(),
            bound,
            seen: 0,
            done: false,
        }
    }

    /// Takes the next bytes. An error comes after the events that precede it.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> (Progress, Result<(), ModelError>) {
        let mut progress = Progress::default();
        let result = self.feed_into(bytes, &mut progress);
        (progress, result)
    }

    fn feed_into(&mut self, bytes: &[u8], progress: &mut Progress) -> Result<(), ModelError> {
        self.seen += bytes.len();
        if self.seen > self.bound {
            return Err(protocol("the answer is too long"));
        }
        match &mut self.format {
            Format::Unknown(held) => {
                held.extend_from_slice(bytes);
                let text = held.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(held);
                let held_back = b"\xEF\xBB\xBF".starts_with(text); // perhaps half of a byte order mark
                match text.iter().find(|b| !b.is_ascii_whitespace()) {
                    None => return Ok(()),
                    Some(_) if held_back => return Ok(()),
                    Some(b'{' | b'[') => self.format = Format::Json(text.to_vec()),
                    Some(b'<') => return Err(protocol("the answer is a web page")),
                    Some(_) => {
                        let held = std::mem::take(held);
                        self.format = Format::Sse(SseDecoder::new(MAX_LINE));
                        self.seen -= held.len();
                        return self.feed_into(&held, progress);
                    }
                }
            }
            Format::Json(held) => held.extend_from_slice(bytes),
            Format::Sse(decoder) => {
                let mut events = Vec::new();
                let fed = decoder.feed(bytes, &mut events);
                self.take(events, progress)?;
                fed.map_err(sse_error)?;
            }
        }
        Ok(())
    }

    /// Whether the server has said that nothing more will come.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the model has said why it stopped, so that only its usage is missing.
    pub(super) fn is_finished(&self) -> bool {
        self.assembler.is_finished()
    }

    /// The body has ended.
    pub(super) fn end(mut self) -> (Vec<ModelEvent>, Result<(), ModelError>) {
        let mut progress = Progress::default();
        let result = self.end_into(&mut progress).and_then(|()| {
            progress.events.extend(self.assembler.finish()?);
            Ok(())
        });
        (progress.events, result)
    }

    fn end_into(&mut self, progress: &mut Progress) -> Result<(), ModelError> {
        match &mut self.format {
            Format::Unknown(_) => Ok(()),
            Format::Json(held) => {
                let held = std::mem::take(held);
                let text = std::str::from_utf8(&held).map_err(|_| sse_error(SseError::NotUtf8))?;
                self.take_chunk(text, progress)
            }
            Format::Sse(decoder) => {
                let mut events = Vec::new();
                let fed = decoder.finish(&mut events);
                self.take(events, progress)?;
                fed.map_err(sse_error)
            }
        }
    }

    fn take(&mut self, events: Vec<SseEvent>, progress: &mut Progress) -> Result<(), ModelError> {
        for event in events {
            if self.done {
                break;
            }
            let data = event.data.trim();
            if event.name == "error" {
                return Err(ModelError::Reported(wire::code_in(data)));
            }
            if data.is_empty() {
                continue;
            }
            if data == "[DONE]" {
                self.done = true;
                break;
            }
            // Events of a name that nobody knows may hold anything.
            let ours = matches!(
                event.name.as_str(),
                "" | "message" | "completion" | "data" | "chunk"
            );
            if ours || data.starts_with('{') {
                self.take_chunk(data, progress)?;
            }
        }
        Ok(())
    }

    fn take_chunk(&mut self, text: &str, progress: &mut Progress) -> Result<(), ModelError> {
        let chunk = wire::chunk(text).map_err(|error| match error {
            ChunkError::NotJson => protocol("a chunk is no JSON object"),
            ChunkError::Reported(code) => ModelError::Reported(code),
        })?;
        progress.alive = true;
        self.assembler.push(chunk, &mut progress.events)
    }
}

fn sse_error(error: SseError) -> ModelError {
    protocol(match error {
        SseError::TooLong => "a line is too long",
        SseError::NotUtf8 => "the answer is not UTF-8",
    })
}

fn protocol(what: &str) -> ModelError {
    ModelError::Protocol(what.to_owned())
}
