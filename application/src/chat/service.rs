//! The chat use case: accepts turns and runs them in tasks of their own, one at a time a session, in order.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::gauge;
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::{Owner, SessionId, TurnId};
use tidemark_domain::turn::TurnStatus;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::context::EarlyRead;
use super::runner;
use super::stop::{self, StopReason, Stopper};
use crate::memory::recall::Recall;
use crate::ports::clock::Clock;
use crate::ports::events::EventLog;
use crate::ports::ids::Ids;
use crate::ports::model::ChatModel;
use crate::ports::store::{Store, StoreError};
use crate::ports::trace::{NoTraces, Traces};
use crate::ports::turns::{AcceptError, AcceptTurn, Accepted, Started, TurnSession};
use crate::settings::{PromptSettings, TurnSettings};
use crate::tools::Toolbox;

/// Of how many turns of a session it is remembered from which trace they came. More than may wait; what is over are turns that ran elsewhere.
const MAX_CALLERS: usize = 64;

/// What chat is made of.
pub struct ChatParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The live log.
    pub events: Arc<dyn EventLog>,
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Recall.
    pub recall: Arc<Recall>,
    /// The tools.
    pub tools: Toolbox,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Wakes the workers of derived work.
    pub work: Arc<Notify>,
    /// How turns run.
    pub settings: TurnSettings,
    /// What the model is told.
    pub prompts: PromptSettings,
    /// How many new messages make a session due (A12).
    pub learning_threshold: i64,
}

impl std::fmt::Debug for ChatParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatParts").finish_non_exhaustive()
    }
}

/// A session that has a runner here.
#[derive(Debug, Default)]
struct Lane {
    /// Something was accepted since the runner last looked.
    again: bool,
    /// The turn that runs, and how to stop it.
    running: Option<(TurnId, Stopper)>,
    /// A turn whose cancellation came while it was being started.
    cancelled: Option<TurnId>,
    /// The traces that waiting turns were accepted from.
    callers: BTreeMap<TurnId, String>,
}

impl Lane {
    fn remember(&mut self, turn: TurnId, traceparent: String) {
        self.callers.insert(turn, traceparent);
        if self.callers.len() > MAX_CALLERS {
            self.callers.pop_first();
        }
    }
}

/// A session's lane that was taken for a turn which is about to be accepted, and the right to run it.
pub(super) struct TakenLane {
    owner: Owner,
    session: SessionId,
    permit: OwnedSemaphorePermit,
}

/// Chat. Cheap to clone.
#[derive(Clone)]
pub struct Chat {
    pub(super) parts: Arc<ChatParts>,
    lanes: Arc<Mutex<HashMap<(Owner, SessionId), Lane>>>,
    running: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: Arc<AtomicBool>,
    traces: Arc<dyn Traces>,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").finish_non_exhaustive()
    }
}

impl Chat {
    /// Of these parts.
    pub fn new(parts: ChatParts) -> Self {
        let running = Arc::new(Semaphore::new(parts.settings.max_running));
        Self {
            parts: Arc::new(parts),
            lanes: Arc::default(),
            running,
            tasks: TaskTracker::new(),
            closing: Arc::default(),
            traces: Arc::new(NoTraces),
        }
    }

    /// Lets turns continue the traces of the requests they were accepted from.
    #[must_use]
    pub fn with_traces(mut self, traces: Arc<dyn Traces>) -> Self {
        self.traces = traces;
        self
    }

