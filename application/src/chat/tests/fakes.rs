//! Stand-ins that write down what happens to them, in one list.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use tidemark_domain::event::TurnEvent;
use tidemark_domain::ids::{MessageId, Owner, OwnerId, SessionId, TenantId, Timestamp, TurnId};
use tidemark_domain::session::{MemoryMode, Message, Role};
use tidemark_domain::tool::{Effect, TimeoutClass, ToolPolicy, ToolSpec};
use tidemark_domain::turn::{Turn, TurnOptions, TurnStatus, terminal_seq_after};
use tidemark_domain::window::{EstimateCounter, TokenCounter};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::ports::clock::Clock;
use crate::ports::events::{EventLog, EventLogError, LogRead, LoggedEvent};
use crate::ports::ids::Ids;
use crate::ports::model::{ChatModel, ModelError, ModelEvent, ModelRequest, ModelStream};
use crate::ports::store::{StoreError, StoreResult};
use crate::ports::tools::{Tool, ToolContext, ToolError};
use crate::ports::turns::{
    AcceptError, AcceptTurn, Accepted, CancelOutcome, CloseTurn, CommitTurn, NewMessage, Renewed,
    Started, TurnKey, TurnRepository, TurnWriteError,
};

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(super) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(super) fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

pub(super) fn key() -> TurnKey {
    TurnKey {
        owner: Owner {
            tenant: TenantId::DEFAULT,
            id: OwnerId(1),
        },
        session_id: SessionId(Uuid::from_u128(1)),
        turn_id: TurnId(Uuid::from_u128(2)),
        fence: 1,
    }
}

pub(super) fn tool_context() -> ToolContext {
    let key = key();
    ToolContext {
        owner: key.owner,
        session_id: key.session_id,
        turn_id: key.turn_id,
        memory: MemoryMode::On,
    }
}

pub(super) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_timestamp_micros(1_700_000_000_000_000).unwrap()
    }
}

#[derive(Default)]
pub(super) struct CountingIds(Mutex<u128>);

impl Ids for CountingIds {
    fn uuid(&self) -> Uuid {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        Uuid::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0000 + *last)
    }
}

/// How the next commit goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommitFate {
    Done,
    /// It happened, but the connection broke before it was told.
    DoneUntold,
    /// It did not happen.
    Unavailable,
    Fenced,
    Broken,
}

/// A store of one turn.
pub(super) struct FakeTurns {
    pub(super) diary: Diary,
    pub(super) fates: Mutex<VecDeque<CommitFate>>,
    pub(super) committed: Mutex<Option<CommitTurn>>,
    pub(super) row: Mutex<Turn>,
    pub(super) work: Arc<Notify>,
    /// What the stored row says in place of the text that was given, to tell whether the terminal event is rendered from the row.
    pub(super) stored_text: Option<String>,
}

impl FakeTurns {
    pub(super) fn new(diary: &Diary) -> Self {
        let key = key();
        Self {
            diary: diary.clone(),
            fates: Mutex::default(),
            committed: Mutex::default(),
            work: Arc::default(),
            stored_text: None,
            row: Mutex::new(Turn {
                id: key.turn_id,
                session_id: key.session_id,
                status: TurnStatus::Running,
                input: "hello".to_owned(),
                memory: MemoryMode::On,
                options: TurnOptions::default(),
                fence: key.fence,
                events_reserved: 4,
                terminal_seq: None,
                text: None,
                message_id: None,
                finish_reason: None,
                usage: None,
                recalled: Vec::new(),
                problem: None,
                cancel_requested: false,
                created_at: FixedClock.now(),
                started_at: None,
                ended_at: None,
            }),
        }
    }

    fn apply(&self, commit: &CommitTurn) -> Turn {
        let mut row = self.row.lock().unwrap();
        row.status = TurnStatus::Completed;
        row.terminal_seq = Some(terminal_seq_after(commit.events_used));
        row.text = Some(
            self.stored_text
                .clone()
                .unwrap_or_else(|| commit.answer.content.clone()),
        );
        row.message_id = Some(commit.answer.id);
        row.clone()
    }
}

fn broken() -> Box<dyn std::error::Error + Send + Sync> {
    "the connection broke".into()
}

