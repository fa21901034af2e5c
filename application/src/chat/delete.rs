//! Deleting a session, whatever runs in it.

use std::time::Duration;

use tidemark_domain::ids::{Owner, SessionId, TurnId};

use super::service::Chat;
use crate::ports::store::StoreResult;

/// How long what is deleted waits for a running turn to end. A turn stops at once but for a write that is under way.
const END_LIMIT: Duration = Duration::from_secs(5);

impl Chat {
    /// Cancels the session's open turns and removes the session; with `forget` also what was learned from it alone. False if there is no
    /// such session. A runner that does not hear of the cancellation finds its fence gone.
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
        self.end_turns(owner, Some(id)).await?;
        self.parts.store.delete_session(owner, id, forget).await
    }

    /// Cancels open turns, those that wait before those that run, so that none starts meanwhile; and waits for their ends, so that whoever
    /// follows one is told before its row is gone.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn end_turns(
        &self,
        owner: Owner,
        session: Option<SessionId>,
    ) -> StoreResult<()> {
        let open = self.parts.store.open_turns(owner, session).await?;
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
        Ok(())
    }

    /// Drops the live logs of turns that are gone from the store. Whether they are gone everywhere by now.
    pub(crate) async fn forget_turns(&self, turns: &[TurnId]) -> bool {
        self.parts.events.forget(turns).await
    }
}
