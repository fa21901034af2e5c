//! The inference stage: the model speaks and calls tools; each step is stored before the next begins (A7).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidemark_domain::event::{ToolState, TurnEvent};
use tidemark_domain::reasoning::{self, AnswerFilter, Piece};
use tidemark_domain::session::Role;
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Usage};
use tokio::time::Instant;

use super::fit;
use super::publisher::Publisher;
use super::response::intro_token;
use super::stop::{StopReason, StopSignal};
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::model::{
    ChatModel, ModelError, ModelEvent, ModelRequest, ModelStream, PromptMessage,
};
use crate::ports::tools::{ToolContext, ToolError};
use crate::ports::turns::{NewMessage, TurnKey, TurnRepository, TurnWriteError};
use crate::settings::TurnSettings;
use crate::tools::Toolbox;

/// What the model produced (A2). Nothing of it is delivered yet.
#[derive(Clone, Debug)]
pub struct InferenceResult {
    /// Its last words, as they came: reasoning not yet removed.
    pub raw_text: String,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// What all its calls cost.
    pub usage: Usage,
    /// How many tools it called.
    pub total_tool_calls: u32,
    /// What should be looked at behind the boundary.
    pub signals: ReviewSignals,
}

/// Reviews that inference asks for and the response stage schedules (A17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewSignals {
    /// The turn was long enough in tools to be worth remembering before the session is due.
    pub review_memory: bool,
}

/// The model produced no answer.
#[derive(Debug, thiserror::Error)]
pub enum InferenceError {
    /// The turn was told to stop.
    #[error("the turn was stopped")]
    Stopped(StopReason),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The answer is longer than an answer may be.
    #[error("the model's answer is too long")]
    TooLong,
    /// It calls more tools at once than it may.
    #[error("the model called too many tools at once")]
    TooManyCalls,
    /// It wants more rounds of tools than there are.
    #[error("the model called tools in every round")]
    TooManyRounds,
    /// A step could not be stored.
    #[error(transparent)]
    Write(#[from] TurnWriteError),
}

/// What outlives an inference that fails: needed to close the turn.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Text shown since the last reset, the introduction included.
    pub shown: String,
    /// What was used so far.
    pub usage: Usage,
    /// Messages stored so far by this stage.
    pub stored: i64,
}

/// The most calls of one round; more is a failure of the model.
pub(super) const MAX_CALLS: usize = 64;

/// Everything inference needs.
pub struct Inference<'a> {
    /// The right to write.
    pub key: TurnKey,
    /// The model.
    pub model: &'a dyn ChatModel,
    /// Where turns are stored.
    pub turns: &'a dyn TurnRepository,
    /// Makes ids.
    pub ids: &'a Arc<dyn Ids>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Its tools.
    pub tools: &'a Toolbox,
    /// For whom they are called.
    pub tool_context: ToolContext,
    /// How turns run.
    pub settings: &'a TurnSettings,
    /// What the product says first.
    pub intro: Option<&'a str>,
}

impl std::fmt::Debug for Inference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inference")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// One answer of the model: text, calls, and how it ended.
struct Round {
    raw_text: String,
    calls: Vec<Wanted>,
    finish_reason: FinishReason,
}

/// What the model has said so far.
#[derive(Default)]
struct Said {
    raw_text: String,
    calls: Vec<Wanted>,
}

/// A call as it is stored and told to the model again, and whether it can be done.
struct Wanted {
    call: ToolCall,
    /// What the model wrote as arguments was no JSON object. Servers that read the history would refuse it for good, so that it is not kept.
    malformed: bool,
}

fn wanted(call: ToolCall) -> Wanted {
    let arguments = storable(call.arguments);
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&arguments);
    let malformed = parsed.is_err();
    Wanted {
        call: ToolCall {
            id: storable(call.id),
            name: storable(call.name),
            arguments: if malformed {
                "{}".to_owned()
            } else {
                arguments
            },
        },
        malformed,
    }
}

