//! What the server tells its operators: logs on standard error, and traces to an OpenTelemetry collector if there is one.

pub mod trace;

use std::io::IsTerminal;
use std::str::FromStr;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// How long the end of the process may be held up to send the last spans.
const FLUSH_TIME: Duration = Duration::from_secs(3);

/// How long the collector may take for one batch.
const EXPORT_TIME: Duration = Duration::from_secs(5);

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(TelemetryError::Format(text.to_owned())),
        }
    }
}

/// What to tell, and to whom.
#[derive(Clone, Debug)]
pub struct TelemetryOptions {
    /// Which log lines are wanted, in the form of `tracing_subscriber::EnvFilter`: `info`, `info,tidemark=debug`, …
    pub log_filter: String,
    /// How they look.
    pub log_format: LogFormat,
    /// The collector's address for OTLP over HTTP, with or without `/v1/traces`. Without one no span leaves the process.
    pub otlp_endpoint: Option<String>,
    /// The name that the spans bear.
    pub service_name: String,
}

/// Telemetry cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is malformed.
    #[error("`{0}` is no log filter; `info` or `info,tidemark=debug` would be")]
    Filter(String, #[source] tracing_subscriber::filter::ParseError),
    /// The format has another name.
    #[error("`{0}` is no log format; `text` and `json` are")]
    Format(String),
    /// The exporter cannot be built.
    #[error("the trace exporter cannot be set up")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// The process has a subscriber already.
    #[error("telemetry is set up already")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

/// Sends what is left when it is dropped. To be held until the process ends.
#[derive(Debug)]
#[must_use = "dropping it ends the export of traces"]
pub struct TelemetryGuard {
    provider: SdkTracerProvider,
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIME) {
            tracing::warn!(%error, "the last spans may be lost");
        }
    }
}

/// Sets up logs and traces for the whole process.
pub fn init(options: &TelemetryOptions) -> Result<TelemetryGuard, TelemetryError> {
    let (subscriber, guard) = build(options, std::io::stderr)?;
    subscriber.try_init().map_err(TelemetryError::Twice)?;
    Ok(guard)
}

fn build<W>(
    options: &TelemetryOptions,
    writer: W,
) -> Result<(impl Subscriber + Send + Sync + use<W>, TelemetryGuard), TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&options.log_filter)
        .map_err(|error| TelemetryError::Filter(options.log_filter.clone(), error))?;
    let lines = fmt::layer().with_writer(writer);
    let lines = match options.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let provider = provider(options)?;
    // A span is entered with each token of a stream. What is activated or timed then is read by nobody here.
    let spans = tracing_opentelemetry::layer()
        .with_context_activation(false)
        .with_tracked_inactivity(false)
        .with_threads(false)
        .with_tracer(provider.tracer("tidemark"))
        .with_filter(filter_fn(is_ours));
    let subscriber = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(spans);
    Ok((subscriber, TelemetryGuard { provider }))
}

/// Traces hold our own spans whatever the log filter says, and nobody else's: those of the exporter's own HTTP client would be traced for ever.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    *metadata.level() <= Level::INFO
        && (target.starts_with("tidemark") || target.starts_with("tower_http"))
}

fn provider(options: &TelemetryOptions) -> Result<SdkTracerProvider, TelemetryError> {
    let builder = SdkTracerProvider::builder().with_resource(
        Resource::builder()
            .with_service_name(options.service_name.clone())
            .build(),
    );
    let Some(endpoint) = &options.otlp_endpoint else {
        // Trace ids are made and passed on all the same, for logs and for those whom we call.
        return Ok(builder.with_sampler(Sampler::AlwaysOff).build());
    };
    crate::model::tls::install();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(traces_endpoint(endpoint))
        .with_timeout(EXPORT_TIME)
        .build()
        .map_err(TelemetryError::Exporter)?;
    // The batch exporter works in a thread of its own; the simple one would block, and panic, inside the runtime.
    Ok(builder.with_batch_exporter(exporter).build())
}

fn traces_endpoint(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with("/v1/traces") {
        endpoint.to_owned()
    } else {
        format!("{endpoint}/v1/traces")
    }
}

#[cfg(test)]
mod tests;