#[async_trait]
impl TurnRepository for FakeTurns {
    async fn accept_turn(&self, _: AcceptTurn) -> Result<Accepted, AcceptError> {
        panic!("no stage accepts a turn")
    }

    async fn start_turn(
        &self,
        _: Owner,
        _: SessionId,
        _: MessageId,
        _: Duration,
        _: i64,
        _: Timestamp,
    ) -> StoreResult<Option<Started>> {
        panic!("no stage starts a turn")
    }

    async fn renew_turn(&self, _: TurnKey, _: Duration) -> Result<Renewed, TurnWriteError> {
        panic!("no stage renews a lease")
    }

    async fn reserve_events(&self, _: TurnKey, up_to: i64) -> Result<(), TurnWriteError> {
        self.diary.note(format!("reserve up to {up_to}"));
        Ok(())
    }

    async fn append_step(
        &self,
        _: TurnKey,
        messages: Vec<NewMessage>,
        now: Timestamp,
    ) -> Result<Vec<Message>, TurnWriteError> {
        let mut stored = Vec::new();
        for message in messages {
            let what = match message.role {
                Role::Tool => format!(
                    "store result of {}",
                    message.tool_call_id.as_deref().unwrap()
                ),
                _ => format!("store {} calls", message.tool_calls.len()),
            };
            self.diary.note(what);
            stored.push(Message {
                id: message.id,
                session_id: key().session_id,
                turn_id: Some(key().turn_id),
                seq: 0,
                role: message.role,
                content: message.content,
                name: None,
                tool_calls: message.tool_calls,
                tool_call_id: message.tool_call_id,
                partial: message.partial,
                learnable: message.learnable,
                created_at: now,
            });
        }
        Ok(stored)
    }

    async fn commit_turn(&self, _: TurnKey, commit: CommitTurn) -> Result<Turn, TurnWriteError> {
        let woken = tokio::time::timeout(Duration::ZERO, self.work.notified())
            .await
            .is_ok();
        if woken {
            self.diary.note("workers were woken before the commit");
        }
        let fate = self
            .fates
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or(CommitFate::Done);
        let jobs: Vec<_> = commit.jobs.iter().map(|j| j.kind.as_str()).collect();
        self.diary
            .note(format!("commit with jobs [{}]", jobs.join(", ")));
        let outcome = match fate {
            CommitFate::Done => Ok(self.apply(&commit)),
            CommitFate::DoneUntold => {
                self.apply(&commit);
                Err(StoreError::OutcomeUnknown(broken()).into())
            }
            CommitFate::Unavailable => Err(StoreError::Unavailable(broken()).into()),
            CommitFate::Fenced => Err(TurnWriteError::Fenced),
            CommitFate::Broken => Err(StoreError::Corrupt {
                what: "turns".to_owned(),
                source: None,
            }
            .into()),
        };
        *self.committed.lock().unwrap() = Some(commit);
        outcome
    }

    async fn close_turn(&self, _: TurnKey, _: CloseTurn) -> Result<Turn, TurnWriteError> {
        panic!("no stage closes a turn")
    }

    async fn turn(&self, _: Owner, _: TurnId) -> StoreResult<Option<Turn>> {
        self.diary.note("read the turn");
        Ok(Some(self.row.lock().unwrap().clone()))
    }

    async fn request_cancel(
        &self,
        _: Owner,
        _: TurnId,
        _: Timestamp,
    ) -> StoreResult<CancelOutcome> {
        panic!("no stage cancels a turn")
    }

    async fn open_turns(&self, _: Owner, _: Option<SessionId>) -> StoreResult<Vec<TurnId>> {
        panic!("no stage looks for open turns")
    }

    async fn lapsed_turns(&self, _: u32) -> StoreResult<Vec<TurnKey>> {
        panic!("no stage looks for lapsed turns")
    }

    async fn waiting_sessions(&self, _: u32) -> StoreResult<Vec<(Owner, SessionId)>> {
        panic!("no stage looks for waiting sessions")
    }
}

