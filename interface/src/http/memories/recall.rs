//! `POST /v1/memories/recall`: what fits a query, and why.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidemark_application::memory::recall::RecallRequest;
use tidemark_domain::event::{RecalledMemory, Via};
use tidemark_domain::ids::{MemoryId, SessionId};
use tidemark_domain::memory::prompt::{self, Language};
use tidemark_domain::memory::recall::TopK;
use tidemark_domain::memory::scoring::Parts;
use tidemark_domain::memory::scoring::Profile;
use utoipa::ToSchema;
use uuid::Uuid;
use validator::Validate;

use super::view::{MemoryView, ScopeView};
use crate::app::App;
use crate::extract::{JsonBody, Reader, no_nul};
use crate::http::turns::create::not_blank;
use crate::lenient::{EXPECTED, as_whole, or_default, whole};
use crate::problem::{Problem, ProblemDocument};
use crate::times::calendar_time;

/// How many memories.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = TopK)]
pub enum TopKView {
    /// A number, 1–100.
    Number(TopKNumber),
    /// By the complexity of the query and the length of the dialogue.
    Auto(AutoTag),
}

impl TopKView {
    /// The number that was asked for; none for `auto`, or when nothing was said.
    ///
    /// # Errors
    /// When it is out of range; `field` names it.
    pub fn fixed(asked: Option<Self>, field: &str) -> Result<Option<u32>, Problem> {
        match asked {
            None | Some(Self::Auto(_)) => Ok(None),
            Some(Self::Number(TopKNumber(k @ 1..=100))) => Ok(Some(k)),
            Some(Self::Number(_)) => Err(Problem::unacceptable(
                field,
                "must be 1 to 100, or \"auto\"",
            )),
        }
    }
}

/// How many memories at most, 1–100.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(try_from = "f64")]
#[schema(minimum = 1, maximum = 100, examples(10))]
pub struct TopKNumber(pub u32);

impl TryFrom<f64> for TopKNumber {
    type Error = &'static str;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        as_whole(number).map(Self).ok_or(EXPECTED)
    }
}

/// `auto`.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
pub enum AutoTag {
    /// The only value.
    #[serde(rename = "auto")]
    Auto,
}

/// How to score.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ScoringProfile)]
pub enum ProfileView {
    /// By relevance, tuned.
    Hybrid,
    /// Relevance fading with the days since the last use, lifted by use.
    Decay,
    /// Similarity, slightly lifted for what is recent.
    Recency,
}

impl From<ProfileView> for Profile {
    fn from(profile: ProfileView) -> Self {
        match profile {
            ProfileView::Hybrid => Self::Hybrid,
            ProfileView::Decay => Self::Decay,
            ProfileView::Recency => Self::Recency,
        }
    }
}

/// What to recall.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallQuery {
    /// In the asker's words, 1–4,000 characters.
    #[validate(
        length(min = 1, max = 4000, message = "must be 1 to 4000 characters"),
        custom(function = "not_blank"),
        custom(function = "no_nul")
    )]
    #[schema(min_length = 1, max_length = 4000, examples("What is the budget?"))]
    pub query: String,
    /// Only in these scopes; all when not said.
    #[serde(default, deserialize_with = "or_default")]
    #[validate(length(max = 3, message = "must be at most 3 scopes"))]
    #[schema(max_items = 3)]
    pub scopes: Vec<ScopeView>,
    /// Only what was learned in, or given for, this session; the user's profile is not searched then.
    pub session_id: Option<Uuid>,
    /// How many; `auto` when not said.
    pub top_k: Option<TopKView>,
    /// How to score; the server's own when not said.
    pub profile: Option<ProfileView>,
    /// Below this nothing is recalled; 0 switches abstention off.
    #[validate(range(min = 0.0, max = 2.0, message = "must be 0 to 2"))]
    #[schema(minimum = 0, maximum = 2)]
    pub min_score: Option<f64>,
    /// The time to judge by; now when not said.
    #[validate(custom(function = "calendar_time"))]
    pub now: Option<DateTime<Utc>>,
    /// Tell what held at that time instead of what holds now.
    #[validate(custom(function = "calendar_time"))]
    pub as_of: Option<DateTime<Utc>>,
    /// Also tell what has faded and is archived.
    #[serde(default, deserialize_with = "or_default")]
    pub include_archived: bool,
    /// The most tokens the recalled lines may take; 2,000 when not said.
    #[validate(range(min = 1, max = 100_000, message = "must be 1 to 100000"))]
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub token_budget: Option<u32>,
    /// Also tell which terms matched.
    #[serde(default, deserialize_with = "or_default")]
    pub explain: bool,
    /// For these memories say why they were not recalled.
    #[serde(default, deserialize_with = "or_default")]
    #[validate(length(max = 100, message = "must be at most 100 ids"))]
    #[schema(max_items = 100)]
    pub why_not: Vec<Uuid>,
}

