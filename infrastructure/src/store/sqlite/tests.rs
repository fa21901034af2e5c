#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use sqlx::Executor;
use tempfile::TempDir;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::jobs::{JobKind, JobRepository, NewJob};
use tidemark_application::ports::keys::KeyRepository;
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_application::ports::sessions::{NewSession, SessionRepository};
use tidemark_application::ports::store::{Store, StoreError};
use tidemark_application::ports::turns::{
    AcceptTurn, CloseTurn, Closer, CommitTurn, NewMessage, SharedLimits, Started, TokenLimits,
    TurnRepository, TurnSession, TurnWriteError,
};
use tidemark_domain::ids::{Owner, SessionId, TenantId, Timestamp, UserName};
use tidemark_domain::session::{MemoryMode, Role};
use tidemark_domain::turn::{
    FinishReason, TurnOptions, TurnStatus, Usage, terminal_seq_after_loss,
};

use super::*;
use crate::system::UuidV7;

mod erasure;
mod learned;
mod load;
mod opening;
mod plans;
mod writer;

const LEASE: Duration = Duration::from_secs(30);
const EVENT_BLOCK: i64 = 64;

/// A store in a directory of its own, and new identifiers.
struct Fixture {
    directory: TempDir,
    store: SqliteStore,
    ids: Box<dyn Ids>,
    owner: Owner,
    now: Timestamp,
}

fn path(directory: &Path) -> std::path::PathBuf {
    directory.join("tidemark.db")
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(SqliteOptions::new(path(directory.path())))
            .await
            .unwrap();
        let owner = store
            .resolve_owner(TenantId::DEFAULT, &UserName::default_user())
            .await
            .unwrap();
        Self {
            directory,
            store,
            ids: Box::new(UuidV7::default()),
            owner,
            now: DateTime::from_timestamp_micros(1_800_000_000_000_000).unwrap(),
        }
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        self.store = SqliteStore::open(SqliteOptions::new(path(self.directory.path())))
            .await
            .unwrap();
    }

    async fn session(&self) -> SessionId {
        let session = NewSession {
            id: self.ids.session(),
            title: None,
            labels: Vec::new(),
            channel: "api".to_owned(),
            memory: MemoryMode::On,
            now: self.now,
        };
        let created = self.store.create_session(self.owner, session, None).await;
        created.unwrap().value.id
    }

    fn turn(&self, session: SessionId) -> AcceptTurn {
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
            max_queued: 10,
            max_open_per_owner: 1_000,
            key: None,
            max_open_shared: SharedLimits::default(),
            max_tokens: TokenLimits::default(),
            idempotency: None,
            start: None,
            now: self.now,
        }
    }

    async fn started(&self, session: SessionId) -> Started {
        self.store.accept_turn(self.turn(session)).await.unwrap();
        self.start(session).await.unwrap()
    }

    async fn start(&self, session: SessionId) -> Option<Started> {
        let message = self.ids.message();
        self.store
            .start_turn(self.owner, session, message, LEASE, EVENT_BLOCK, self.now)
            .await
            .unwrap()
    }

    fn commit(&self) -> CommitTurn {
        CommitTurn {
            answer: NewMessage {
                id: self.ids.message(),
                role: Role::Assistant,
                content: "It is 400k.".to_owned(),
                tool_calls: Vec::new(),
                tool_call_id: None,
                partial: false,
                learnable: true,
            },
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            recalled: Vec::new(),
            counts_tokens: true,
            events_used: 3,
            jobs: vec![NewJob {
                id: self.ids.job(),
                kind: JobKind::Index,
            }],
            now: self.now,
        }
    }

    fn interrupted(&self, last_seq: i64) -> CloseTurn {
        CloseTurn {
            closer: Closer::LeaseLapsed { last_seq },
            status: TurnStatus::Interrupted,
            problem: None,
            messages: Vec::new(),
            text: None,
            usage: None,
            recalled: Vec::new(),
            counts_tokens: true,
            jobs: Vec::new(),
            now: self.now,
        }
    }
}

fn all_statements() -> Vec<&'static str> {
    [
        edits::STATEMENTS,
        history::STATEMENTS,
        extraction::STATEMENTS,
        fading::STATEMENTS,
        idempotency::STATEMENTS,
        jobs::STATEMENTS,
        keys::STATEMENTS,
        learning::STATEMENTS,
        changes::STATEMENTS,
        embeddings::STATEMENTS,
        messages::STATEMENTS,
        owners::STATEMENTS,
        recalled::STATEMENTS,
        schema::STATEMENTS,
        sessions::STATEMENTS,
        &memories::all_statements(),
        &turns::all_statements(),
        &users::all_statements(),
    ]
    .concat()
}

#[tokio::test]
async fn every_statement_is_accepted_by_the_migrated_schema() {
    let fixture = Fixture::new().await;
    for sql in all_statements() {
        let prepared = fixture
            .store
            .readers
            .prepare(sqlx::SqlStr::from_static(sql))
            .await;
        assert!(prepared.is_ok(), "{sql}\n{}", prepared.unwrap_err());
    }
}

#[test]
fn the_store_can_be_plugged_in_as_a_whole() {
    fn plugged<T: Store>() {}
    plugged::<SqliteStore>();
}