impl Inference<'_> {
    /// Lets the model speak until it has answered.
    ///
    /// # Errors
    /// When it does not; `progress` then tells how far it came.
    pub async fn run(
        &self,
        mut request: ModelRequest,
        publisher: &mut Publisher,
        progress: &mut Progress,
        stop: &mut StopSignal,
    ) -> Result<InferenceResult, InferenceError> {
        let mut total_tool_calls = 0_u32;
        for round in 0..=self.settings.max_rounds {
            if round == self.settings.max_rounds {
                request.tools.clear();
            }
            fit::fit(&mut request, self.model.counter());
            let answer = self
                .round(request.clone(), publisher, progress, stop)
                .await?;
            if answer.calls.is_empty() {
                return Ok(InferenceResult {
                    raw_text: answer.raw_text,
                    finish_reason: answer.finish_reason,
                    usage: progress.usage,
                    total_tool_calls,
                    signals: ReviewSignals {
                        review_memory: total_tool_calls >= self.settings.review_after_tool_calls,
                    },
                });
            }
            if round == self.settings.max_rounds {
                return Err(InferenceError::TooManyRounds);
            }
            if answer.calls.len() > MAX_CALLS {
                return Err(InferenceError::TooManyCalls);
            }
            total_tool_calls += answer.calls.len() as u32;
            self.tool_round(answer, &mut request, publisher, progress, stop)
                .await?;
        }
        Err(InferenceError::TooManyRounds)
    }

    async fn round(
        &self,
        request: ModelRequest,
        publisher: &mut Publisher,
        progress: &mut Progress,
        stop: &mut StopSignal,
    ) -> Result<Round, InferenceError> {
        let prompt_tokens = request.tokens(self.model.counter());
        let stream = tokio::select! {
            biased;
            reason = stop.stopped() => return Err(InferenceError::Stopped(reason)),
            stream = self.model.answer(request) => stream?,
        };
        let mut said = Said::default();
        let finished = self
            .listen(stream, &mut said, publisher, progress, stop)
            .await;
        // What an answer cost that was cut is reported by nobody.
        let reported = finished.as_ref().ok().and_then(|(_, usage)| *usage);
        progress.usage = progress.usage.plus(reported.unwrap_or_else(|| Usage {
            prompt_tokens: prompt_tokens as u64,
            completion_tokens: self.model.counter().count(&said.raw_text) as u64,
            estimated: self.model.counter().is_estimate(),
        }));
        let (finish_reason, _) = finished?;
        let Said { raw_text, calls } = said;
        Ok(Round {
            raw_text,
            calls,
            finish_reason,
        })
    }

    /// Hears an answer to its end: why it ended, and what it cost, where that is reported.
    async fn listen(
        &self,
        mut stream: ModelStream,
        said: &mut Said,
        publisher: &mut Publisher,
        progress: &mut Progress,
        stop: &mut StopSignal,
    ) -> Result<(FinishReason, Option<Usage>), InferenceError> {
        let mut teller = Teller::new(self.intro, self.settings.coalesce);
        let mut filter = AnswerFilter::new();
        let finished = loop {
            let event = tokio::select! {
                biased;
                reason = stop.stopped() => {
                    teller.flush(publisher, progress).await?;
                    return Err(InferenceError::Stopped(reason));
                }
                () = teller.due() => {
                    teller.flush(publisher, progress).await?;
                    continue;
                }
                event = stream.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Text(text))) => {
                    let text = storable(text);
                    said.raw_text.push_str(&text);
                    if said.raw_text.len() > self.settings.max_answer_bytes {
                        return Err(InferenceError::TooLong);
                    }
                    for piece in filter.push(&text) {
                        teller.take(piece, publisher, progress).await?;
                    }
                }
                Some(Ok(ModelEvent::Reasoning(text))) => publisher.reasoning(&text).await,
                Some(Ok(ModelEvent::ToolCall(call))) => said.calls.push(wanted(call)),
                Some(Ok(ModelEvent::Finished { reason, usage })) => break (reason, usage),
                Some(Err(error)) => {
                    teller.flush(publisher, progress).await?;
                    return Err(error.into());
                }
                None => {
                    teller.flush(publisher, progress).await?;
                    return Err(ModelError::Truncated.into());
                }
            }
        };
        for piece in filter.finish() {
            teller.take(piece, publisher, progress).await?;
        }
        teller.flush(publisher, progress).await?;
        Ok(finished)
    }

    async fn tool_round(
        &self,
        answer: Round,
        request: &mut ModelRequest,
        publisher: &mut Publisher,
        progress: &mut Progress,
        stop: &mut StopSignal,
    ) -> Result<(), InferenceError> {
        let said = reasoning::clean(&answer.raw_text);
        let calls: Vec<ToolCall> = answer.calls.iter().map(|w| w.call.clone()).collect();
        self.store_step(
            NewMessage {
                id: self.ids.message(),
                role: Role::Assistant,
                content: said.clone(),
                tool_calls: calls.clone(),
                tool_call_id: None,
                partial: false,
                learnable: false,
            },
            progress,
        )
        .await?;
        if !progress.shown.is_empty() {
            let reason = "tool_calls".to_owned();
            publisher.publish(TurnEvent::Reset { reason }).await?;
            progress.shown.clear();
        }
        request.messages.push(PromptMessage {
            role: Role::Assistant,
            content: said,
            name: None,
            tool_calls: calls,
            tool_call_id: None,
        });
        for wanted in answer.calls {
            let result = self.call_tool(&wanted, publisher, stop).await?;
            let call = wanted.call;
            self.store_step(
                NewMessage {
                    id: self.ids.message(),
                    role: Role::Tool,
                    content: result.clone(),
                    tool_calls: Vec::new(),
                    tool_call_id: Some(call.id.clone()),
                    partial: false,
                    learnable: false,
                },
                progress,
            )
            .await?;
            request.messages.push(PromptMessage {
                role: Role::Tool,
                content: result,
                name: Some(call.name),
                tool_calls: Vec::new(),
                tool_call_id: Some(call.id),
            });
        }
        Ok(())
    }

    async fn store_step(
        &self,
        message: NewMessage,
        progress: &mut Progress,
    ) -> Result<(), InferenceError> {
        self.turns
            .append_step(self.key, vec![message], self.clock.now())
            .await?;
        progress.stored += 1;
        Ok(())
    }

    async fn result_of(&self, wanted: &Wanted) -> Result<String, ToolError> {
        if wanted.malformed {
            return Err(ToolError::BadArguments(
                "they were no JSON object".to_owned(),
            ));
        }
        self.tools.call(&self.tool_context, &wanted.call).await
    }

    async fn call_tool(
        &self,
        wanted: &Wanted,
        publisher: &mut Publisher,
        stop: &mut StopSignal,
    ) -> Result<String, InferenceError> {
        let call = &wanted.call;
        let began = Instant::now();
        let event = |state, began: Instant| TurnEvent::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            state,
            summary: String::new(),
            took_ms: began.elapsed().as_millis() as u64,
        };
        publisher.publish(event(ToolState::Started, began)).await?;
        let outcome = tokio::select! {
            biased;
            reason = stop.stopped() => return Err(InferenceError::Stopped(reason)),
            outcome = self.result_of(wanted) => outcome,
        };
        let (state, result) = match outcome {
            Ok(result) => (ToolState::Finished, storable(result)),
            Err(error) => (ToolState::Failed, format!("error: {error}")),
        };
        publisher.publish(event(state, began)).await?;
        Ok(result)
    }
}

