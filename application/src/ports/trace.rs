//! Traces across tasks and processes.

use tracing::Span;

/// Hands a trace on: a turn runs in a task of its own, and belongs to the trace of the request that it was accepted from.
pub trait Traces: Send + Sync + 'static {
    /// What names the current span to others (a W3C `traceparent`); none outside any trace.
    fn current(&self) -> Option<String>;

    /// Makes the span that is named the parent of `span`, which has not yet been entered. What names none changes nothing.
    fn adopt(&self, span: &Span, traceparent: &str);
}

/// No traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTraces;

impl Traces for NoTraces {
    fn current(&self) -> Option<String> {
        None
    }

    fn adopt(&self, _: &Span, _: &str) {}
}
