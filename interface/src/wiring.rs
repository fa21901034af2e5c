//! The composition root: what the settings say, built of concrete adapters, top to bottom. To add an adapter: a line here.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tidemark_application::chat::service::{Chat, ChatParts};
use tidemark_application::learning::extract::Extractor;
use tidemark_application::learning::worker::Workers;
use tidemark_application::memory::edit::EditMemory;
use tidemark_application::memory::forget::Forget;
use tidemark_application::memory::query_vectors::QueryVectors;
use tidemark_application::memory::recall::Recall;
use tidemark_application::memory::remember::Remember;
use tidemark_application::memory::revert::Revert;
use tidemark_application::memory::watched_embedder::Embedders;
use tidemark_application::ports::clock::Clock;
use tidemark_application::ports::events::EventLog;
use tidemark_application::ports::ids::Ids;
use tidemark_application::ports::model::ChatModel;
use tidemark_application::ports::store::Store;
use tidemark_application::ports::trace::Traces;
use tidemark_application::ports::turns::{SharedLimits, TokenLimits};
use tidemark_application::sessions::import::Import;
use tidemark_application::settings::{
    ExtractionSettings, LearningSettings, PromptSettings, RecallSettings, TurnSettings,
};
use tidemark_application::tools::Toolbox;
use tidemark_application::tools::search_memory::SearchMemory;
use tidemark_application::users::erase::{Erase, Held};
use tidemark_domain::window::EstimateCounter;
use tidemark_infrastructure::events::memory::{MemoryEventLog, MemoryEventLogOptions};
use tidemark_infrastructure::events::redis::{RedisEventLog, RedisEventLogOptions};
use tidemark_infrastructure::model::gateway::{Gateway, GatewayOptions};
use tidemark_infrastructure::model::key::ApiKey;
use tidemark_infrastructure::model::offline::OfflineModel;
use tidemark_infrastructure::model::openai::{OpenAiModel, OpenAiOptions};
use tidemark_infrastructure::system::{SystemClock, UuidV7};
use tidemark_infrastructure::telemetry::{self, LogFormat, TelemetryGuard, TelemetryOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Owners, Shared, StreamSettings};
use crate::config::{Settings, sections, setting};
use crate::event_log::EventLogFile;
use crate::limits::{PerMinute, RequestLimits};

mod embedder;
mod gate;
mod reranker;
mod store;
mod traces;

pub use self::embedder::embedders;
pub use self::store::OpenStore;

/// How long a request that erases waits for Redis; then it is tried on without it.
const ERASE_WAIT: Duration = Duration::from_secs(2);

/// The most events that Redis keeps of a turn. A turn of ten minutes that tells something each 20 ms has 30,000.
const MAX_REDIS_EVENTS: usize = 65_536;

/// How often an idle worker looks for work that nobody told it of: retries whose time has come, what a lost process left.
const WORK_POLL: Duration = Duration::from_secs(1);

/// What a client is told to wait before it reconnects.
const RETRY: Duration = Duration::from_secs(2);

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [
    0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0,
];

