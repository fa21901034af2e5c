//! Running one turn: context → inference → response, under a lease, outside of any request.

use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, histogram};
use tidemark_domain::event::TurnEvent;
use tidemark_domain::turn::{TurnStatus, terminal_seq_after_loss};
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::closing::{Closing, Ending, Remains};
use super::context::{Context, EarlyRead, Prepared};
use super::inference::{Inference, InferenceError, Progress};
use super::publisher::Publisher;
use super::response::{self, ProcessResult, ResponseContext, ResponseError};
use super::service::ChatParts;
use super::stop::{StopReason, StopSignal, Stopper};
use crate::ports::store::StoreError;
use crate::ports::tools::ToolContext;
use crate::ports::turns::{Started, TurnKey, TurnRepository, TurnWriteError};

/// Why a turn has no answer.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("the history could not be read")]
    Context(#[source] StoreError),
    #[error(transparent)]
    Inference(#[from] InferenceError),
    #[error(transparent)]
    Response(#[from] ResponseError),
    #[error(transparent)]
    Write(#[from] TurnWriteError),
}

impl RunError {
    /// How the turn ends; none when it is no longer ours to end.
    fn ending(&self) -> Option<Ending> {
        match self {
            Self::Inference(InferenceError::Stopped(reason)) => Ending::stopped(*reason),
            Self::Inference(InferenceError::Model(error)) => {
                Some(Ending::failed(error.code(), &error.to_string()))
            }
            Self::Inference(error @ InferenceError::TooLong) => {
                Some(Ending::failed("answer_too_long", &error.to_string()))
            }
            Self::Inference(error @ InferenceError::TooManyRounds) => {
                Some(Ending::failed("too_many_tool_rounds", &error.to_string()))
            }
            Self::Inference(error @ InferenceError::TooManyCalls) => {
                Some(Ending::failed("too_many_tool_calls", &error.to_string()))
            }
            Self::Response(error @ ResponseError::EmptyAnswer) => {
                Some(Ending::failed("empty_answer", &error.to_string()))
            }
            Self::Context(_)
            | Self::Write(TurnWriteError::Store(_))
            | Self::Inference(InferenceError::Write(TurnWriteError::Store(_)))
            | Self::Response(ResponseError::Write(TurnWriteError::Store(_))) => {
                Some(Ending::failed(
                    "store_unavailable",
                    "the answer could not be stored; send the message again",
                ))
            }
            Self::Write(TurnWriteError::Fenced)
            | Self::Inference(InferenceError::Write(TurnWriteError::Fenced))
            | Self::Response(ResponseError::Write(TurnWriteError::Fenced)) => None,
        }
    }
}

/// Runs a started turn to its end; its span is handed to `continue_trace` before it begins. Never fails: whatever happens is told by the turn itself.
/// Whether another turn of the session may wait.
pub(super) async fn run(
    parts: &Arc<ChatParts>,
    (started, early): (Started, Option<EarlyRead>),
    stopper: Stopper,
    stop: StopSignal,
    continue_trace: impl FnOnce(&tracing::Span),
) -> bool {
    let span = tracing::info_span!(
        "turn",
        turn = %started.key.turn_id,
        session = %started.key.session_id,
        model = parts.model.name(),
        status = tracing::field::Empty,
    );
    continue_trace(&span);
    async {
        let keeper = keep_lease(Arc::clone(parts), started.key, stopper.clone());
        let _keeper = AbortOnDrop(tokio::spawn(keeper));
        let limit = limit_time(parts.settings.max_duration, stopper);
        let _limit = AbortOnDrop(tokio::spawn(limit));
        let began = tokio::time::Instant::now();
        let (status, may_wait) = answer_or_close(parts, (&started, early), stop).await;
        if status.is_none() {
            parts.events.resign(started.key.turn_id).await;
        }
        let name = status.map_or("lost", TurnStatus::as_str);
        tracing::Span::current().record("status", name);
        counter!("tidemark_turns_total", "status" => name).increment(1);
        histogram!("tidemark_turn_seconds").record(began.elapsed().as_secs_f64());
        tracing::info!(status = name, "turn ended");
        may_wait
    }
    .instrument(span)
    .await
}

/// Ends a task with its owner, also when that panics: a lease that is kept for a dead turn would hold its session for ever.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Closes a turn whose task has died of a defect. What was shown of its answer, and how many numbers it used, is gone with the task:
/// the end stands above all that were reserved, as after a crash.
pub(super) async fn close_dead(parts: &ChatParts, key: TurnKey) -> Result<(), TurnWriteError> {
    let Some(turn) = parts.store.turn(key.owner, key.turn_id).await? else {
        return Ok(());
    };
    let closing = Closing {
        store: parts.store.as_ref(),
        ids: parts.ids.as_ref(),
        clock: parts.clock.as_ref(),
        counts_tokens: parts.settings.max_tokens.is_some(),
    };
    let remains = Remains {
        events_used: Some(terminal_seq_after_loss(turn.events_reserved) - 1),
        shown: String::new(),
        usage: None,
        recalled: turn.recalled,
        teaches: turn.memory.learns(),
    };
    let turn = closing.close(key, Ending::interrupted(), remains).await?;
    parts.work.notify_one();
    parts.tell_end(&turn, key.fence).await;
    Ok(())
}

/// The turn's status as stored, or none when it was taken from this runner; and whether another turn of the session may wait.
async fn answer_or_close(
    parts: &Arc<ChatParts>,
    (started, early): (&Started, Option<EarlyRead>),
    mut stop: StopSignal,
) -> (Option<TurnStatus>, bool) {
    let mut publisher = Publisher::new(
        Arc::clone(&parts.events),
        Arc::clone(&parts.store) as Arc<dyn TurnRepository>,
        started.key,
        started.turn.events_reserved,
        parts.settings.event_block,
    );
    let mut progress = Progress::default();
    let mut recalled = Vec::new();
    let outcome = answer(
        parts,
        (started, early),
        &mut publisher,
        &mut progress,
        &mut recalled,
        &mut stop,
    )
    .await;
    let error = match outcome {
        Ok(result) => {
            tracing::debug!(
                outbound_sent = result.outbound_sent,
                "answer committed and told"
            );
            return (Some(result.turn.status), result.may_wait);
        }
        Err(error) => error,
    };
    if stop.reason() == Some(StopReason::LeaseLost) {
        return (None, true);
    }
    let Some(ending) = error.ending() else {
        return (None, true);
    };
    tracing::warn!(%error, status = ending.status.as_str(), "the turn has no answer");
    let closing = Closing {
        store: parts.store.as_ref(),
        ids: parts.ids.as_ref(),
        clock: parts.clock.as_ref(),
        counts_tokens: parts.settings.max_tokens.is_some(),
    };
    let remains = Remains {
        events_used: Some(publisher.used()),
        shown: progress.shown,
        usage: Some(progress.usage),
        recalled,
        teaches: started.turn.memory.learns(),
    };
    let status = match closing.close(started.key, ending, remains).await {
        Ok(turn) => {
            parts.work.notify_one();
            publisher.finish(&turn).await;
            Some(turn.status)
        }
        Err(error) => {
            tracing::warn!(%error, "the turn could not be closed here; it is closed when its lease has lapsed");
            None
        }
    };
    (status, true)
}

/// The three stages (A1).
async fn answer(
    parts: &Arc<ChatParts>,
    (started, early): (&Started, Option<EarlyRead>),
    publisher: &mut Publisher,
    progress: &mut Progress,
    recalled: &mut Vec<tidemark_domain::event::RecalledMemory>,
    stop: &mut StopSignal,
) -> Result<ProcessResult, RunError> {
    let tool_context = ToolContext {
        owner: started.key.owner,
        session_id: started.key.session_id,
        turn_id: started.key.turn_id,
        memory: started.turn.memory,
    };
    let tools = parts.tools.only(started.turn.options.tools.as_deref());
    let context = Context {
        store: &parts.store,
        recall: &parts.recall,
        prompts: &parts.prompts,
        counter: parts.model.counter(),
        tools: tools.specs(&tool_context),
        early,
    };
    let prepared = context
        .prepare(started)
        .instrument(tracing::info_span!("context"))
        .await
        .map_err(RunError::Context)?;
    let Prepared {
        request,
        recalled: memories,
        event,
        intro,
    } = prepared;
    recalled.clone_from(&memories);
    publish_recall(publisher, event).await?;

    let inference = Inference {
        key: started.key,
        model: parts.model.as_ref(),
        turns: parts.store.as_ref(),
        ids: &parts.ids,
        clock: parts.clock.as_ref(),
        tools: &tools,
        tool_context,
        settings: &parts.settings,
        intro: intro.as_deref(),
    };
    let result = inference
        .run(request, publisher, progress, stop)
        .instrument(tracing::info_span!("inference"))
        .await?;

    let context = ResponseContext {
        key: started.key,
        store: Arc::clone(&parts.store) as Arc<dyn TurnRepository>,
        ids: Arc::clone(&parts.ids),
        clock: Arc::clone(&parts.clock),
        work: Arc::clone(&parts.work),
        intro,
        recalled: memories,
        answer_teaches: parts.model.teaches(),
        turn_teaches: started.turn.memory.learns(),
        last_consolidated: started.session.last_consolidated,
        threshold: parts.learning_threshold,
        counts_tokens: parts.settings.max_tokens.is_some(),
        messages_before: started.session.message_count + progress.stored,
    };
    Ok(response::finalize(&context, result, publisher)
        .instrument(tracing::info_span!("response"))
        .await?)
}

async fn publish_recall(publisher: &mut Publisher, event: TurnEvent) -> Result<(), TurnWriteError> {
    publisher.publish(event).await
}

/// Prolongs the lease until it is aborted; tells the turn when the lease is lost or a cancellation was asked for elsewhere.
async fn keep_lease(parts: Arc<ChatParts>, key: TurnKey, stopper: Stopper) {
    let lease = parts.settings.lease;
    let mut last_success = tokio::time::Instant::now();
    loop {
        // Sooner where another replica hints that the row has changed.
        let _ = tokio::time::timeout(lease / 3, stopper.to_look()).await;
        match parts.store.renew_turn(key, lease).await {
            Ok(renewed) => {
                last_success = tokio::time::Instant::now();
                if renewed.cancel_requested {
                    stopper.stop(StopReason::Cancelled);
                }
            }
            Err(TurnWriteError::Fenced) => {
                stopper.stop(StopReason::LeaseLost);
                return;
            }
            Err(TurnWriteError::Store(error)) => {
                tracing::warn!(%error, "the turn's lease could not be prolonged");
                if last_success.elapsed() >= lease {
                    stopper.stop(StopReason::LeaseLost);
                    return;
                }
            }
        }
    }
}

async fn limit_time(limit: Duration, stopper: Stopper) {
    tokio::time::sleep(limit).await;
    stopper.stop(StopReason::TimeLimit);
}