/// A log that keeps what it is told.
#[derive(Default)]
pub(super) struct FakeLog {
    pub(super) diary: Diary,
    pub(super) events: Mutex<Vec<LoggedEvent>>,
    pub(super) down: bool,
    /// The workers' bell, to tell whether it rang before the end was told; rung again after a look.
    pub(super) work: Option<Arc<Notify>>,
}

impl FakeLog {
    pub(super) fn new(diary: &Diary) -> Self {
        Self {
            diary: diary.clone(),
            ..Self::default()
        }
    }

    /// What a client that concatenates shows in the end.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for logged in self.events.lock().unwrap().iter() {
            match &logged.event {
                TurnEvent::Message { token } => text.push_str(token),
                TurnEvent::Reset { .. } => text.clear(),
                _ => {}
            }
        }
        text
    }
}

#[async_trait]
impl EventLog for FakeLog {
    async fn open(&self, _: TurnId, _: TurnEvent) -> Result<(), EventLogError> {
        Ok(())
    }

    async fn append(
        &self,
        _: TurnId,
        _: i64,
        events: Vec<LoggedEvent>,
    ) -> Result<(), EventLogError> {
        if self.down {
            return Err(EventLogError(broken()));
        }
        for logged in events {
            if let (Some(work), TurnEvent::Done(_)) = (&self.work, &logged.event) {
                let rung = tokio::time::timeout(Duration::ZERO, work.notified()).await;
                if rung.is_ok() {
                    self.diary.note("workers are awake");
                    work.notify_one();
                }
            }
            let what = match &logged.event {
                TurnEvent::Done(end) => format!("publish done {}: {}", logged.seq, end.text),
                TurnEvent::Tool { state, .. } => format!("publish tool {state:?}"),
                TurnEvent::Reset { .. } => "publish reset".to_owned(),
                _ => format!("publish {}", logged.seq),
            };
            self.diary.note(what);
            self.events.lock().unwrap().push(logged);
        }
        Ok(())
    }

    async fn read(
        &self,
        _: TurnId,
        _: i64,
        _: usize,
        _: Duration,
    ) -> Result<LogRead, EventLogError> {
        Ok(LogRead::Unknown)
    }

    async fn changed(&self, _: TurnId, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    async fn resign(&self, _: TurnId) {
        panic!("no stage resigns")
    }

    async fn forget(&self, _: &[TurnId]) -> bool {
        panic!("no stage forgets a log")
    }

    async fn tell_reasoning(&self, _: TurnId, token: &str) {
        self.diary.note(format!("reasoning {token}"));
    }

    async fn reasoning(&self, _: TurnId) -> BoxStream<'static, String> {
        futures::stream::empty().boxed()
    }
}

/// A model that says what it was given, one answer a call.
pub(super) struct FakeModel {
    pub(super) diary: Diary,
    pub(super) answers: Mutex<VecDeque<Vec<Result<ModelEvent, ModelError>>>>,
    pub(super) requests: Mutex<Vec<ModelRequest>>,
    counter: EstimateCounter,
}

impl FakeModel {
    pub(super) fn new(diary: &Diary, answers: Vec<Vec<Result<ModelEvent, ModelError>>>) -> Self {
        Self {
            diary: diary.clone(),
            answers: Mutex::new(answers.into()),
            requests: Mutex::default(),
            counter: EstimateCounter,
        }
    }
}

#[async_trait]
impl ChatModel for FakeModel {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn teaches(&self) -> bool {
        true
    }

    fn counter(&self) -> &dyn TokenCounter {
        &self.counter
    }

    async fn answer(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.diary.note("ask the model");
        self.requests.lock().unwrap().push(request);
        let answer = self
            .answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("no more answers were scripted");
        Ok(futures::stream::iter(answer).boxed())
    }
}

/// A tool that answers with its arguments.
pub(super) struct EchoTool(pub(super) Diary);

#[async_trait]
impl Tool for EchoTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "echo".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object" }),
            policy: ToolPolicy {
                timeout: TimeoutClass::File,
                effect: Effect::Read,
            },
        }
    }

    fn allowed(&self, _: &ToolContext) -> bool {
        true
    }

    async fn call(&self, _: &ToolContext, arguments: &str) -> Result<String, ToolError> {
        self.0.note("call the tool");
        Ok(arguments.to_owned())
    }
}
