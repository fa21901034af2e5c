//! Deleting a session, whatever runs in it.

use std::time::Duration;

use tidemark_domain::ids::{Owner, SessionId, TurnId};

use super::service::Chat;
use crate::ports::store::StoreResult;

/// How long what is deleted waits for a running turn to end. A turn stops at once but for a write that is under way.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long what is deleted waits until the ends of its turns have reached the other replicas, and then until these have told them: a few
/// milliseconds where nothing is in the way.
const TOLD_LIMIT: Duration = Duration::from_secs(1);
const TOLD: Duration = Duration::from_millis(100);

impl Chat {
    /// Cancels the session's open turns and removes the session with its live logs; with `forget` also what was learned from it alone. False
    /// if there is no such session. A runner that does not hear of the cancellation finds its fence gone.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete_session(
        &self,
        owner: Owner,
        id: SessionId,
        forget: bool,
    ) -> StoreResult<bool> {
        if self.parts.store.session(owner, id).await?.is_none() {
            return Ok(false);
        }
        if self.end_turns(owner, Some(id)).await? {
            // Their followers, at other replicas too, are told the ends before nothing is left of them.
            self.parts.events.flush(TOLD_LIMIT).await;
            tokio::time::sleep(TOLD).await;
        }
        let deleted = self.parts.store.delete_session(owner, id, forget).await?;
        let Some(turns) = deleted else {
            return Ok(false);
        };
        if !self.forget_turns(&turns).await {
            tracing::warn!(
                "what a deleted session's turns have told could not be removed from Redis yet"
            );
        }
        Ok(true)
    }

    /// Cancels open turns, those that wait before those that run, so that none starts meanwhile; and waits for their ends, so that whoever
    /// follows one is told before its row is gone. Whether there were any.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn end_turns(
        &self,
        owner: Owner,
        session: Option<SessionId>,
    ) -> StoreResult<bool> {
        let open = self.parts.store.open_turns(owner, session).await?;
        let any = !open.is_empty();
        let mut running = Vec::new();
        for id in open {
            let turn = self.cancel(owner, id).await?;
            running.extend(turn.filter(|turn| !turn.status.is_terminal()));
        }
        for turn in running {
            if let Err(error) = self.wait(owner, turn.id, END_LIMIT).await {
                tracing::debug!(%error, turn = %turn.id, "a turn's end was not seen");
            }
        }
        Ok(any)
    }

    /// Drops the live logs of turns that are gone from the store. Whether they are gone everywhere by now.
    pub(crate) async fn forget_turns(&self, turns: &[TurnId]) -> bool {
        self.parts.events.forget(turns).await
    }
}
