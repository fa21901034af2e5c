//! The trace that a span belongs to, across processes (W3C Trace Context, <https://www.w3.org/TR/trace-context/>).

use std::collections::HashMap;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes the span of a `traceparent` header the parent of `span`, and says whether it did. To be called before `span` is first entered. What is no
/// `traceparent` changes nothing: the span then begins a trace of its own.
pub fn adopt(span: &Span, traceparent: &str) -> bool {
    let headers = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&headers);
    context.span().span_context().is_valid() && span.set_parent(context).is_ok()
}

/// The id of the current span's trace, 32 hexadecimal digits; none outside any span.
pub fn current_trace_id() -> Option<String> {
    trace_id(&Span::current())
}

/// The id of a span's trace, 32 hexadecimal digits.
pub fn trace_id(span: &Span) -> Option<String> {
    let context = span.context();
    let span = context.span();
    let span = span.span_context();
    span.is_valid().then(|| span.trace_id().to_string())
}

/// The `traceparent` that hands the current span's trace on: to a stored turn, or to a server that is called.
pub fn current_traceparent() -> Option<String> {
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut headers);
    headers.remove("traceparent")
}
