//! A chat over an SQLite store of its own.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidemark_application::chat::accept::Inbound;
use tidemark_application::chat::service::{Chat, ChatParts};
use tidemark_application::learning::worker::Workers;
use tidemark_application::memory::recall::Recall;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::model::ChatModel;
use tidemark_application::ports::store::Store;
use tidemark_application::settings::{
    LearningSettings, PromptSettings, RecallSettings, TurnSettings,
};
use tidemark_application::tools::Toolbox;
use tidemark_domain::ids::{Owner, SessionId, TenantId, UserName};
use tidemark_domain::turn::{Turn, TurnOptions};
use tidemark_domain::window::EstimateCounter;
use tidemark_infrastructure::events::memory::{MemoryEventLog, MemoryEventLogOptions};
use tidemark_infrastructure::store::sqlite::{SqliteOptions, SqliteStore};
use tidemark_infrastructure::system::{SystemClock, UuidV7};
use tokio::sync::Notify;

/// Longer than a test: what waits for a lease to lapse fails it.
const LEASE: Duration = Duration::from_mins(10);

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) owner: Owner,
    pub(crate) chat: Chat,
    work: Arc<Notify>,
    _directory: TempDir,
}

impl World {
    pub(crate) async fn with(model: Arc<dyn ChatModel>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("tidemark.db"));
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(options).await.unwrap());
        let owner = store
            .resolve_owner(TenantId::DEFAULT, &UserName::default_user())
            .await
            .unwrap();
        let work = Arc::new(Notify::new());
        let chat = Chat::new(ChatParts {
            store: Arc::clone(&store),
            events: MemoryEventLog::start(MemoryEventLogOptions::default()),
            model,
            recall: Arc::new(Recall::new(
                Arc::clone(&store),
                Arc::new(SystemClock),
                Arc::new(EstimateCounter),
                RecallSettings::default(),
            )),
            tools: Toolbox::default(),
            ids: Arc::new(UuidV7::default()),
            clock: Arc::new(SystemClock),
            work: Arc::clone(&work),
            settings: TurnSettings {
                lease: LEASE,
                ..TurnSettings::default()
            },
            prompts: PromptSettings::default(),
            learning_threshold: 4,
        });
        Self {
            store,
            owner,
            chat,
            work,
            _directory: directory,
        }
    }

    /// Says something and waits for the end.
    pub(crate) async fn say(&self, session: Option<SessionId>, message: &str) -> Turn {
        let accepted = self
            .chat
            .accept(Inbound {
                key: None,
                only_known: false,
                owner: self.owner,
                session,
                channel: "test".to_owned(),
                message: message.to_owned(),
                memory: None,
                options: TurnOptions::default(),
                reject_if_busy: false,
                replaces: None,
                idempotency: None,
            })
            .await
            .unwrap();
        self.chat
            .wait(self.owner, accepted.turn.id, Duration::from_secs(20))
            .await
            .unwrap()
    }

    /// Workers that make ids so; they run only when they are stepped.
    pub(crate) fn workers(&self, ids: Arc<dyn Ids>, max_attempts: i32) -> Workers {
        Workers {
            store: Arc::clone(&self.store),
            ids,
            clock: Arc::new(SystemClock),
            unindexed: Arc::default(),
            work: Arc::clone(&self.work),
            embedder: None,
            extractor: None,
            settings: LearningSettings {
                threshold: 4,
                max_attempts,
                ..LearningSettings::default()
            },
        }
    }
}
