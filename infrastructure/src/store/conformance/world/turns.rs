//! Turns.

use std::time::Duration;

use tidemark_application::ports::turns::{
    AcceptTurn, CloseTurn, Closer, CommitTurn, NewMessage, SharedLimits, Started, TokenLimits,
    TurnSession,
};
use tidemark_domain::ids::SessionId;
use tidemark_domain::session::Role;
use tidemark_domain::tool::ToolCall;
use tidemark_domain::turn::{FinishReason, Turn, TurnOptions, TurnStatus, Usage};

use super::{EVENT_BLOCK, LONG, SHORT, World, lapse};

impl World {
    pub(in crate::store::conformance) fn turn(&self, session: SessionId) -> AcceptTurn {
        AcceptTurn {
            owner: self.owner,
            id: self.ids.turn(),
            session: TurnSession::Existing(session),
            input: "What is the budget?".to_owned(),
            memory: None,
            options: TurnOptions::default(),
            reject_if_busy: false,
            replaces: None,
            admit: true,
            max_queued: 100,
            max_open_per_owner: 1_000,
            key: None,
            max_open_shared: SharedLimits::default(),
            max_tokens: TokenLimits::default(),
            idempotency: None,
            start: None,
            now: self.now(),
        }
    }

    pub(in crate::store::conformance) async fn accepted(&self, session: SessionId) -> Turn {
        let turn = self.turn(session);
        self.store.accept_turn(turn).await.unwrap().turn
    }

    pub(in crate::store::conformance) async fn start(&self, session: SessionId) -> Option<Started> {
        self.start_for(session, LONG).await
    }

    pub(in crate::store::conformance) async fn start_for(
        &self,
        session: SessionId,
        lease: Duration,
    ) -> Option<Started> {
        let message = self.ids.message();
        self.store
            .start_turn(self.owner, session, message, lease, EVENT_BLOCK, self.now())
            .await
            .unwrap()
    }

    /// A turn that is accepted and runs.
    pub(in crate::store::conformance) async fn started(&self, session: SessionId) -> Started {
        self.accepted(session).await;
        self.start(session).await.unwrap()
    }

    /// A turn whose lease has lapsed.
    pub(in crate::store::conformance) async fn lapsed(&self, session: SessionId) -> Started {
        self.accepted(session).await;
        let started = self.start_for(session, SHORT).await.unwrap();
        lapse().await;
        started
    }

    /// A turn with its question and answer.
    pub(in crate::store::conformance) async fn completed(&self, session: SessionId) -> Turn {
        let started = self.started(session).await;
        let committed = self.store.commit_turn(started.key, self.commit()).await;
        committed.unwrap()
    }

    /// A turn that ended in this state, with a partial answer.
    pub(in crate::store::conformance) async fn ended(
        &self,
        session: SessionId,
        status: TurnStatus,
    ) -> Turn {
        let started = self.started(session).await;
        let close = self.close_with(status, vec![self.partial("It is")]);
        self.store.close_turn(started.key, close).await.unwrap()
    }

    pub(in crate::store::conformance) async fn turn_row(&self, turn: &Turn) -> Turn {
        self.store.turn(self.owner, turn.id).await.unwrap().unwrap()
    }

    fn message(&self, role: Role, content: &str) -> NewMessage {
        NewMessage {
            id: self.ids.message(),
            role,
            content: content.to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            partial: false,
            learnable: role == Role::Assistant,
        }
    }

    pub(in crate::store::conformance) fn answer(&self, content: &str) -> NewMessage {
        self.message(Role::Assistant, content)
    }

    pub(in crate::store::conformance) fn partial(&self, content: &str) -> NewMessage {
        NewMessage {
            partial: true,
            ..self.answer(content)
        }
    }

    /// An assistant message that calls a tool under each of these ids.
    pub(in crate::store::conformance) fn calling(&self, calls: &[&str]) -> NewMessage {
        let tool_calls = calls.iter().map(|id| ToolCall {
            id: (*id).to_owned(),
            name: "look_up".to_owned(),
            arguments: r#"{"query": "budget", "exact": 0.10}"#.to_owned(),
        });
        NewMessage {
            tool_calls: tool_calls.collect(),
            learnable: false,
            ..self.answer("")
        }
    }

    pub(in crate::store::conformance) fn result(&self, call: &str) -> NewMessage {
        NewMessage {
            tool_call_id: Some(call.to_owned()),
            ..self.message(Role::Tool, "400k")
        }
    }

    pub(in crate::store::conformance) fn commit(&self) -> CommitTurn {
        CommitTurn {
            answer: self.answer("It is 400k."),
            finish_reason: FinishReason::Stop,
            usage: Usage {
                prompt_tokens: 120,
                completion_tokens: 7,
                estimated: true,
            },
            recalled: Vec::new(),
            counts_tokens: false,
            events_used: 5,
            jobs: Vec::new(),
            now: self.now(),
        }
    }

    pub(in crate::store::conformance) fn close_with(
        &self,
        status: TurnStatus,
        messages: Vec<NewMessage>,
    ) -> CloseTurn {
        CloseTurn {
            closer: Closer::Runner { events_used: 3 },
            status,
            problem: None,
            messages,
            text: None,
            usage: None,
            recalled: Vec::new(),
            counts_tokens: false,
            jobs: Vec::new(),
            now: self.now(),
        }
    }

    /// What whoever finds a lapsed lease does, having seen the session up to this message.
    pub(in crate::store::conformance) fn interrupt(
        &self,
        last_seq: i64,
        messages: Vec<NewMessage>,
    ) -> CloseTurn {
        CloseTurn {
            closer: Closer::LeaseLapsed { last_seq },
            ..self.close_with(TurnStatus::Interrupted, messages)
        }
    }
}
