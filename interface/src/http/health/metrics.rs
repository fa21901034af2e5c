//! `GET /metrics`.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use metrics::gauge;
use tidemark_application::ports::events::Reach;

use crate::app::App;

/// Figures for Prometheus
///
/// Counters, gauges and histograms of this process; `tidemark_jobs` counts the jobs of the store.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "health",
    responses((status = 200, description = "The figures, in the text format of Prometheus", body = String, content_type = "text/plain"))
)]
pub async fn metrics(State(app): State<App>) -> Response {
    if let Ok(counts) = app.store.count_jobs().await {
        for (kind, state, count) in counts {
            gauge!("tidemark_jobs", "kind" => kind.as_str(), "state" => state.as_str())
                .set(count as f64);
        }
    }
    match app.chat.reach() {
        Reach::Process => {}
        Reach::Replicas => gauge!("tidemark_events_up").set(1.0),
        Reach::Degraded => gauge!("tidemark_events_up").set(0.0),
    }
    let body = app.metrics.render();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], body).into_response()
}