/// Without U+0000, which not every store keeps. It means nothing in a text.
fn storable(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "")
    } else {
        text
    }
}

/// Puts cleaned text on the stream, a few pieces at a time: the first at once, the rest coalesced.
struct Teller<'a> {
    intro: Option<&'a str>,
    introduced: bool,
    pending: String,
    due_at: Option<Instant>,
    last: Option<Instant>,
    coalesce: Duration,
}

impl<'a> Teller<'a> {
    /// Text beyond this many bytes is sent without waiting: an event stays small.
    const FULL: usize = 2_048;

    fn new(intro: Option<&'a str>, coalesce: Duration) -> Self {
        Self {
            intro,
            introduced: false,
            pending: String::new(),
            due_at: None,
            last: None,
            coalesce,
        }
    }

    async fn due(&self) {
        match self.due_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    async fn take(
        &mut self,
        piece: Piece,
        publisher: &mut Publisher,
        progress: &mut Progress,
    ) -> Result<(), TurnWriteError> {
        let text = match piece {
            Piece::Reasoning(text) => {
                publisher.reasoning(&text).await;
                return Ok(());
            }
            Piece::Void => return self.take_back(publisher, progress).await,
            Piece::Answer(text) => text,
        };
        if text.is_empty() {
            return Ok(());
        }
        if let Some(intro) = self.intro.filter(|_| !self.introduced) {
            self.introduced = true;
            self.pending.push_str(&intro_token(intro));
        }
        self.pending.push_str(&text);
        let now = Instant::now();
        let next = self.last.map_or(now, |last| last + self.coalesce);
        if next <= now || self.pending.len() >= Self::FULL {
            self.flush(publisher, progress).await
        } else {
            self.due_at = Some(next);
            Ok(())
        }
    }

    /// What was told turned out to be reasoning; the answer begins anew, the introduction with it.
    async fn take_back(
        &mut self,
        publisher: &mut Publisher,
        progress: &mut Progress,
    ) -> Result<(), TurnWriteError> {
        self.pending.clear();
        self.due_at = None;
        self.introduced = false;
        if progress.shown.is_empty() {
            return Ok(());
        }
        progress.shown.clear();
        let reason = "reasoning".to_owned();
        publisher.publish(TurnEvent::Reset { reason }).await
    }

    async fn flush(
        &mut self,
        publisher: &mut Publisher,
        progress: &mut Progress,
    ) -> Result<(), TurnWriteError> {
        self.due_at = None;
        if self.pending.is_empty() {
            return Ok(());
        }
        let token = std::mem::take(&mut self.pending);
        progress.shown.push_str(&token);
        self.last = Some(Instant::now());
        publisher.publish(TurnEvent::Message { token }).await
    }
}
