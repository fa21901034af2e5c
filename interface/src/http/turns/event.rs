//! The events of a turn as they are on the wire: a union told apart by `type`.

use serde::Serialize;
use tidemark_application::chat::follow::Frame;
use tidemark_domain::event::{ToolState, TurnEvent};
use tidemark_domain::ids::TurnId;
use utoipa::ToSchema;
use uuid::Uuid;

use super::view::{
    FinishReasonView, RecalledMemoryView, TurnProblemView, TurnStatusView, UsageView, finish_reason,
};

macro_rules! tag {
    ($name:ident, $text:tt) => {
        /// Tells the kind of event.
        #[derive(Clone, Copy, Debug, Serialize, ToSchema)]
        pub enum $name {
            /// The only value.
            #[serde(rename = $text)]
            Value,
        }
    };
}

tag!(StartTag, "start");
tag!(RecallTag, "recall");
tag!(MessageTag, "message");
tag!(ReasoningTag, "reasoning");
tag!(ToolTag, "tool");
tag!(ResetTag, "reset");
tag!(SnapshotTag, "snapshot");
tag!(DoneTag, "done");

/// Whether a turn has to wait.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartStatus {
    /// Another turn of the session comes first.
    Queued,
    /// It runs.
    Processing,
}

/// The turn is known. Once, first, before recall or model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StartEvent {
    /// `start`.
    #[serde(rename = "type")]
    pub kind: StartTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(1))]
    pub seq: i64,
    /// The turn's session.
    pub session_id: Uuid,
    /// Whether it has to wait.
    pub status: StartStatus,
}

/// What was recalled. Once.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecallEvent {
    /// `recall`.
    #[serde(rename = "type")]
    pub kind: RecallTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(2))]
    pub seq: i64,
    /// The memories shown to the model, in their order.
    pub memories: Vec<RecalledMemoryView>,
    /// Nothing fitted the question; speaks of relevance alone.
    pub abstained: bool,
    /// Arms of recall that failed.
    pub degraded: Vec<String>,
    /// Milliseconds it took.
    #[schema(examples(3))]
    pub took_ms: u64,
}

/// Text of the answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessageEvent {
    /// `message`.
    #[serde(rename = "type")]
    pub kind: MessageTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(3))]
    pub seq: i64,
    /// The text, to be appended.
    #[schema(examples("The budget is "))]
    pub token: String,
}

/// A piece of the model's reasoning. Only with `?reasoning=true`; without id and number, never replayed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReasoningEvent {
    /// `reasoning`.
    #[serde(rename = "type")]
    pub kind: ReasoningTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The text.
    pub token: String,
}

impl ReasoningEvent {
    /// Of that turn.
    pub fn new(turn: TurnId, token: String) -> Self {
        Self {
            kind: ReasoningTag::Value,
            turn_id: turn.0,
            token,
        }
    }
}

/// How far a tool call is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolEventState {
    /// It begins.
    Started,
    /// It goes on.
    Progress,
    /// It has its result.
    Finished,
    /// It failed; the model is told why.
    Failed,
}

/// A step of a tool call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolEvent {
    /// `tool`.
    #[serde(rename = "type")]
    pub kind: ToolTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(4))]
    pub seq: i64,
    /// The model's id for the call.
    #[schema(examples("call_1"))]
    pub call_id: String,
    /// The tool.
    #[schema(examples("search_memory"))]
    pub name: String,
    /// How far it is.
    pub state: ToolEventState,
    /// One line for people.
    pub summary: String,
    /// Milliseconds since it began.
    #[schema(examples(12))]
    pub took_ms: u64,
}

/// The text shown so far is void.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResetEvent {
    /// `reset`.
    #[serde(rename = "type")]
    pub kind: ResetTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(5))]
    pub seq: i64,
    /// Why.
    #[schema(examples("tool_calls"))]
    pub reason: String,
}

