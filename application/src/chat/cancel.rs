//! Cancelling a turn.

use futures::StreamExt;
use tidemark_domain::ids::{Owner, TurnId};
use tidemark_domain::turn::Turn;
use tokio_util::sync::CancellationToken;

use super::publisher::START_SEQ;
use super::service::{Chat, ChatParts};
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
                if !self.cancel_local(owner, turn.session_id, id) {
                    self.parts.events.hint(id).await;
                }
                Ok(Some(turn))
            }
            CancelOutcome::Closed(turn) => {
                self.parts.tell_end(&turn, turn.fence).await;
                Ok(Some(turn))
            }
        }
    }

    /// Lets turns that run here look at their rows when another replica hints that these have changed, until `shutdown`. Without a hint
    /// they see it when they prolong their leases.
    pub async fn heed_hints(&self, shutdown: CancellationToken) {
        let mut hints = self.parts.events.hints().await;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                hint = hints.next() => match hint {
                    Some(turn) => self.look_again(turn),
                    None => return,
                }
            }
        }
    }
}

impl ChatParts {
    /// Publishes the end of a turn that nobody runs any more. A fence above that of its last runner keeps that one from telling anything
    /// after it.
    pub(super) async fn tell_end(&self, turn: &Turn, fence: i64) {
        let Some(terminal) = tidemark_domain::event::Terminal::of(turn) else {
            return;
        };
        let done = LoggedEvent {
            seq: turn.terminal_seq.unwrap_or(START_SEQ + 1),
            event: tidemark_domain::event::TurnEvent::Done(terminal),
        };
        if let Err(error) = self.events.append(turn.id, fence, vec![done]).await {
            tracing::debug!(%error, "an end did not reach the live log; followers will read the stored turn");
        }
    }
}
