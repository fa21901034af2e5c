//! Events as entries of a stream: the id is `<fence>-<seq>`, and one field holds the event. Text of the answer, which is nearly all there is,
//! stands there as it is; everything else as JSON.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use tidemark_domain::event::{RecalledMemory, Terminal, ToolState, TurnEvent};
use tidemark_domain::ids::{MessageId, SessionId};
use tidemark_domain::turn::{FinishReason, TurnProblem, TurnStatus, Usage};

/// The field of a piece of the answer.
const TEXT: &str = "m";
/// The field of any other event.
const EVENT: &str = "e";
/// The field of what stands in place of a turn that is gone.
pub(super) const GONE: &str = "gone";

/// The id of an entry. Redis takes none that is not above the last, so it refuses a writer with an older fence by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId {
    pub(super) fence: u64,
    pub(super) seq: u64,
}

impl EntryId {
    /// Above every other: nothing can follow it.
    pub(super) const LAST: Self = Self {
        fence: u64::MAX,
        seq: u64::MAX,
    };

    pub(super) fn of(fence: i64, seq: i64) -> Self {
        Self {
            fence: fence.max(0) as u64,
            seq: seq.max(0) as u64,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (fence, seq) = text.split_once('-')?;
        Some(Self {
            fence: fence.parse().ok()?,
            seq: seq.parse().ok()?,
        })
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.fence, self.seq)
    }
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Event(TurnEvent),
    /// The turn is gone from the store.
    Gone,
    /// Written by a version that knows more.
    Unreadable,
}

/// Every event but text. A replica that does not know a type reads the stored turn instead.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Other {
    Start {
        session_id: SessionId,
        queued: bool,
    },
    Recall {
        memories: Vec<RecalledMemory>,
        abstained: bool,
        degraded: Vec<String>,
        took_ms: u64,
    },
    Tool {
        call_id: String,
        name: String,
        state: ToolState,
        summary: String,
        took_ms: u64,
    },
    Reset {
        reason: String,
    },
    Done {
        status: TurnStatus,
        message_id: Option<MessageId>,
        text: String,
        finish_reason: Option<FinishReason>,
        usage: Option<Usage>,
        problem: Option<TurnProblem>,
    },
}

/// The field of an event and its value.
pub(super) fn write(event: &TurnEvent) -> Result<(&'static str, Cow<'_, str>), serde_json::Error> {
    if let TurnEvent::Message { token } = event {
        return Ok((TEXT, Cow::Borrowed(token)));
    }
    let other = match event.clone() {
        TurnEvent::Message { token } => return Ok((TEXT, Cow::Owned(token))),
        TurnEvent::Start { session_id, queued } => Other::Start { session_id, queued },
        TurnEvent::Recall {
            memories,
            abstained,
            degraded,
            took_ms,
        } => Other::Recall {
            memories,
            abstained,
            degraded,
            took_ms,
        },
        TurnEvent::Tool {
            call_id,
            name,
            state,
            summary,
            took_ms,
        } => Other::Tool {
            call_id,
            name,
            state,
            summary,
            took_ms,
        },
        TurnEvent::Reset { reason } => Other::Reset { reason },
        TurnEvent::Done(end) => Other::Done {
            status: end.status,
            message_id: end.message_id,
            text: end.text,
            finish_reason: end.finish_reason,
            usage: end.usage,
            problem: end.problem,
        },
    };
    Ok((EVENT, Cow::Owned(serde_json::to_string(&other)?)))
}

/// What a field and its value say.
pub(super) fn read(field: &str, value: String) -> Content {
    match field {
        TEXT => Content::Event(TurnEvent::Message { token: value }),
        EVENT => serde_json::from_str(&value).map_or(Content::Unreadable, |other: Other| {
            Content::Event(other.into())
        }),
        GONE => Content::Gone,
        _ => Content::Unreadable,
    }
}

impl From<Other> for TurnEvent {
    fn from(other: Other) -> Self {
        match other {
            Other::Start { session_id, queued } => Self::Start { session_id, queued },
            Other::Recall {
                memories,
                abstained,
                degraded,
                took_ms,
            } => Self::Recall {
                memories,
                abstained,
                degraded,
                took_ms,
            },
            Other::Tool {
                call_id,
                name,
                state,
                summary,
                took_ms,
            } => Self::Tool {
                call_id,
                name,
                state,
                summary,
                took_ms,
            },
            Other::Reset { reason } => Self::Reset { reason },
            Other::Done {
                status,
                message_id,
                text,
                finish_reason,
                usage,
                problem,
            } => Self::Done(Terminal {
                status,
                message_id,
                text,
                finish_reason,
                usage,
                problem,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use tidemark_domain::event::Via;
    use tidemark_domain::ids::MemoryId;
    use tidemark_domain::memory::{Kind, Scope, Trust};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_event_comes_back_as_it_was() {
        let id = Uuid::from_u128(7);
        let memory = RecalledMemory {
            id: MemoryId(id),
            scope: Scope::ALL[0],
            kind: Kind::ALL[0],
            content: "你好 \"quoted\"\n".to_owned(),
            speaker: Some("Ann".to_owned()),
            trust: Some(Trust::Assistant),
            since: chrono::DateTime::from_timestamp_micros(1_700_000_000_123_456),
            score: 0.1 + 0.2,
            via: Via::Relevance,
        };
        let events = [
            TurnEvent::Start {
                session_id: SessionId(id),
                queued: true,
            },
            TurnEvent::Recall {
                memories: vec![memory],
                abstained: false,
                degraded: vec!["vectors".to_owned()],
                took_ms: 3,
            },
            TurnEvent::Message {
                token: "{\"type\":\"done\"}\r\n\u{0}é".to_owned(),
            },
            TurnEvent::Message {
                token: String::new(),
            },
            TurnEvent::Tool {
                call_id: "c".to_owned(),
                name: "search_memory".to_owned(),
                state: ToolState::Finished,
                summary: "2 found".to_owned(),
                took_ms: 5,
            },
            TurnEvent::Reset {
                reason: "tools".to_owned(),
            },
            TurnEvent::Done(Terminal {
                status: TurnStatus::Failed,
                message_id: Some(MessageId(id)),
                text: "half".to_owned(),
                finish_reason: Some(FinishReason::Length),
                usage: Some(Usage {
                    prompt_tokens: 1,
                    completion_tokens: 2,
                    estimated: true,
                }),
                problem: Some(TurnProblem {
                    code: "x".to_owned(),
                    detail: "y".to_owned(),
                }),
            }),
        ];
        for event in events {
            let (field, value) = write(&event).unwrap();
            assert_eq!(read(field, value.into_owned()), Content::Event(event));
        }
    }

    #[test]
    fn what_another_version_wrote_is_unreadable_and_no_error() {
        for (field, value) in [("e", r#"{"type":"new"}"#), ("e", "x"), ("z", "x")] {
            assert_eq!(read(field, value.to_owned()), Content::Unreadable);
        }
    }

    #[test]
    fn ids_are_ordered_by_fence_then_number() {
        let ids = ["0-1", "1-2", "1-10", "2-3"].map(|text| EntryId::parse(text).unwrap());
        assert!(ids.is_sorted() && ids[3] < EntryId::LAST);
        assert_eq!(ids[2].to_string(), "1-10");
        assert_eq!(EntryId::of(1, 10), ids[2]);
        for bad in ["", "1", "-", "1-", "a-1", "1-1-1"] {
            assert_eq!(EntryId::parse(bad), None, "{bad}");
        }
    }
}
