//! Following a turn: its events from a cursor on, live or replayed, to exactly one terminal event.
//!
//! The live log is pulled by cursor. When it is quiet the stored turn is read again, since whoever committed may have died before
//! publishing; when it is gone, the stored turn answers with a snapshot and the terminal event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::event::{Terminal, TurnEvent};
use tidemark_domain::ids::{MemoryId, Owner, TurnId};
use tidemark_domain::turn::{Turn, TurnStatus};

use tokio::time::Instant;

use super::service::Chat;
use crate::ports::events::{EventLog, LogRead, LoggedEvent, Reach};
use crate::ports::store::{StoreError, StoreResult};
use crate::ports::turns::TurnRepository;

/// How long a quiet log is trusted before the stored turn is read again.
const QUIET: Duration = Duration::from_secs(2);

/// How many events are pulled at a time: what a slow reader costs.
const BATCH: usize = 64;

/// What a follower is to be shown next.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// An event of the log.
    Event(LoggedEvent),
    /// In place of events that are gone.
    Snapshot {
        /// Its number; below the terminal event, and above the cursor unless that was none that a follower can have been told.
        seq: i64,
        /// What was shown of the answer so far.
        text: String,
        /// Where the turn stands.
        status: TurnStatus,
    },
}

/// A turn cannot be followed from there.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// No such turn of this owner.
    #[error("there is no such turn")]
    NotFound,
    /// The cursor lies beyond the end of a closed turn.
    #[error("the cursor lies beyond the end of the turn")]
    BeyondEnd,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where a follower begins.
#[derive(Debug)]
pub enum Follow {
    /// Events are to come.
    From(Follower),
    /// The cursor is at the terminal event: there is nothing more, ever.
    AtEnd,
}

/// Reads a turn's events. Dropping a pending [`Follower::next`] loses nothing.
pub struct Follower {
    turns: Arc<dyn TurnRepository>,
    events: Arc<dyn EventLog>,
    owner: Owner,
    turn: TurnId,
    cursor: i64,
    placed: bool,
    ended: bool,
    /// What a turn that had ended still shows: what was forgotten since is not told again.
    shown: Option<BTreeSet<MemoryId>>,
    /// When the stored turn is read again, if the log stays quiet. Outlives a call of `next` that is dropped for a heartbeat.
    quiet_until: Option<Instant>,
}

impl Chat {
    /// Follows a turn from behind `after` (0: from its start).
    ///
    /// # Errors
    /// When there is no such turn or no such place in it.
    pub async fn follow(
        &self,
        owner: Owner,
        id: TurnId,
        after: i64,
    ) -> Result<Follow, FollowError> {
        let turn = self.parts.store.turn(owner, id).await?;
        self.follow_from(owner, turn.ok_or(FollowError::NotFound)?, after)
    }

    /// The same for a turn that has just been read.
    ///
    /// # Errors
    /// When there is no such place in it.
    pub fn follow_from(&self, owner: Owner, turn: Turn, after: i64) -> Result<Follow, FollowError> {
        if let Some(end) = turn.terminal_seq {
            if after > end {
                return Err(FollowError::BeyondEnd);
            }
            if after == end {
                return Ok(Follow::AtEnd);
            }
        }
        let mut follower = Follower::new(
            Arc::clone(&self.parts.store) as Arc<dyn TurnRepository>,
            Arc::clone(&self.parts.events),
            owner,
            turn.id,
            after,
        );
        if turn.status.is_terminal() {
            follower.shown = Some(turn.recalled.into_iter().map(|memory| memory.id).collect());
        }
        Ok(Follow::From(follower))
    }

