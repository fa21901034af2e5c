//! Cancelling a turn.

use tidemark_domain::ids::{Owner, TurnId};
use tidemark_domain::turn::Turn;

use super::publisher::START_SEQ;
use super::service::Chat;
use crate::ports::events::LoggedEvent;
use crate::ports::store::StoreResult;
use crate::ports::turns::CancelOutcome;

impl Chat {
    /// Cancels a turn; idempotent. A waiting one is closed at once; a running one is told to stop, here or wherever it runs, and
    /// closes itself with what was shown of its answer. `None` if there is no such turn.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn cancel(&self, owner: Owner, id: TurnId) -> StoreResult<Option<Turn>> {
        let now = self.parts.clock.now();
        match self.parts.store.request_cancel(owner, id, now).await? {
            CancelOutcome::NotFound => Ok(None),
            CancelOutcome::AlreadyEnded(turn) => Ok(Some(turn)),
            CancelOutcome::Requested(turn) => {
                self.cancel_local(owner, turn.session_id, id);
                Ok(Some(turn))
            }
            CancelOutcome::Closed(turn) => {
                self.tell_end(&turn).await;
                Ok(Some(turn))
            }
        }
    }

    /// Publishes the end of a turn that never ran.
    async fn tell_end(&self, turn: &Turn) {
        let Some(terminal) = tidemark_domain::event::Terminal::of(turn) else {
            return;
        };
        let done = LoggedEvent {
            seq: turn.terminal_seq.unwrap_or(START_SEQ + 1),
            event: tidemark_domain::event::TurnEvent::Done(terminal),
        };
        if let Err(error) = self
            .parts
            .events
            .append(turn.id, turn.fence, vec![done])
            .await
        {
            tracing::warn!(%error, "the live log is down; followers will read the stored turn");
        }
    }
}
