//! The response stage: where a running state becomes recoverable history.
//!
//! It neither asks the model again nor calls a tool (A1). [`finalize`] is the commit boundary and reads from top to bottom in the
//! order that must hold (A3): clean → merge intro → append → save → only then derived work → publish the final event → result.

use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::event::RecalledMemory;
use tidemark_domain::reasoning;
use tidemark_domain::session::Role;
use tidemark_domain::turn::{Turn, TurnStatus};
use tokio::sync::Notify;

use super::inference::InferenceResult;
use super::publisher::Publisher;
use crate::ports::ids::Ids;
use crate::ports::jobs::{JobKind, NewJob};
use crate::ports::store::StoreError;
use crate::ports::turns::{
    CommitTurn, Committed, NewMessage, TurnKey, TurnRepository, TurnWriteError,
};

/// What the response stage knows of the turn besides the model's answer.
#[derive(Clone)]
pub struct ResponseContext {
    /// The right to write.
    pub key: TurnKey,
    /// Where turns are stored.
    pub store: Arc<dyn TurnRepository>,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// The clock.
    pub clock: Arc<dyn crate::ports::clock::Clock>,
    /// Wakes the workers.
    pub work: Arc<Notify>,
    /// What the product says before the session's first answer.
    pub intro: Option<String>,
    /// What was shown to the model.
    pub recalled: Vec<RecalledMemory>,
    /// The answer may become memory.
    pub answer_teaches: bool,
    /// The turn may become memory at all.
    pub turn_teaches: bool,
    /// The boundary, as the session had it at the start.
    pub last_consolidated: i64,
    /// How many new messages make a session due (A12).
    pub threshold: i64,
    /// Tokens are limited, and what the turn cost is added to the day's.
    pub counts_tokens: bool,
    /// Messages of the session before the answer.
    pub messages_before: i64,
}

impl std::fmt::Debug for ResponseContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseContext")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What was delivered (A2). Only this stage makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessResult {
    /// The turn as it is stored.
    pub turn: Turn,
    /// The terminal event went out: nobody else is to send it (A9).
    pub outbound_sent: bool,
    /// Another turn of the session may wait.
    pub may_wait: bool,
}

/// The answer was not committed; the caller closes the turn and tells the failure (A18).
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// Nothing is left of the answer after cleaning (A4).
    #[error("the model's answer holds no text")]
    EmptyAnswer,
    /// It could not be saved.
    #[error(transparent)]
    Write(#[from] TurnWriteError),
}

/// Commits an answer and tells it.
///
/// # Errors
/// When nothing is left to commit, or the store refuses or fails. Then nothing was published.
pub async fn finalize(
    context: &ResponseContext,
    result: InferenceResult,
    publisher: &mut Publisher,
) -> Result<ProcessResult, ResponseError> {
    let text = reasoning::clean(&result.raw_text);
    if text.is_empty() {
        return Err(ResponseError::EmptyAnswer);
    }
    let text = merge_intro(context.intro.as_deref(), text);
    let commit = CommitTurn {
        answer: assistant_message(context, text),
        finish_reason: result.finish_reason,
        usage: result.usage,
        recalled: context.recalled.clone(),
        events_used: publisher.used(),
        counts_tokens: context.counts_tokens,
        jobs: derived_work(context, &result),
        now: context.clock.now(),
    };
    let Committed { turn, may_wait } = save(context, commit).await?;
    context.work.notify_one();
    let outbound_sent = publisher.finish(&turn).await;
    Ok(ProcessResult {
        turn,
        outbound_sent,
        may_wait,
    })
}

/// The product's words, then the model's (A6).
pub(super) fn merge_intro(intro: Option<&str>, text: String) -> String {
    match intro {
        Some(intro) => format!("{}{text}", intro_token(intro)),
        None => text,
    }
}

/// The introduction as the first token of the stream, so that the deltas add up to the text.
pub(super) fn intro_token(intro: &str) -> String {
    format!("{intro}\n\n")
}

fn assistant_message(context: &ResponseContext, text: String) -> NewMessage {
    NewMessage {
        id: context.ids.message(),
        role: Role::Assistant,
        content: text,
        tool_calls: Vec::new(),
        tool_call_id: None,
        partial: false,
        learnable: context.answer_teaches && context.turn_teaches,
    }
}

/// What is to be learned from the turn later (A10–A12, A17). It is enqueued with the answer and begins after it.
fn derived_work(context: &ResponseContext, result: &InferenceResult) -> Vec<NewJob> {
    let job = |kind| NewJob {
        id: context.ids.job(),
        kind,
    };
    let mut jobs = Vec::new();
    if !context.recalled.is_empty() {
        jobs.push(job(JobKind::CountUse));
    }
    if !context.turn_teaches {
        return jobs;
    }
    jobs.push(job(JobKind::Index));
    let message_count = context.messages_before + 1;
    if tidemark_domain::boundary::is_due(
        message_count,
        context.last_consolidated,
        context.threshold,
    ) {
        jobs.push(job(JobKind::Consolidate));
    } else if result.signals.review_memory && result.total_tool_calls > 0 {
        jobs.push(job(JobKind::ReviewMemory));
    }
    jobs
}

/// Commits; when the outcome is unknown or the store is away for a moment, reads the turn and tries again.
async fn save(context: &ResponseContext, commit: CommitTurn) -> Result<Committed, TurnWriteError> {
    const TRIES: u32 = 5;
    let mut pause = Duration::from_millis(50);
    for _ in 1..TRIES {
        match context
            .store
            .commit_and_look(context.key, commit.clone())
            .await
        {
            Ok(committed) => return Ok(committed),
            Err(TurnWriteError::Store(
                error @ (StoreError::OutcomeUnknown(_) | StoreError::Unavailable(_)),
            )) => {
                tracing::warn!(%error, "the answer is not known to be committed yet; reading the turn again");
            }
            Err(TurnWriteError::Fenced) => return committed(context).await,
            Err(error) => return Err(error),
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        if let Ok(committed) = committed(context).await {
            return Ok(committed);
        }
    }
    match context.store.commit_and_look(context.key, commit).await {
        Err(TurnWriteError::Fenced) => committed(context).await,
        outcome => outcome,
    }
}

/// The turn, if an earlier try of this runner did commit it.
async fn committed(context: &ResponseContext) -> Result<Committed, TurnWriteError> {
    let key = context.key;
    match context.store.turn(key.owner, key.turn_id).await? {
        Some(turn) if turn.status == TurnStatus::Completed && turn.fence == key.fence => {
            Ok(Committed {
                turn,
                may_wait: true,
            })
        }
        _ => Err(TurnWriteError::Fenced),
    }
}
