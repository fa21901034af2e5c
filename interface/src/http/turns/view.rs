//! A turn as it is shown.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_domain::event as domain;
use tidemark_domain::turn::{FinishReason, Turn, TurnProblem, TurnStatus, Usage};
use utoipa::ToSchema;
use uuid::Uuid;

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnStatus)]
pub enum TurnStatusView {
    /// It waits for its place in the session.
    Queued,
    /// It runs.
    Running,
    /// It waits for a person's decision on a tool call.
    AwaitingApproval,
    /// The answer is stored.
    Completed,
    /// It ended with a problem.
    Failed,
    /// Its user stopped it.
    Cancelled,
    /// The server stopped under it.
    Interrupted,
}

impl From<TurnStatus> for TurnStatusView {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Queued => Self::Queued,
            TurnStatus::Running => Self::Running,
            TurnStatus::AwaitingApproval => Self::AwaitingApproval,
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Failed => Self::Failed,
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Interrupted => Self::Interrupted,
        }
    }
}

/// Why the model stopped writing.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FinishReason)]
pub enum FinishReasonView {
    /// It had said what it had to say.
    Stop,
    /// It reached the limit of output tokens.
    Length,
    /// A filter of the provider cut it.
    ContentFilter,
}

impl FinishReasonView {
    fn of(reason: FinishReason) -> Option<Self> {
        match reason {
            FinishReason::Stop => Some(Self::Stop),
            FinishReason::Length => Some(Self::Length),
            FinishReason::ContentFilter => Some(Self::ContentFilter),
            FinishReason::ToolCalls => None,
        }
    }
}

/// Tokens that a turn used, over all its model calls.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub struct UsageView {
    /// Of the prompts.
    #[schema(examples(412))]
    pub prompt_tokens: u64,
    /// Of the answers.
    #[schema(examples(57))]
    pub completion_tokens: u64,
    /// Their sum.
    #[schema(examples(469))]
    pub total_tokens: u64,
    /// Counted by this server with an estimate.
    pub estimated: bool,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.prompt_tokens.saturating_add(usage.completion_tokens),
            estimated: usage.estimated,
        }
    }
}

/// Why a turn did not complete.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TurnProblem)]
pub struct TurnProblemView {
    /// Stable, for programs.
    #[schema(examples("model_timeout"))]
    pub code: String,
    /// One sentence for people.
    #[schema(examples("the model was silent for 60s"))]
    pub detail: String,
}

impl From<TurnProblem> for TurnProblemView {
    fn from(problem: TurnProblem) -> Self {
        Self {
            code: problem.code,
            detail: problem.detail,
        }
    }
}

/// How a memory came to be shown.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RecallVia)]
pub enum ViaView {
    /// A standing preference, in every prompt.
    Profile,
    /// It fits the question.
    Relevance,
}

/// A memory as it was shown to the model.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RecalledMemory)]
pub struct RecalledMemoryView {
    /// Its id.
    pub id: Uuid,
    /// Where it applies.
    pub scope: crate::http::memories::view::ScopeView,
    /// What it is.
    pub kind: crate::http::memories::view::KindView,
    /// What it says.
    #[schema(examples("I prefer answers as tables"))]
    pub content: String,
    /// Who said it, where an import named the speaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Its score, 0–1; 1 for the profile.
    #[schema(examples(0.62))]
    pub score: f64,
    /// How it came to be shown.
    pub via: ViaView,
}

impl From<domain::RecalledMemory> for RecalledMemoryView {
    fn from(memory: domain::RecalledMemory) -> Self {
        Self {
            id: memory.id.0,
            scope: memory.scope.into(),
            kind: memory.kind.into(),
            content: memory.content,
            speaker: memory.speaker,
            score: memory.score,
            via: match memory.via {
                domain::Via::Profile => ViaView::Profile,
                domain::Via::Relevance => ViaView::Relevance,
            },
        }
    }
}

/// A turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Turn)]
pub struct TurnView {
    /// Its id.
    pub id: Uuid,
    /// Its session.
    pub session_id: Uuid,
    /// Where it stands.
    pub status: TurnStatusView,
    /// What the user said.
    #[schema(examples("What did we decide about the budget?"))]
    pub message: String,
    /// The answer, or what was shown of it; once the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Uuid>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReasonView>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
    /// What memory was shown to the model.
    pub memories: Vec<RecalledMemoryView>,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<TurnProblemView>,
    /// Where its events are.
    #[schema(examples("/v1/turns/0192f0c1-2b5e-7c3a-9d1e-4f5a6b7c8d9e/events"))]
    pub events_url: String,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

/// Where a turn's events are.
pub fn events_url(turn: tidemark_domain::ids::TurnId) -> String {
    format!("/v1/turns/{turn}/events")
}

impl From<Turn> for TurnView {
    fn from(turn: Turn) -> Self {
        Self {
            id: turn.id.0,
            session_id: turn.session_id.0,
            status: turn.status.into(),
            message: turn.input,
            text: turn.text,
            message_id: turn.message_id.map(|id| id.0),
            finish_reason: turn.finish_reason.and_then(FinishReasonView::of),
            usage: turn.usage.map(Into::into),
            memories: turn.recalled.into_iter().map(Into::into).collect(),
            problem: turn.problem.map(Into::into),
            events_url: events_url(turn.id),
            created_at: turn.created_at,
            started_at: turn.started_at,
            ended_at: turn.ended_at,
        }
    }
}

/// As in a `done` event.
pub(super) fn finish_reason(reason: Option<FinishReason>) -> Option<FinishReasonView> {
    reason.and_then(FinishReasonView::of)
}
