//! Deleting a session, whatever runs in it.

use tidemark_domain::ids::{Owner, SessionId};

use super::service::Chat;
use crate::ports::store::StoreResult;

impl Chat {
    /// Cancels the session's open turn and removes the session; with `forget` also what was learned from it alone. False if there is no
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
        let Some(session) = self.parts.store.session(owner, id).await? else {
            return Ok(false);
        };
        if let Some(turn) = session.active_turn {
            self.cancel(owner, turn).await?;
        }
        self.parts.store.delete_session(owner, id, forget).await
    }
}
