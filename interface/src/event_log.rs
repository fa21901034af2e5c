//! The debug log of streams (C9): every event as `[time] [event type] [summary]`. Holds no text of anybody, only its size.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tidemark_application::chat::follow::Frame;
use tidemark_application::ports::clock::Clock;
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::TurnId;

/// The file. Cheap to clone.
#[derive(Clone)]
pub struct EventLogFile {
    file: Arc<Mutex<File>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for EventLogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventLogFile").finish_non_exhaustive()
    }
}

impl EventLogFile {
    /// Appends to that file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            file: Arc::new(Mutex::new(file)),
            clock,
        })
    }

    /// Writes one line. A full disk costs the line, not the stream.
    pub fn write(&self, turn: TurnId, frame: &Frame) {
        let at = self.clock.now().to_rfc3339();
        let line = format!("[{at}] {}\n", line(turn, frame));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            tracing::debug!(%error, "the event log could not be written");
        }
    }
}

fn line(turn: TurnId, frame: &Frame) -> String {
    let (seq, kind, summary) = match frame {
        Frame::Snapshot { seq, text, status } => {
            (*seq, "snapshot", format!("{status}, {} bytes", text.len()))
        }
        Frame::Event(e) => {
            let (kind, summary) = match &e.event {
                TurnEvent::Start { queued, .. } => ("start", format!("queued={queued}")),
                TurnEvent::Recall {
                    memories,
                    abstained,
                    took_ms,
                    ..
                } => (
                    "recall",
                    format!(
                        "{} memories, abstained={abstained}, {took_ms} ms",
                        memories.len()
                    ),
                ),
                TurnEvent::Message { token } => ("message", format!("{} bytes", token.len())),
                TurnEvent::Tool {
                    name,
                    state,
                    took_ms,
                    ..
                } => ("tool", format!("{name} {state:?}, {took_ms} ms")),
                TurnEvent::Reset { reason } => ("reset", reason.clone()),
                TurnEvent::Done(end) => {
                    ("done", format!("{}, {} bytes", end.status, end.text.len()))
                }
            };
            (e.seq, kind, summary)
        }
    };
    format!("[{kind}] [{turn}:{seq} {summary}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_application::ports::events::LoggedEvent;
    use uuid::Uuid;

    #[test]
    fn a_line_tells_the_kind_and_the_size_but_not_the_text() {
        let frame = Frame::Event(LoggedEvent {
            seq: 3,
            event: TurnEvent::Message {
                token: "a secret".to_owned(),
            },
        });
        let line = line(TurnId(Uuid::nil()), &frame);
        assert_eq!(
            line,
            "[message] [00000000-0000-0000-0000-000000000000:3 8 bytes]"
        );
    }
}