/// In place of events that are gone.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SnapshotEvent {
    /// `snapshot`.
    #[serde(rename = "type")]
    pub kind: SnapshotTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn; may jump.
    #[schema(examples(65))]
    pub seq: i64,
    /// The answer so far: replaces what was shown.
    pub text: String,
    /// Where the turn stands.
    pub status: TurnStatusView,
}

/// The end. Exactly once, last, after the commit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoneEvent {
    /// `done`.
    #[serde(rename = "type")]
    pub kind: DoneTag,
    /// The turn.
    pub turn_id: Uuid,
    /// The event's number in the turn.
    #[schema(examples(12))]
    pub seq: i64,
    /// How it ended.
    pub status: TurnStatusView,
    /// The stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Uuid>,
    /// The whole text; wins over what was shown.
    pub text: String,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReasonView>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<TurnProblemView>,
}

/// An event of a turn. Unknown types are to be ignored.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = TurnEvent, discriminator(property_name = "type", mapping(
    ("start" = "#/components/schemas/StartEvent"),
    ("recall" = "#/components/schemas/RecallEvent"),
    ("message" = "#/components/schemas/MessageEvent"),
    ("reasoning" = "#/components/schemas/ReasoningEvent"),
    ("tool" = "#/components/schemas/ToolEvent"),
    ("reset" = "#/components/schemas/ResetEvent"),
    ("snapshot" = "#/components/schemas/SnapshotEvent"),
    ("done" = "#/components/schemas/DoneEvent")
)))]
pub enum Event {
    /// The turn is known.
    Start(StartEvent),
    /// What was recalled.
    Recall(RecallEvent),
    /// Text of the answer.
    Message(MessageEvent),
    /// A piece of the model's reasoning.
    Reasoning(ReasoningEvent),
    /// A step of a tool call.
    Tool(ToolEvent),
    /// The text shown so far is void.
    Reset(ResetEvent),
    /// In place of events that are gone.
    Snapshot(SnapshotEvent),
    /// The end.
    Done(DoneEvent),
}

impl Event {
    /// A frame of a follower, as it is on the wire.
    pub fn of(turn: TurnId, frame: &Frame) -> Self {
        let turn_id = turn.0;
        let logged = match frame {
            Frame::Snapshot { seq, text, status } => {
                return Self::Snapshot(SnapshotEvent {
                    kind: SnapshotTag::Value,
                    turn_id,
                    seq: *seq,
                    text: text.clone(),
                    status: (*status).into(),
                });
            }
            Frame::Event(logged) => logged,
        };
        let seq = logged.seq;
        match logged.event.clone() {
            TurnEvent::Start { session_id, queued } => Self::Start(StartEvent {
                kind: StartTag::Value,
                turn_id,
                seq,
                session_id: session_id.0,
                status: if queued {
                    StartStatus::Queued
                } else {
                    StartStatus::Processing
                },
            }),
            TurnEvent::Recall {
                memories,
                abstained,
                degraded,
                took_ms,
            } => Self::Recall(RecallEvent {
                kind: RecallTag::Value,
                turn_id,
                seq,
                memories: memories.into_iter().map(Into::into).collect(),
                abstained,
                degraded,
                took_ms,
            }),
            TurnEvent::Message { token } => Self::Message(MessageEvent {
                kind: MessageTag::Value,
                turn_id,
                seq,
                token,
            }),
            TurnEvent::Tool {
                call_id,
                name,
                state,
                summary,
                took_ms,
            } => Self::Tool(ToolEvent {
                kind: ToolTag::Value,
                turn_id,
                seq,
                call_id,
                name,
                state: match state {
                    ToolState::Started => ToolEventState::Started,
                    ToolState::Progress => ToolEventState::Progress,
                    ToolState::Finished => ToolEventState::Finished,
                    ToolState::Failed => ToolEventState::Failed,
                },
                summary,
                took_ms,
            }),
            TurnEvent::Reset { reason } => Self::Reset(ResetEvent {
                kind: ResetTag::Value,
                turn_id,
                seq,
                reason,
            }),
            TurnEvent::Done(end) => Self::Done(DoneEvent {
                kind: DoneTag::Value,
                turn_id,
                seq,
                status: end.status.into(),
                message_id: end.message_id.map(|id| id.0),
                text: end.text,
                finish_reason: finish_reason(end.finish_reason),
                usage: end.usage.map(Into::into),
                problem: end.problem.map(Into::into),
            }),
        }
    }

