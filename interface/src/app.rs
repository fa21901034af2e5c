//! What the operations share, and the router that joins them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use axum::routing::get;
use axum::{Router, middleware};
use metrics_exporter_prometheus::PrometheusHandle;
use tidemark_application::chat::service::Chat;
use tidemark_application::memory::forget::Forget;
use tidemark_application::memory::recall::Recall;
use tidemark_application::memory::remember::Remember;
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::store::Store;
use tidemark_domain::ids::{Owner, TenantId, UserName};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::extract::MAX_BODY;
use crate::problem::{Code, Problem};
use crate::{guard, openapi, request_id};

/// Makes a span the child of the trace that a request names.
pub trait TraceContext: Send + Sync + 'static {
    /// Takes over `traceparent`, where there is one.
    fn adopt(&self, span: &tracing::Span, headers: &HeaderMap);
}

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
    /// Recall.
    pub recall: Arc<Recall>,
    /// Remembering.
    pub remember: Remember,
    /// Forgetting.
    pub forget: Forget,
    /// The store, for plain reads and lists.
    pub store: Arc<dyn Store>,
    /// Makes ids.
    pub ids: Arc<dyn Ids>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Wakes the workers.
    pub work: Arc<Notify>,
    /// Who is who.
    pub owners: Owners,
    /// Joins the caller's trace.
    pub trace: Box<dyn TraceContext>,
    /// What `/metrics` prints.
    pub metrics: PrometheusHandle,
    /// How streams behave.
    pub streams: StreamSettings,
    /// Cancelled when the server begins to go down: open streams end.
    pub draining: CancellationToken,
    /// How many new messages make a session due for consolidation.
    pub learning_threshold: i64,
}

/// The state of the router. Cheap to clone.
#[derive(Clone)]
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
    known: RwLock<HashMap<(TenantId, UserName), Owner>>,
}

impl Owners {
    /// More names than this are not kept: about 20 MiB.
    const MOST: usize = 100_000;

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
        let known = self
            .known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .copied();
        if let Some(owner) = known {
            return Ok(owner);
        }
        let owner = self.store.resolve_owner(tenant, &key.1).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key, owner);
        Ok(owner)
    }
}

/// The whole service.
pub fn router(app: App) -> Router {
    let (api, document) = openapi::router().split_for_parts();
    let document = Arc::new(openapi::finish(document));
    Router::new()
        .merge(api)
        .merge(crate::http::page::router())
        .route(
            "/openapi.json",
            get(move || {
                let document = Arc::clone(&document);
                async move { axum::Json(document.as_ref().clone()) }
            }),
        )
        .fallback(|| async { Problem::new(Code::NotFound, "there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                Code::MethodNotAllowed,
                "this address does not know that method",
            )
        })
        .layer(middleware::from_fn(guard::own_pages_only))
        .layer(CatchPanicLayer::custom(|_| {
            use axum::response::IntoResponse;
            Problem::new(Code::Internal, "a defect of this server").into_response()
        }))
        .layer(RequestBodyLimitLayer::new(MAX_BODY))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        ))
        .layer(middleware::from_fn_with_state(app.clone(), request_id::assign))
        .with_state(app)
}