/// Something cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum WiringError {
    /// The store cannot be opened.
    #[error("the store {url} cannot be opened")]
    Store {
        /// Its address, without a password.
        url: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model cannot be used as it is set.
    #[error("model.base_url or model.api_key cannot be used")]
    Model(#[source] Box<dyn Error + Send + Sync>),
    /// The embedder cannot be used as it is set.
    #[error("embedder cannot be used")]
    Embedder(#[source] Box<dyn Error + Send + Sync>),
    /// The reranker cannot be used as it is set.
    #[error("reranker cannot be used")]
    Reranker(#[source] Box<dyn Error + Send + Sync>),
    /// The identity provider cannot be used as it is set.
    #[error("auth.jwt.jwks_url cannot be used")]
    IdentityProvider(#[source] Box<dyn Error + Send + Sync>),
    /// The file of the event log cannot be opened.
    #[error("stream.event_log {path} cannot be opened")]
    EventLog {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The address of Redis is none.
    #[error("events.redis_url {url} cannot be used")]
    Events {
        /// It, without a password.
        url: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Logs or traces cannot be set up.
    #[error("log or telemetry.otlp_endpoint cannot be used")]
    Telemetry(#[source] Box<dyn Error + Send + Sync>),
    /// Metrics cannot be set up.
    #[error("metrics cannot be set up")]
    Metrics(#[source] Box<dyn Error + Send + Sync>),
}

/// Sets up logs and traces; dropping what is returned sends the last of them.
///
/// # Errors
/// When the settings do not allow it.
pub fn telemetry(settings: &Settings) -> Result<TelemetryGuard, WiringError> {
    let endpoint = settings.telemetry.otlp_endpoint.as_ref();
    telemetry::init(&TelemetryOptions {
        log_filter: settings.server.log.0.clone(),
        log_format: match settings.server.log_format {
            setting::LogFormat::Text => LogFormat::Text,
            setting::LogFormat::Json => LogFormat::Json,
        },
        otlp_endpoint: endpoint.map(|url| url.0.clone()),
        service_name: settings.telemetry.service_name.clone(),
    })
    .map_err(|error| WiringError::Telemetry(error.into()))
}

/// What runs.
#[derive(Debug)]
pub struct Wired {
    /// What the operations share.
    pub app: App,
    /// The workers of derived work.
    pub workers: Workers,
}

/// Builds everything on the store.
///
/// # Errors
/// When something cannot be built.
pub fn wire(
    settings: &Settings,
    store: Arc<dyn Store>,
    embedders: &Embedders,
) -> Result<Wired, WiringError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn Ids> = Arc::new(UuidV7::default());
    let work = Arc::new(Notify::new());
    let traces: Arc<dyn Traces> = Arc::new(traces::TelemetryTraces);
    let queue_wait = Duration::from_secs(settings.turn.max_seconds);
    let model = model(&settings.model, settings.model.name.as_deref(), queue_wait)?;
    let extractor = extractor(settings, queue_wait)?;
    let event_log = event_log(&settings.stream, &clock)?;
    let gate = gate::gate(settings, &store, &clock)?;
    let metrics = metrics()?;

    let questions = QueryVectors::new(
        embedders.all(),
        Duration::from_millis(settings.recall.embed_timeout_ms),
    );
    let recall = Recall::new(
        Arc::clone(&store),
        Arc::clone(&clock),
        Arc::new(EstimateCounter),
        recall_settings(settings),
    );
    let recall = recall.with_questions(questions);
    let recall = Arc::new(recall.with_reranking(reranker::reranking(&settings.reranker)?));
    let learning = learning_settings(settings);
    let events = events(settings, ids.as_ref(), ERASE_WAIT)?;
    let chat = Chat::new(ChatParts {
        store: Arc::clone(&store),
        events: Arc::clone(&events),
        model,
        recall: Arc::clone(&recall),
        tools: Toolbox::new(vec![Arc::new(SearchMemory::new(Arc::clone(&recall)))]),
        ids: Arc::clone(&ids),
        clock: Arc::clone(&clock),
        work: Arc::clone(&work),
        settings: turn_settings(settings),
        prompts: prompt_settings(settings),
        learning_threshold: learning.threshold,
    })
    .with_traces(Arc::clone(&traces));
    let workers = Workers {
        store: Arc::clone(&store),
        ids: Arc::clone(&ids),
        clock: Arc::clone(&clock),
        unindexed: recall.unindexed(),
        work: Arc::clone(&work),
        embedder: embedders.present.clone(),
        extractor,
        settings: learning,
    };
    let held = Held {
        chat: chat.clone(),
        recall: Arc::clone(&recall),
    };
    let app = App(Arc::new(Shared {
        chat,
        events,
        recall,
        remember: Remember::new(Arc::clone(&store), Arc::clone(&ids), Arc::clone(&clock))
            .with_embedding(embedders.present.is_some()),
        import: Import::new(
            Arc::clone(&store),
            Arc::clone(&ids),
            Arc::clone(&clock),
            Arc::clone(&work),
        ),
        forget: Forget::new(
            Arc::clone(&store),
            Arc::clone(&ids),
            Arc::clone(&clock),
            recall_settings(settings).unindexed,
        ),
        erase: Erase::new(
            Arc::clone(&store),
            Arc::clone(&ids),
            Arc::clone(&clock),
            Some(held),
        ),
        edit: EditMemory::new(Arc::clone(&store), Arc::clone(&ids), Arc::clone(&clock))
            .with_embedding(embedders.present.is_some()),
        revert: Revert::new(Arc::clone(&store), Arc::clone(&ids), Arc::clone(&clock))
            .with_embedding(embedders.present.is_some()),
        gate,
        origins: settings.cors.origins.0.iter().cloned().collect(),
        tls: settings.tls.cert.is_some(),
        requests: RequestLimits::new(per_minute(&settings.limits)),
        owners: Owners::new(Arc::clone(&store)),
        embedders: embedders.clone(),
        store,
        ids,
        clock,
        work,
        traces,
        metrics,
        streams: StreamSettings {
            heartbeat: Duration::from_secs(settings.stream.heartbeat_seconds),
            retry: RETRY,
            event_log,
        },
        draining: CancellationToken::new(),
    }));
    Ok(Wired { app, workers })
}

/// The model of that name on the server that the settings name; the offline model, where one of both is unset.
fn model(
    settings: &sections::Model,
    name: Option<&str>,
    queue_wait: Duration,
) -> Result<Arc<dyn ChatModel>, WiringError> {
    let (Some(base_url), Some(name)) = (&settings.base_url, name) else {
        return Ok(Arc::new(OfflineModel::default()));
    };
    let mut options = OpenAiOptions::new(base_url.0.as_str(), name);
    options.api_key = settings
        .api_key
        .as_ref()
        .and_then(|key| ApiKey::new(key.expose()));
    options.temperature = settings.temperature.map(|t| t.0);
    options.connect_timeout = Duration::from_secs(settings.connect_timeout_seconds);
    options.first_timeout = Duration::from_secs(settings.first_timeout_seconds);
    options.idle_timeout = Duration::from_secs(settings.idle_timeout_seconds);
    options.total_timeout = Duration::from_secs(settings.total_timeout_seconds);
    options.max_retries = settings.max_retries;
    let model = OpenAiModel::new(options).map_err(|error| WiringError::Model(error.into()))?;
    let gateway = Gateway::new(
        Arc::new(model),
        GatewayOptions {
            max_concurrent: settings.max_concurrent,
            queue_wait,
            ..GatewayOptions::default()
        },
    );
    Ok(Arc::new(gateway))
}

/// Extraction by the small model, behind a gateway of its own: what is derived takes no place from those who wait for an answer.
fn extractor(
    settings: &Settings,
    queue_wait: Duration,
) -> Result<Option<Arc<Extractor>>, WiringError> {
    if !settings.extraction.enabled {
        return Ok(None);
    }
    let small = settings.model.small_name.as_ref();
    let name = settings
        .model
        .name
        .as_ref()
        .map(|name| small.unwrap_or(name));
    let model = model(&settings.model, name.map(String::as_str), queue_wait)?;
    Ok(Extractor::by(model, extraction_settings(settings)).map(Arc::new))
}

/// 0 limits nothing.
fn limit(most: i64) -> Option<i64> {
    (most > 0).then_some(most)
}

fn per_minute(limits: &sections::Limits) -> PerMinute {
    PerMinute {
        tenant: limits.tenant_requests_per_minute,
        key: limits.key_requests_per_minute,
        user: limits.user_requests_per_minute,
    }
}

fn event_log(
    settings: &sections::Stream,
    clock: &Arc<dyn Clock>,
) -> Result<Option<EventLogFile>, WiringError> {
    let Some(path) = &settings.event_log else {
        return Ok(None);
    };
    let file = EventLogFile::open(path, Arc::clone(clock));
    file.map(Some).map_err(|source| WiringError::EventLog {
        path: path.display().to_string(),
        source,
    })
}

fn metrics() -> Result<PrometheusHandle, WiringError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| WiringError::Metrics(error.into()))
}

/// The live log: of this process, or over Redis. `erase_wait` is how long dropping what is gone waits for Redis.
///
/// # Errors
/// When the address of Redis is none.
pub fn events(
    settings: &Settings,
    ids: &dyn Ids,
    erase_wait: Duration,
) -> Result<Arc<dyn EventLog>, WiringError> {
    let memory = event_log_options(&settings.stream);
    let Some(url) = &settings.events.redis_url else {
        return Ok(MemoryEventLog::start(memory));
    };
    let address = setting::without_login(&url.0);
    let log = RedisEventLog::start(RedisEventLogOptions {
        url: url.0.clone(),
        address: address.clone(),
        replica: ids.uuid(),
        prefix: settings.events.redis_prefix.clone(),
        max_events: MAX_REDIS_EVENTS,
        erase_wait,
        memory,
    });
    match log {
        Ok(log) => Ok(Arc::new(log)),
        Err(error) => Err(WiringError::Events {
            url: address,
            source: error.into(),
        }),
    }
}

fn event_log_options(settings: &sections::Stream) -> MemoryEventLogOptions {
    let defaults = MemoryEventLogOptions::default();
    let retention = Duration::from_secs(settings.retention_seconds);
    MemoryEventLogOptions {
        retention,
        sweep_every: defaults.sweep_every.min(retention),
        ..defaults
    }
}

fn turn_settings(settings: &Settings) -> TurnSettings {
    TurnSettings {
        lease: Duration::from_secs(settings.turn.lease_seconds),
        max_queued: settings.limits.queue_per_session,
        max_open_per_owner: settings.limits.turns_per_user,
        max_open_shared: SharedLimits {
            tenant: limit(settings.limits.turns_per_tenant),
            key: limit(settings.limits.turns_per_key),
        },
        max_tokens: TokenLimits {
            tenant: limit(settings.limits.tenant_tokens_per_day),
            key: limit(settings.limits.key_tokens_per_day),
            user: limit(settings.limits.user_tokens_per_day),
        },
        max_open: settings.limits.open_sessions,
        max_running: settings.limits.running_turns,
        max_rounds: settings.turn.max_tool_rounds,
        max_duration: Duration::from_secs(settings.turn.max_seconds),
        ..TurnSettings::default()
    }
}

fn prompt_settings(settings: &Settings) -> PromptSettings {
    let prompt = &settings.prompt;
    PromptSettings {
        agent: prompt.agent.clone(),
        system_en: prompt.system_en.clone(),
        system_zh: prompt.system_zh.clone(),
        intros: prompt.intros.clone(),
        context_tokens: settings.model.context_tokens,
        max_output_tokens: settings.model.max_output_tokens,
    }
}

fn recall_settings(settings: &Settings) -> RecallSettings {
    RecallSettings {
        profile: settings.recall.profile,
        timeout: Duration::from_secs(settings.recall.timeout_seconds),
        max_preferences: settings.recall.max_preferences,
        candidates: settings.recall.candidates,
        index_bytes: settings.recall.index_bytes,
        ..RecallSettings::default()
    }
}

/// The answer gets what is set, but no more than a quarter of the model's window.
fn extraction_settings(settings: &Settings) -> ExtractionSettings {
    let extraction = &settings.extraction;
    let window = settings.model.context_tokens;
    let output = (extraction.max_output_tokens as usize).min(window / 4);
    ExtractionSettings {
        prompt_en: extraction.prompt_en.clone(),
        prompt_zh: extraction.prompt_zh.clone(),
        repair_en: extraction.repair_en.clone(),
        repair_zh: extraction.repair_zh.clone(),
        temperature: extraction.temperature.0,
        max_input_tokens: extraction.max_input_tokens.min(window - output),
        max_output_tokens: output as u32,
        timeout: Duration::from_secs(extraction.timeout_seconds),
    }
}

fn learning_settings(settings: &Settings) -> LearningSettings {
    LearningSettings {
        threshold: settings.learning.threshold,
        interval: Duration::from_secs(settings.learning.interval_seconds),
        extraction_retry: Duration::from_secs(settings.extraction.retry_seconds),
        workers: settings.learning.workers,
        model_workers: settings.learning.model_workers,
        poll: WORK_POLL,
        lease: Duration::from_secs(settings.learning.lease_seconds),
        max_attempts: settings.learning.max_attempts as i32,
        fade_every: (settings.forgetting.enabled)
            .then(|| Duration::from_secs(settings.forgetting.interval_seconds)),
        ..LearningSettings::default()
    }
}
