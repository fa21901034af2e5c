//! What the operations share, and the router that joins them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::routing::get;
use axum::{Router, middleware};
use metrics_exporter_prometheus::PrometheusHandle;
use tidemark_application::chat::service::Chat;
use tidemark_application::memory::edit::EditMemory;
use tidemark_application::memory::forget::Forget;
use tidemark_application::memory::recall::Recall;
use tidemark_application::memory::remember::Remember;
use tidemark_application::memory::revert::Revert;
use tidemark_application::memory::watched_embedder::Embedders;
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::events::EventLog;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::trace::Traces;
use tidemark_application::sessions::import::Import;
use tidemark_application::users::erase::Erase;
use tidemark_domain::ids::{Owner, TenantId, UserName};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;

use crate::auth::{self, Gate};
use crate::cors::Origins;
use crate::limits::RequestLimits;
use crate::problem::{Code, Problem};
use crate::{body, guard, hardening, headers, openapi, request_id};

/// How streams behave.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// How often a heartbeat comes.
    pub heartbeat: Duration,
    /// What a client is told to wait before it reconnects.
    pub retry: Duration,
    /// Every event is also written here, a line each (C9).
    pub event_log: Option<crate::event_log::EventLogFile>,
}

/// What the operations share.
pub struct Shared {
    /// Chat.
    pub chat: Chat,
    /// The live log.
    pub events: Arc<dyn EventLog>,
    /// Recall.
    pub recall: Arc<Recall>,
    /// Remembering.
    pub remember: Remember,
    /// Importing the past.
    pub import: Import,
    /// Forgetting.
    pub forget: Forget,
    /// Editing.
    pub edit: EditMemory,
    /// Undoing changes.
    pub revert: Revert,
    /// The embedders, where there are any.
    pub embedders: Embedders,
    /// Erasing users.
    pub erase: Erase,
    /// The store, for plain reads and lists.
    pub store: Arc<dyn Store>,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Wakes the workers.
    pub work: Arc<Notify>,
    /// Who may ask.
    pub gate: Gate,
    /// Whose pages may ask, beside the own ones.
    pub origins: Origins,
    /// This server itself adds TLS.
    pub tls: bool,
    /// How many requests each may make, where that is limited.
    pub requests: Option<RequestLimits>,
    /// Who is who.
    pub owners: Owners,
    /// Joins the caller's trace.
    pub traces: Arc<dyn Traces>,
    /// What `/metrics` prints.
    pub metrics: PrometheusHandle,
    /// How streams behave.
    pub streams: StreamSettings,
    /// Cancelled when the server begins to go down: open streams end.
    pub draining: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// The state of the router. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(pub Arc<Shared>);

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Remembers which number a user's name has, so that not every request asks the store.
pub struct Owners {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<(TenantId, UserName), (Owner, Instant)>>,
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owners").finish_non_exhaustive()
    }
}

impl Owners {
    /// More names than this are not kept: about 20 MiB.
    const MOST: usize = 100_000;

    /// How long a number is trusted: another process may have erased the user, who then has another.
    const TRUST: Duration = Duration::from_secs(2);

    /// Over this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            known: RwLock::default(),
        }
    }

    /// The owner of that name; made on first sight.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resolve(&self, tenant: TenantId, user: UserName) -> Result<Owner, Problem> {
        let key = (tenant, user);
        let now = Instant::now();
        if let Some(owner) = self.remembered(&key, now) {
            return Ok(owner);
        }
        let owner = self.store.resolve_owner(tenant, &key.1).await?;
        self.remember(key, owner, now);
        Ok(owner)
    }

    /// The owner of that name; nobody, if the name was never seen. That is not remembered: it may be seen at any moment.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find(&self, tenant: TenantId, user: UserName) -> Result<Owner, Problem> {
        let key = (tenant, user);
        let now = Instant::now();
        if let Some(owner) = self.remembered(&key, now) {
            return Ok(owner);
        }
        let Some(known) = self.store.find_user(tenant, &key.1).await? else {
            return Ok(Owner::nobody(tenant));
        };
        self.remember(key, known.owner, now);
        Ok(known.owner)
    }

    fn remembered(&self, key: &(TenantId, UserName), now: Instant) -> Option<Owner> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let (owner, until) = known.get(key)?;
        (now < *until).then_some(*owner)
    }

    fn remember(&self, key: (TenantId, UserName), owner: Owner, now: Instant) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key, (owner, now + Self::TRUST));
    }

    /// Forgets a name: who asks under it next is somebody else.
    pub fn forget(&self, tenant: TenantId, user: UserName) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(tenant, user));
    }
}

/// The whole service.
pub fn router(app: App) -> Router {
    let (api, _) = openapi::router().split_for_parts();
    let router = Router::new()
        .merge(api)
        .merge(crate::http::page::router())
        .route("/openapi.json", get(document))
        .fallback(|| async { Problem::new(Code::NotFound, "there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                Code::MethodNotAllowed,
                "this address does not know that method",
            )
        })
        .layer(middleware::from_fn_with_state(app.clone(), auth::admit));
    // Whoever needs no key is to be on this machine, and no other page's doing.
    let router = match &app.gate {
        Gate::Open(_) => router.layer(middleware::from_fn_with_state(
            app.clone(),
            guard::known_pages_only,
        )),
        Gate::Keys(_) => router,
    };
    router
        .layer(CatchPanicLayer::custom(|_| {
            use axum::response::IntoResponse;
            Problem::new(Code::Internal, "a defect of this server").into_response()
        }))
        .layer(middleware::from_fn(body::refuse_large))
        .layer(middleware::from_fn(headers::refuse_repeated))
        .layer(option_layer(app.origins.layer()))
        .layer(middleware::from_fn_with_state(
            app.clone(),
            hardening::harden,
        ))
        .layer(middleware::from_fn_with_state(
            app.clone(),
            request_id::assign,
        ))
        .with_state(app)
}

async fn document() -> Result<axum::Json<serde_json::Value>, Problem> {
    openapi::document().map(axum::Json).map_err(|error| {
        tracing::error!(%error, "the document cannot be written");
        Problem::new(Code::Internal, "a defect of this server")
    })
}