/// A recalled memory.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecalledItem {
    /// The memory.
    pub memory: MemoryView,
    /// Its score; higher is better.
    #[schema(examples(0.62))]
    pub score: f64,
    /// What the score is made of, by name.
    pub parts: BTreeMap<String, f64>,
    /// The query's terms that it holds, as they are indexed; with `explain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub matched: Vec<String>,
    /// Its place, from 1.
    #[schema(examples(1))]
    pub rank: u32,
}

/// A memory that was not recalled.
#[derive(Debug, Serialize, ToSchema)]
pub struct DroppedItem {
    /// The memory.
    pub id: Uuid,
    /// Which step dropped it.
    #[schema(examples("below_threshold"))]
    pub reason: String,
}

/// What was recalled.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecallResult {
    /// The memories, best first.
    pub items: Vec<RecalledItem>,
    /// The block that a model would be shown; empty when there is nothing.
    pub context: String,
    /// Nothing fitted.
    pub abstained: bool,
    /// What was considered and left out.
    pub dropped: Vec<DroppedItem>,
    /// Arms of recall that failed.
    pub degraded: Vec<String>,
    /// Milliseconds it took.
    #[schema(examples(3))]
    pub took_ms: u64,
}

/// Recall
///
/// Reading never counts as use.
#[utoipa::path(
    post,
    path = "/v1/memories/recall",
    operation_id = "recall_memories",
    tag = "memories",
    request_body = RecallQuery,
    responses(
        (status = 200, description = "What was recalled", body = RecallResult),
        (status = "4XX", description = "The request has to change", body = ProblemDocument, content_type = "application/problem+json"),
        (status = "5XX", description = "The server or something it needs failed", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub async fn recall_memories(
    State(app): State<App>,
    reader: Reader,
    body: JsonBody<RecallQuery>,
) -> Result<Json<RecallResult>, Problem> {
    let asked = body.value;
    let language = Language::detect(&asked.query);
    let explain = asked.explain;
    let now = asked.now.unwrap_or_else(|| app.clock.now());
    let outcome = app.recall.run(reader.owner, request(asked)?).await?;
    let items = outcome.ranking.items.iter();
    let shown: Vec<RecalledMemory> = items
        .map(|item| RecalledMemory::of(&item.memory, item.score, Via::Relevance))
        .collect();
    Ok(Json(RecallResult {
        context: prompt::recall_block(&shown, language).unwrap_or_default(),
        items: (1..)
            .zip(outcome.ranking.items)
            .map(|(rank, item)| RecalledItem {
                score: item.score,
                parts: parts(&item.parts),
                matched: if explain { item.matched } else { Vec::new() },
                memory: MemoryView::at(item.memory, now),
                rank,
            })
            .collect(),
        abstained: outcome.ranking.abstained,
        dropped: outcome
            .ranking
            .dropped
            .into_iter()
            .map(|(id, reason)| DroppedItem {
                id: id.0,
                reason: reason.as_str().to_owned(),
            })
            .collect(),
        degraded: outcome.degraded,
        took_ms: outcome.took.as_millis() as u64,
    }))
}

fn request(asked: RecallQuery) -> Result<RecallRequest, Problem> {
    let top_k = match TopKView::fixed(asked.top_k, "top_k")? {
        None => TopK::Auto,
        Some(k) => TopK::Fixed(k as usize),
    };
    let defaults = RecallRequest::default();
    Ok(RecallRequest {
        query: asked.query,
        scopes: asked.scopes.into_iter().map(Into::into).collect(),
        session_id: asked.session_id.map(SessionId),
        top_k,
        profile: asked.profile.map(Into::into),
        min_score: asked.min_score,
        now: asked.now,
        as_of: asked.as_of,
        archived: asked.include_archived,
        token_budget: asked
            .token_budget
            .map_or(defaults.token_budget, |t| t as usize),
        why_not: asked.why_not.into_iter().map(MemoryId).collect(),
        ..defaults
    })
}

fn parts(parts: &Parts) -> BTreeMap<String, f64> {
    parts
        .named()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
