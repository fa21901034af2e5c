//! Recovery: turns whose runner is gone are closed, sessions that wait are run. The same at start-up and later.

use tidemark_domain::ids::{Owner, SessionId};
use tokio_util::sync::CancellationToken;

use super::closing::{Closing, Ending, Remains};
use super::service::Chat;
use crate::ports::store::StoreResult;
use crate::ports::turns::{TurnKey, TurnWriteError};

/// How many are looked at in one go.
const BATCH: u32 = 256;

impl Chat {
    /// Looks for lapsed turns and waiting sessions again and again, three times a lease, until `shutdown`.
    pub async fn recover_until(&self, shutdown: CancellationToken) {
        let pause = self.parts.settings.lease / 3;
        loop {
            if let Err(error) = self.recover().await {
                tracing::warn!(%error, "could not look for lapsed turns");
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Closes what has lapsed as interrupted, and starts what waits.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recover(&self) -> StoreResult<()> {
        for key in self.parts.store.lapsed_turns(BATCH).await? {
            // One turn that cannot be closed holds up no other.
            if let Err(error) = self.close_lapsed(key).await {
                tracing::error!(%error, turn = %key.turn_id, "a lapsed turn could not be closed");
            }
        }
        for (owner, session) in self.waiting().await? {
            self.kick(owner, session);
        }
        Ok(())
    }

    async fn waiting(&self) -> StoreResult<Vec<(Owner, SessionId)>> {
        self.parts.store.waiting_sessions(BATCH).await
    }

    /// Nothing with side effects is silently run again: an interrupted turn stays interrupted.
    async fn close_lapsed(&self, key: TurnKey) -> StoreResult<()> {
        let parts = &self.parts;
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
            events_used: None,
            shown: String::new(),
            usage: turn.usage,
            recalled: turn.recalled,
            teaches: turn.memory.learns(),
        };
        match closing.close(key, Ending::interrupted(), remains).await {
            Ok(turn) => {
                parts.tell_end(&turn, key.fence + 1).await;
                metrics::counter!("tidemark_turns_total", "status" => turn.status.as_str())
                    .increment(1);
                tracing::info!(turn = %key.turn_id, "a lapsed turn was closed as interrupted");
                parts.work.notify_one();
                self.kick(key.owner, key.session_id);
                Ok(())
            }
            Err(TurnWriteError::Fenced) => Ok(()),
            Err(TurnWriteError::Store(error)) => Err(error),
        }
    }
}