    /// The turn, if it is this owner's.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn turn(&self, owner: Owner, id: TurnId) -> StoreResult<Option<Turn>> {
        self.parts.store.turn(owner, id).await
    }

    /// Waits until the turn has ended, at most `limit`; the turn as it then is.
    ///
    /// # Errors
    /// When there is no such turn, or the store fails.
    pub async fn wait(
        &self,
        owner: Owner,
        id: TurnId,
        limit: Duration,
    ) -> Result<Turn, FollowError> {
        if let Follow::From(mut follower) = self.follow(owner, id, 0).await? {
            let end = async {
                while follower.next().await?.is_some() {}
                Ok::<(), FollowError>(())
            };
            if let Ok(outcome) = tokio::time::timeout(limit, end).await {
                outcome?;
            }
        }
        let turn = self.parts.store.turn(owner, id).await?;
        turn.ok_or(FollowError::NotFound)
    }

    /// Whom live events reach now.
    pub fn reach(&self) -> Reach {
        self.parts.events.reach()
    }

    /// The model's reasoning from now on; for those who asked for it.
    pub async fn reasoning(&self, id: TurnId) -> futures::stream::BoxStream<'static, String> {
        self.parts.events.reasoning(id).await
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("turn", &self.turn)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// From behind `cursor`, which lies before the turn's end.
    pub(super) fn new(
        turns: Arc<dyn TurnRepository>,
        events: Arc<dyn EventLog>,
        owner: Owner,
        turn: TurnId,
        cursor: i64,
    ) -> Self {
        Self {
            turns,
            events,
            owner,
            turn,
            cursor,
            placed: false,
            ended: false,
            shown: None,
            quiet_until: None,
        }
    }

    /// The next frames; none when the terminal event has been given.
    ///
    /// # Errors
    /// When the turn is gone, or can no longer be read: the stream then ends without a terminal event.
    pub async fn next(&mut self) -> Result<Option<Vec<Frame>>, FollowError> {
        while !self.ended {
            let patience = self.patience();
            let read = self
                .events
                .read(self.turn, self.cursor, BATCH, patience)
                .await
                .unwrap_or(LogRead::Unknown);
            let frames = match read {
                LogRead::Events(events) => self.take(events),
                LogRead::Quiet => self.as_stored().await?,
                LogRead::Unknown => self.without_log().await?,
            };
            self.quiet_until = None;
            if !frames.is_empty() {
                return Ok(Some(frames));
            }
        }
        Ok(None)
    }

    /// What is left of the time that a quiet log is trusted.
    fn patience(&mut self) -> Duration {
        let now = Instant::now();
        let until = *self.quiet_until.get_or_insert(now + QUIET);
        until.saturating_duration_since(now)
    }

    fn take(&mut self, events: Vec<LoggedEvent>) -> Vec<Frame> {
        self.placed = true;
        let mut frames = Vec::with_capacity(events.len());
        for mut event in events {
            if let (TurnEvent::Recall { memories, .. }, Some(shown)) =
                (&mut event.event, &self.shown)
            {
                memories.retain(|memory| shown.contains(&memory.id));
            }
            self.cursor = event.seq;
            self.ended = matches!(event.event, TurnEvent::Done(_));
            frames.push(Frame::Event(event));
            if self.ended {
                break;
            }
        }
        frames
    }

    /// The log is silent: perhaps the turn has ended without telling it.
    async fn as_stored(&mut self) -> Result<Vec<Frame>, FollowError> {
        let turn = self.row().await?;
        if !turn.status.is_terminal() {
            return Ok(Vec::new());
        }
        // The end may have been published since the log was read.
        match self
            .events
            .read(self.turn, self.cursor, BATCH, Duration::ZERO)
            .await
        {
            Ok(LogRead::Events(events)) => Ok(self.take(events)),
            _ => Ok(self.ending(&turn)),
        }
    }

    /// The log is gone, or does not know the cursor.
    async fn without_log(&mut self) -> Result<Vec<Frame>, FollowError> {
        let turn = self.row().await?;
        if turn.status.is_terminal() {
            return Ok(self.ending(&turn));
        }
        if !self.placed
            && let Some((seq, text)) = self.shown_so_far().await
        {
            // It was opened, or has come up to the cursor, since it was read.
            if seq >= self.cursor {
                self.placed = true;
                return Ok(Vec::new());
            }
            // What was never reserved nobody was told. Anything else was told by a replica that is ahead of what has come here: a snapshot of
            // less would take back what the follower knows, so it waits until that comes, or the end.
            if self.cursor > turn.events_reserved {
                self.placed = true;
                self.cursor = seq;
                return Ok(vec![Frame::Snapshot {
                    seq,
                    text,
                    status: turn.status,
                }]);
            }
        }
        let patience = self.patience();
        self.events.changed(self.turn, patience).await;
        Ok(Vec::new())
    }

    /// What the log holds of the answer, for a cursor that it does not know.
    async fn shown_so_far(&self) -> Option<(i64, String)> {
        let (mut seq, mut text) = (0, String::new());
        while let Ok(LogRead::Events(events)) = self
            .events
            .read(self.turn, seq, BATCH, Duration::ZERO)
            .await
        {
            for event in events {
                match event.event {
                    TurnEvent::Message { token } => text.push_str(&token),
                    TurnEvent::Reset { .. } => text.clear(),
                    TurnEvent::Done(_) => return (seq > 0).then_some((seq, text)),
                    _ => {}
                }
                seq = event.seq;
            }
        }
        (seq > 0).then_some((seq, text))
    }

    /// The end from the stored row: a snapshot where events are missing, then the terminal event.
    fn ending(&mut self, turn: &Turn) -> Vec<Frame> {
        let (Some(end), Some(terminal)) = (turn.terminal_seq, Terminal::of(turn)) else {
            return Vec::new();
        };
        let mut frames = Vec::with_capacity(2);
        if self.cursor < end - 1 {
            frames.push(Frame::Snapshot {
                seq: end - 1,
                text: terminal.text.clone(),
                status: turn.status,
            });
        }
        if self.cursor < end {
            frames.push(Frame::Event(LoggedEvent {
                seq: end,
                event: TurnEvent::Done(terminal),
            }));
        }
        self.cursor = end;
        self.ended = true;
        frames
    }

    async fn row(&self) -> Result<Turn, FollowError> {
        self.turns
            .turn(self.owner, self.turn)
            .await?
            .ok_or(FollowError::NotFound)
    }
}
