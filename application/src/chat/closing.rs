//! Closing a turn without an answer: failed, cancelled or interrupted. Goes through the store first, like the answer; then it is told.

use std::time::Duration;

use tidemark_domain::event::RecalledMemory;
use tidemark_domain::session::{Role, open_calls};
use tidemark_domain::turn::{Turn, TurnProblem, TurnStatus, Usage};

use super::inference::MAX_CALLS;
use super::stop::StopReason;
use crate::ports::clock::Clock;
use crate::ports::ids::Ids;
use crate::ports::jobs::{JobKind, NewJob};
use crate::ports::store::{Store, StoreError};
use crate::ports::turns::{CloseTurn, Closer, NewMessage, TurnKey, TurnWriteError};

/// More messages than one tool round can have: enough to see every call that may be open.
const TAIL: u32 = MAX_CALLS as u32 + 8;

/// Why a turn ends without an answer, for its owner.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub status: TurnStatus,
    pub problem: Option<TurnProblem>,
    /// What the results of open tool calls say.
    pub tool_result: &'static str,
}

impl Ending {
    pub(super) fn failed(code: &str, detail: &str) -> Self {
        Self {
            status: TurnStatus::Failed,
            problem: Some(TurnProblem {
                code: code.to_owned(),
                detail: detail.to_owned(),
            }),
            tool_result: "error: the turn failed before this call had a result",
        }
    }

    pub(super) fn interrupted() -> Self {
        Self {
            status: TurnStatus::Interrupted,
            problem: Some(TurnProblem {
                code: "interrupted".to_owned(),
                detail: "the server stopped before the answer was complete; send the message again"
                    .to_owned(),
            }),
            tool_result: "error: interrupted; whether the call happened is unknown",
        }
    }

    /// The ending of a turn that was told to stop; none when it is no longer ours to end.
    pub(super) fn stopped(reason: StopReason) -> Option<Self> {
        match reason {
            StopReason::Cancelled => Some(Self {
                status: TurnStatus::Cancelled,
                problem: None,
                tool_result: "error: cancelled; whether the call happened is unknown",
            }),
            StopReason::Shutdown => Some(Self::interrupted()),
            StopReason::TimeLimit => Some(Self::failed(
                "turn_timeout",
                "the turn took longer than a turn may take",
            )),
            StopReason::LeaseLost => None,
        }
    }
}

/// How far the turn had come.
#[derive(Clone, Debug)]
pub(super) struct Remains {
    /// The last event number that the runner used; none where the runner is gone.
    pub events_used: Option<i64>,
    pub shown: String,
    pub usage: Option<Usage>,
    pub recalled: Vec<RecalledMemory>,
    /// The turn may become memory.
    pub teaches: bool,
}

/// What closing needs of the world.
pub(super) struct Closing<'a> {
    pub store: &'a dyn Store,
    pub ids: &'a dyn Ids,
    pub clock: &'a dyn Clock,
    /// Tokens are limited.
    pub counts_tokens: bool,
}

impl Closing<'_> {
    /// Closes the turn so that its transcript is whole: open tool calls get a result, what was shown is kept and marked.
    ///
    /// # Errors
    /// `Fenced` when somebody else has closed it or holds it.
    pub(super) async fn close(
        &self,
        key: TurnKey,
        ending: Ending,
        remains: Remains,
    ) -> Result<Turn, TurnWriteError> {
        const TRIES: u32 = 5;
        let mut pause = Duration::from_millis(50);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_close(key, &ending, &remains).await {
                Err(TurnWriteError::Store(
                    error @ (StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)),
                )) if tries < TRIES => {
                    tracing::warn!(%error, turn = %key.turn_id, "the turn could not be closed yet");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(TurnWriteError::Fenced) if tries > 1 => return self.closed(key).await,
                outcome => return outcome,
            }
        }
    }

    async fn try_close(
        &self,
        key: TurnKey,
        ending: &Ending,
        remains: &Remains,
    ) -> Result<Turn, TurnWriteError> {
        let tail = self
            .store
            .history(key.owner, key.session_id, None, TAIL)
            .await?;
        let mut messages: Vec<NewMessage> = open_calls(&tail)
            .into_iter()
            .map(|call| NewMessage {
                tool_call_id: Some(call.id),
                ..self.message(Role::Tool, ending.tool_result.to_owned())
            })
            .collect();
        let shown = remains.shown.trim_end();
        if !shown.is_empty() {
            messages.push(NewMessage {
                partial: true,
                ..self.message(Role::Assistant, shown.to_owned())
            });
        }
        let learns = remains.teaches && ending.status != TurnStatus::Cancelled;
        let jobs = if learns {
            vec![NewJob {
                id: self.ids.job(),
                kind: JobKind::Index,
            }]
        } else {
            Vec::new()
        };
        self.store
            .close_turn(
                key,
                CloseTurn {
                    closer: match remains.events_used {
                        Some(events_used) => Closer::Runner { events_used },
                        None => Closer::LeaseLapsed {
                            last_seq: tail.last().map_or(0, |message| message.seq),
                        },
                    },
                    status: ending.status,
                    problem: ending.problem.clone(),
                    messages,
                    text: (!shown.is_empty()).then(|| shown.to_owned()),
                    usage: remains.usage,
                    recalled: remains.recalled.clone(),
                    counts_tokens: self.counts_tokens,
                    jobs,
                    now: self.clock.now(),
                },
            )
            .await
    }

    /// The turn, if an earlier try did close it.
    async fn closed(&self, key: TurnKey) -> Result<Turn, TurnWriteError> {
        match self.store.turn(key.owner, key.turn_id).await? {
            Some(turn) if turn.status.is_terminal() && turn.fence == key.fence => Ok(turn),
            _ => Err(TurnWriteError::Fenced),
        }
    }

    fn message(&self, role: Role, content: String) -> NewMessage {
        NewMessage {
            id: self.ids.message(),
            role,
            content,
            tool_calls: Vec::new(),
            tool_call_id: None,
            partial: false,
            learnable: false,
        }
    }
}