    /// Its number; 0 for reasoning, which has none.
    pub fn seq(&self) -> i64 {
        match self {
            Self::Start(e) => e.seq,
            Self::Recall(e) => e.seq,
            Self::Message(e) => e.seq,
            Self::Reasoning(_) => 0,
            Self::Tool(e) => e.seq,
            Self::Reset(e) => e.seq,
            Self::Snapshot(e) => e.seq,
            Self::Done(e) => e.seq,
        }
    }

    /// The name in the `event:` field.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Recall(_) => "recall",
            Self::Message(_) => "message",
            Self::Reasoning(_) => "reasoning",
            Self::Tool(_) => "tool",
            Self::Reset(_) => "reset",
            Self::Snapshot(_) => "snapshot",
            Self::Done(_) => "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use tidemark_application::ports::events::LoggedEvent;
    use tidemark_domain::event::{RecalledMemory, Terminal, Via};
    use tidemark_domain::ids::{MemoryId, MessageId, SessionId};
    use tidemark_domain::memory::{Kind, Scope};
    use tidemark_domain::turn::{FinishReason, TurnProblem, TurnStatus, Usage};

    fn terminal(status: TurnStatus) -> Terminal {
        Terminal {
            status,
            message_id: Some(MessageId(Uuid::from_u128(4))),
            text: "四\nfour".to_owned(),
            finish_reason: Some(FinishReason::Stop),
            usage: Some(Usage {
                prompt_tokens: 12,
                completion_tokens: 2,
                estimated: true,
            }),
            problem: None,
        }
    }

    fn every_event() -> Vec<TurnEvent> {
        vec![
            TurnEvent::Start {
                session_id: SessionId(Uuid::from_u128(1)),
                queued: true,
            },
            TurnEvent::Recall {
                memories: vec![RecalledMemory {
                    id: MemoryId(Uuid::from_u128(3)),
                    scope: Scope::UserProfile,
                    kind: Kind::Preference,
                    content: "以后请用表格回答".to_owned(),
                    speaker: None,
                    trust: None,
                    since: None,
                    score: 1.0,
                    via: Via::Profile,
                }],
                abstained: true,
                degraded: vec!["lexical".to_owned()],
                took_ms: 3,
            },
            TurnEvent::Message {
                token: "a \"quoted\"\nline".to_owned(),
            },
            TurnEvent::Tool {
                call_id: "call_1".to_owned(),
                name: "search_memory".to_owned(),
                state: ToolState::Finished,
                summary: String::new(),
                took_ms: 12,
            },
            TurnEvent::Reset {
                reason: "tool_calls".to_owned(),
            },
            TurnEvent::Done(terminal(TurnStatus::Completed)),
            TurnEvent::Done(Terminal {
                message_id: None,
                text: String::new(),
                finish_reason: None,
                usage: None,
                problem: Some(TurnProblem {
                    code: "model_timeout".to_owned(),
                    detail: "the model was silent for 60s".to_owned(),
                }),
                ..terminal(TurnStatus::Failed)
            }),
        ]
    }

    #[test]
    fn the_wire_form_of_every_event_stays_what_clients_were_built_for() {
        let turn = TurnId(Uuid::from_u128(2));
        let mut frames: Vec<Frame> = (1..)
            .zip(every_event())
            .map(|(seq, event)| Frame::Event(LoggedEvent { seq, event }))
            .collect();
        frames.push(Frame::Snapshot {
            seq: 65,
            text: "so far".to_owned(),
            status: TurnStatus::Running,
        });
        let mut wire = String::new();
        for frame in &frames {
            crate::sse::write_frame(&mut wire, turn, frame);
        }
        let _ = write!(
            wire,
            "{}",
            crate::sse::reasoning_text(turn, "hm".to_owned())
        );
        insta::assert_snapshot!(wire);
    }
}
