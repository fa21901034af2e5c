//! A session as it is shown.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_domain::session::{MemoryMode, Session};
use utoipa::ToSchema;
use uuid::Uuid;
use validator::ValidationError;

use crate::extract::{entity_tag, no_nul};

/// Whether memory is recalled and learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MemoryMode)]
pub enum MemoryModeView {
    /// Recall before the answer, learn from it afterwards.
    On,
    /// Recall, but learn nothing.
    ReadOnly,
    /// Neither: a temporary chat.
    Off,
}

impl From<MemoryMode> for MemoryModeView {
    fn from(mode: MemoryMode) -> Self {
        match mode {
            MemoryMode::On => Self::On,
            MemoryMode::ReadOnly => Self::ReadOnly,
            MemoryMode::Off => Self::Off,
        }
    }
}

impl From<MemoryModeView> for MemoryMode {
    fn from(mode: MemoryModeView) -> Self {
        match mode {
            MemoryModeView::On => Self::On,
            MemoryModeView::ReadOnly => Self::ReadOnly,
            MemoryModeView::Off => Self::Off,
        }
    }
}

/// A free label, 1–64 characters.
#[derive(Clone, Debug, ToSchema)]
#[schema(min_length = 1, max_length = 64, examples("finance"))]
pub struct Label(pub String);

/// A session.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// Its id.
    pub id: Uuid,
    /// What its user calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("Quarterly budget"))]
    pub title: Option<String>,
    /// Free labels.
    #[schema(value_type = Vec<Label>, examples(json!(["finance"])))]
    pub labels: Vec<String>,
    /// The entry it came through.
    #[schema(examples("web"))]
    pub channel: String,
    /// The mode of turns that name none.
    pub memory: MemoryModeView,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When its last message was stored, or it was changed.
    pub updated_at: DateTime<Utc>,
    /// How many messages it has.
    #[schema(examples(14))]
    pub message_count: i64,
    /// Messages up to this number have been taken into semantic memory.
    #[schema(examples(0))]
    pub last_consolidated: i64,
    /// The turn that runs, or the oldest that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_turn_id: Option<Uuid>,
    /// Rises with every change; the entity tag.
    #[schema(examples(1))]
    pub version: i64,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        Self {
            id: session.id.0,
            title: session.title,
            labels: session.labels,
            channel: session.channel,
            memory: session.memory.into(),
            created_at: session.created_at,
            updated_at: session.updated_at,
            message_count: session.message_count,
            last_consolidated: session.last_consolidated,
            active_turn_id: session.active_turn.map(|id| id.0),
            version: session.version,
        }
    }
}

/// A session with its entity tag.
#[derive(Debug)]
pub struct Tagged(pub Session);

impl IntoResponse for Tagged {
    fn into_response(self) -> Response {
        let tag = entity_tag(self.0.version);
        let mut response = Json(SessionView::from(self.0)).into_response();
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// For `validator`: at most 16 labels of 1–64 characters.
pub fn few_labels(labels: &[String]) -> Result<(), ValidationError> {
    let fits = labels.len() <= 16 && labels.iter().all(|l| (1..=64).contains(&l.chars().count()));
    if !fits {
        let mut error = ValidationError::new("labels");
        error.message = Some("must be at most 16 labels of 1 to 64 characters".into());
        return Err(error);
    }
    labels.iter().try_for_each(|label| no_nul(label))
}