    /// Whether the server is going down: nothing new is accepted or started.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Names of the tools that a model may call here.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.parts.tools.names()
    }

    /// Whether as many sessions have open turns here as may have.
    pub(super) fn is_full(&self) -> bool {
        self.lanes().len() >= self.parts.settings.max_open
    }

    /// Sees to it that the session's queued turns are run. Called after each acceptance; harmless at any other time.
    pub fn kick(&self, owner: Owner, session: SessionId) {
        self.kick_with(owner, session, None);
    }

    /// The same for a turn that was accepted within a trace.
    pub(super) fn kick_for(&self, owner: Owner, session: SessionId, turn: TurnId) {
        let caller = self.traces.current().map(|parent| (turn, parent));
        self.kick_with(owner, session, caller);
    }

    /// A turn is about to be accepted: a runner of the session may start it before [`Self::kick_for`] is called.
    pub(super) fn expect(&self, owner: Owner, session: SessionId, turn: TurnId) {
        let Some(parent) = self.traces.current() else {
            return;
        };
        if let Some(lane) = self.lanes().get_mut(&(owner, session)) {
            lane.remember(turn, parent);
        }
    }

    fn kick_with(&self, owner: Owner, session: SessionId, caller: Option<(TurnId, String)>) {
        if self.is_closing() {
            return;
        }
        match self.lanes().entry((owner, session)) {
            Entry::Occupied(mut lane) => {
                lane.get_mut().again = true;
                if let Some((turn, parent)) = caller {
                    lane.get_mut().remember(turn, parent);
                }
            }
            Entry::Vacant(place) => {
                let lane = place.insert(Lane::default());
                if let Some((turn, parent)) = caller {
                    lane.remember(turn, parent);
                }
                let chat = self.clone();
                self.tasks.spawn(async move {
                    chat.run_lane(owner, session).await;
                });
            }
        }
    }

    /// Takes the session's lane and the right to run a turn, for a turn that is about to be accepted. None if it is in use, or as many turns
    /// run as may: then the turn is to wait for its start.
    pub(super) fn take_lane(&self, owner: Owner, session: SessionId) -> Option<TakenLane> {
        if self.is_closing() {
            return None;
        }
        let permit = Arc::clone(&self.running).try_acquire_owned().ok()?;
        let mut lanes = self.lanes();
        let Entry::Vacant(place) = lanes.entry((owner, session)) else {
            return None;
        };
        place.insert(Lane::default());
        Some(TakenLane {
            owner,
            session,
            permit,
        })
    }

    /// Accepts a turn and, unless it has to wait, runs it, in a task of its own. The outcome of the acceptance.
    pub(super) async fn accept_and_run(
        &self,
        lane: TakenLane,
        turn: AcceptTurn,
    ) -> Result<Accepted, AcceptError> {
        let (told, outcome) = oneshot::channel();
        let (chat, caller) = (self.clone(), self.traces.current());
        let span = tracing::Span::current();
        self.tasks.spawn(async move {
            let TakenLane {
                owner,
                session,
                permit,
            } = lane;
            let early = span.in_scope(|| chat.read_early(&turn));
            let accept = chat.parts.store.accept_turn(turn);
            let mut accepted = accept.instrument(span).await;
            let (mut started, mut queued) = (None, None);
            if let Ok(accepted) = &mut accepted {
                started = accepted.started.take();
                let turn = &accepted.turn;
                queued = (turn.status == TurnStatus::Queued).then_some((turn.session_id, turn.id));
                chat.open_log(accepted).await;
            }
            // The caller may have gone.
            let _ = told.send(accepted);
            if let Some(started) = started {
                let may_wait = chat.run_started((*started, early), caller).await;
                drop(permit);
                if may_wait || !chat.leave_idle(owner, session) {
                    chat.run_lane(owner, session).await;
                }
                return;
            }
            drop(permit);
            chat.leave_lane(owner, session);
            if let Some((session, turn)) = queued {
                let caller = caller.map(|parent| (turn, parent));
                chat.kick_with(owner, session, caller);
            }
        });
        outcome
            .await
            .unwrap_or_else(|error| Err(StoreError::OutcomeUnknown(Box::new(error)).into()))
    }

    /// Begins to read what the turn will need of memory, if it is its session's first: that is not in the way of its acceptance.
    fn read_early(&self, turn: &AcceptTurn) -> Option<EarlyRead> {
        let TurnSession::New(session) = &turn.session else {
            return None;
        };
        let memory = turn.memory.unwrap_or(session.memory);
        let (store, recall) = (&self.parts.store, &self.parts.recall);
        (memory.recalls()).then(|| EarlyRead::begin(store, recall, turn.owner, session.id))
    }

    /// Gives back a lane in which nothing waits, unless something was accepted since its runner last looked.
    fn leave_idle(&self, owner: Owner, session: SessionId) -> bool {
        let mut lanes = self.lanes();
        if let Entry::Occupied(mut lane) = lanes.entry((owner, session))
            && !std::mem::take(&mut lane.get_mut().again)
        {
            lane.remove();
            return true;
        }
        false
    }

    /// Gives back a lane in which nothing was started.
    fn leave_lane(&self, owner: Owner, session: SessionId) {
        let lane = self.lanes().remove(&(owner, session));
        if lane.is_some_and(|lane| lane.again) {
            self.kick(owner, session);
        }
    }

    /// Runs the session's turns one after the other, until there is none.
    async fn run_lane(&self, owner: Owner, session: SessionId) {
        loop {
            let Ok(_permit) = self.running.acquire().await else {
                break;
            };
            if self.is_closing() {
                break;
            }
            match self.run_next(owner, session).await {
                Next::Ran { may_wait: true } => {}
                Next::Ran { may_wait: false } | Next::Nothing => {
                    if self.leave_idle(owner, session) {
                        return;
                    }
                }
                Next::Failed => break,
            }
        }
        // What is left waits for the next look at waiting sessions.
        self.lanes().remove(&(owner, session));
    }

    async fn run_next(&self, owner: Owner, session: SessionId) -> Next {
        let parts = &self.parts;
        let started = parts
            .store
            .start_turn(
                owner,
                session,
                parts.ids.message(),
                parts.settings.lease,
                parts.settings.event_block,
                parts.clock.now(),
            )
            .await;
        let started = match started {
            Ok(Some(started)) => started,
            Ok(None) => return Next::Nothing,
            Err(error) => {
                tracing::warn!(%error, %session, "the next turn could not be started yet");
                return Next::Failed;
            }
        };
        // A turn that another process accepted has no log here yet.
        let start = TurnEvent::Start {
            session_id: session,
            queued: false,
        };
        self.open_with(started.key.turn_id, start).await;
        let may_wait = self.run_started((started, None), None).await;
        Next::Ran { may_wait }
    }

    /// Opens the live log of a turn that was accepted here. That of a turn which runs already was opened when it was.
    pub(super) async fn open_log(&self, accepted: &Accepted) {
        let turn = &accepted.turn;
        if turn.status == TurnStatus::Queued || !accepted.replayed {
            let start = TurnEvent::Start {
                session_id: turn.session_id,
                queued: accepted.waits,
            };
            self.open_with(turn.id, start).await;
        }
    }

    async fn open_with(&self, turn: TurnId, start: TurnEvent) {
        if let Err(error) = self.parts.events.open(turn, start).await {
            tracing::warn!(%error, "the live log is down; followers will read the stored turn");
        }
    }

    /// Runs a turn that was started here, to its end, in a task of its own. Whether another one of the session may wait.
    async fn run_started(
        &self,
        (started, early): (Started, Option<EarlyRead>),
        caller: Option<String>,
    ) -> bool {
        let parts = &self.parts;
        let (owner, session) = (started.key.owner, started.key.session_id);
        let (stopper, signal) = stop::channel();
        let mut caller = caller;
        if let Some(lane) = self.lanes().get_mut(&(owner, session)) {
            let remembered = lane.callers.remove(&started.key.turn_id);
            caller = caller.or(remembered);
            lane.running = Some((started.key.turn_id, stopper.clone()));
            if lane.cancelled.take() == Some(started.key.turn_id) {
                stopper.stop(StopReason::Cancelled);
            }
        }
        if started.turn.cancel_requested {
            stopper.stop(StopReason::Cancelled);
        }
        gauge!("tidemark_turns_running").increment(1);
        let (parts, traces) = (Arc::clone(parts), Arc::clone(&self.traces));
        let continue_trace = move |span: &tracing::Span| {
            if let Some(parent) = caller {
                traces.adopt(span, &parent);
            }
        };
        let (key, runner_parts) = (started.key, Arc::clone(&parts));
        let run = tokio::spawn(async move {
            runner::run(
                &runner_parts,
                (started, early),
                stopper,
                signal,
                continue_trace,
            )
            .await
        });
        let run = run.await;
        if let Err(error) = &run {
            tracing::error!(%error, %session, "a turn's task died");
            if let Err(error) = runner::close_dead(&parts, key).await {
                tracing::warn!(%error, "the turn could not be closed here; it is closed when its lease has lapsed");
            }
        }
        gauge!("tidemark_turns_running").decrement(1);
        if let Some(lane) = self.lanes().get_mut(&(owner, session)) {
            lane.running = None;
        }
        run.unwrap_or(true)
    }

    /// Cancels a turn if it runs here, or is just being started. Whether it is known to run here.
    pub(super) fn cancel_local(&self, owner: Owner, session: SessionId, turn: TurnId) -> bool {
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(&(owner, session)) else {
            return false;
        };
        match &lane.running {
            Some((id, stopper)) if *id == turn => {
                stopper.stop(StopReason::Cancelled);
                true
            }
            _ => {
                lane.cancelled = Some(turn);
                false
            }
        }
    }

    /// Lets a turn look at its row now, if it runs here.
    pub(super) fn look_again(&self, turn: TurnId) {
        let lanes = self.lanes();
        let running = lanes.values().filter_map(|lane| lane.running.as_ref());
        for (_, stopper) in running.filter(|(id, _)| *id == turn) {
            stopper.look();
        }
    }

    /// Goes down: accepts and starts nothing more, lets running turns finish for `grace`, then closes them as interrupted.
    pub async fn shut_down(&self, grace: Duration, last: Duration) {
        self.closing.store(true, Ordering::Release);
        self.running.close();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_ok() {
            return;
        }
        for lane in self.lanes().values() {
            if let Some((_, stopper)) = &lane.running {
                stopper.stop(StopReason::Shutdown);
            }
        }
        if tokio::time::timeout(last, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                "some turns could not be closed in time; they are closed at the next start"
            );
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<(Owner, SessionId), Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Next {
    Ran { may_wait: bool },
    Nothing,
    Failed,
}
