//! Traces, as the telemetry adapter knows them.

use tidemark_application::ports::trace::Traces;
use tidemark_infrastructure::telemetry;
use tracing::Span;

/// Traces across tasks and processes, as the telemetry adapter knows them.
#[derive(Debug)]
pub(super) struct TelemetryTraces;

impl Traces for TelemetryTraces {
    fn current(&self) -> Option<String> {
        telemetry::trace::current_traceparent()
    }

    fn adopt(&self, span: &Span, traceparent: &str) {
        telemetry::trace::adopt(span, traceparent);
    }
}
