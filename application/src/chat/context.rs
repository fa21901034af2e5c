//! The context stage: what the model is asked. History within its window (B18), standing preferences (B2a) and what fits the
//! question (B7), assembled within 70/20/10.

use std::sync::Arc;
use std::time::Duration;

use tidemark_domain::event::{RecalledMemory, TurnEvent, Via};
use tidemark_domain::ids::{Owner, SessionId};
use tidemark_domain::memory::prompt::{self, Language};
use tidemark_domain::memory::recall::{DropReason, TopK};
use tidemark_domain::memory::{Memory, recall as rules};
use tidemark_domain::session::{Message, Role};
use tidemark_domain::tool::ToolSpec;
use tidemark_domain::window::{self, Budget, TokenCounter, Window};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::memory::recall::{Recall, RecallOutcome, RecallRequest};
use crate::ports::context::{ContextWanted, RecallBase};
use crate::ports::model::{ModelRequest, PromptMessage, tool_tokens};
use crate::ports::store::{Store, StoreError, StoreResult};
use crate::ports::turns::Started;
use crate::settings::PromptSettings;

/// How many messages are read from the history at a time.
const HISTORY_PAGE: u32 = 64;

/// How much of either end of a long message is its query, in characters. Ours: the recall operation takes twice that at most.
const QUERY_END: usize = 2_000;

/// Which share of the recall budget the preferences may take; the rest, and what they leave, is for relevance. Ours.
const PROFILE_SHARE: f64 = 0.4;

/// What the context stage hands on.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What the model is asked.
    pub request: ModelRequest,
    /// What of memory it is shown, in order.
    pub recalled: Vec<RecalledMemory>,
    /// The event that tells so.
    pub event: TurnEvent,
    /// What the product says before the session's first answer.
    pub intro: Option<String>,
}

/// Prepares what the model is asked.
pub struct Context<'a> {
    /// The store.
    pub store: &'a Arc<dyn Store>,
    /// Recall.
    pub recall: &'a Recall,
    /// What the model is told.
    pub prompts: &'a PromptSettings,
    /// Counts tokens as the model does.
    pub counter: &'a dyn TokenCounter,
    /// What it may call.
    pub tools: Vec<ToolSpec>,
    /// What was begun to be read while the turn was accepted.
    pub early: Option<EarlyRead>,
}

/// What recall begins with, on its way. It is read in a task of its own, which ends with whoever waits for it.
#[derive(Debug)]
pub struct EarlyRead {
    begun: Instant,
    read: JoinHandle<Option<RecallBase>>,
}

/// What was read longer ago is read again: the turn has waited for its acceptance, and something may have been forgotten meanwhile. Ours.
const EARLY: Duration = Duration::from_secs(1);

impl EarlyRead {
    /// Begins to read for a turn of a new session, while that is being accepted: nothing of it hangs on the session.
    pub fn begin(
        store: &Arc<dyn Store>,
        recall: &Recall,
        owner: Owner,
        session: SessionId,
    ) -> Self {
        let wanted = ContextWanted {
            session,
            messages: 0,
            recall: Some(recall.wanted()),
        };
        let store = Arc::clone(store);
        let read = async move {
            match store.turn_context(owner, wanted).await {
                Ok(read) => read.recall,
                Err(error) => {
                    not_at_once(&error);
                    None
                }
            }
        };
        Self {
            begun: Instant::now(),
            read: tokio::spawn(read.in_current_span()),
        }
    }

    async fn base(mut self) -> Option<RecallBase> {
        (&mut self.read).await.ok().flatten()
    }
}

impl Drop for EarlyRead {
    fn drop(&mut self) {
        self.read.abort();
    }
}

fn not_at_once(error: &StoreError) {
    tracing::warn!(%error, "a turn's context could not be read at once");
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// What memory gave, before it is known what the window holds.
#[derive(Default)]
struct Recalled {
    preferences: Vec<Memory>,
    relevant: Option<RecallOutcome>,
    degraded: Vec<String>,
    took_ms: u64,
}

impl Recalled {
    fn without(&mut self, arm: &str, why: &(dyn std::error::Error + 'static)) {
        tracing::warn!(
            arm,
            why,
            "an arm of recall failed; the turn goes on without it"
        );
        self.degraded.push(arm.to_owned());
    }
}

impl Context<'_> {
    /// Prepares the turn.
    ///
    /// # Errors
    /// When the history cannot be read. Memory that cannot be reached degrades and says so.
    pub async fn prepare(mut self, started: &Started) -> StoreResult<Prepared> {
        let language = Language::detect(&started.message.content);
        let budget = self.budget(language);
        let (history, base) = self.read(started).await;
        let window = self.window(started, &budget, history).await?;
        log_window(&window);
        let recalled = self.recalled(started, &window, &budget, base).await;
        let (memories, abstained) = self.choose(&recalled, &budget);
        let request = ModelRequest {
            messages: self.messages(&window, &memories, language),
            tools: self.tools,
            max_output_tokens: self.prompts.max_output_tokens,
            max_input_tokens: budget.window,
            recalled: memories.clone(),
            language,
            format: None,
            temperature: None,
        };
        let first_answer =
            !window.messages.iter().any(|m| m.role == Role::Assistant) && window.dropped.is_empty();
        Ok(Prepared {
            request,
            recalled: memories.clone(),
            event: TurnEvent::Recall {
                memories,
                abstained,
                degraded: recalled.degraded,
                took_ms: recalled.took_ms,
            },
            intro: first_answer
                .then(|| self.prompts.intro(&started.session.channel, language))
                .flatten(),
        })
    }

    /// The shares of the window (B18). What instructions and tools take beyond theirs is taken from the history, the largest.
    fn budget(&self, language: Language) -> Budget {
        let mut budget = Budget::of(
            self.prompts.context_tokens,
            self.prompts.max_output_tokens as usize,
        );
        let instructions = self.counter.count(&self.prompts.system(language))
            + prompt::frame_tokens(language, self.counter)
            + tool_tokens(&self.tools, self.counter);
        let beyond = instructions.saturating_sub(budget.system);
        budget.history = budget.history.saturating_sub(beyond);
        budget
    }

    /// Reads at once what is nearly always enough. If that fails, or takes longer than recall may, each part is read by whoever needs it: one that
    /// cannot be read does not take the others with it.
    async fn read(&mut self, started: &Started) -> (Option<Vec<Message>>, Option<RecallBase>) {
        let recalls = started.turn.memory.recalls();
        // The session's first message is the turn's own.
        let alone = (started.session.message_count == 1).then(|| vec![started.message.clone()]);
        let wanted = ContextWanted {
            session: started.key.session_id,
            messages: if alone.is_some() { 0 } else { HISTORY_PAGE },
            recall: recalls.then(|| self.recall.wanted()),
        };
        if alone.is_some() && !recalls {
            return (alone, None);
        }
        let limit = self.recall.settings().timeout;
        if alone.is_some()
            && let Some(early) = self.early.take()
            && early.begun.elapsed() < EARLY
        {
            let base = tokio::time::timeout(limit, early.base()).await;
            return (alone, base.unwrap_or_default());
        }
        let read = self.store.turn_context(started.key.owner, wanted);
        match tokio::time::timeout(limit, read).await {
            Ok(Ok(read)) => (alone.or(Some(read.messages)), read.recall),
            Ok(Err(error)) => {
                not_at_once(&error);
                (alone, None)
            }
            Err(_) => (alone, None),
        }
    }

    /// History from the newest back, only as far as the window can show; `newest` is what was read of it.
    async fn window(
        &self,
        started: &Started,
        budget: &Budget,
        mut newest: Option<Vec<Message>>,
    ) -> StoreResult<Window> {
        let mut history: Vec<Message> = Vec::new();
        loop {
            let before = history.first().map(|m| m.seq);
            let (owner, session) = (started.key.owner, started.key.session_id);
            let page = if let Some(page) = newest.take() {
                page
            } else {
                let page = self.store.history(owner, session, before, HISTORY_PAGE);
                page.await?
            };
            let complete = page.len() < HISTORY_PAGE as usize;
            history.splice(0..0, page);
            let window = window::select(&history, budget, self.counter);
            if complete || window.full {
                return Ok(window);
            }
        }
    }

    /// Asks memory, within its time.
    async fn recalled(
        &self,
        started: &Started,
        window: &Window,
        budget: &Budget,
        base: Option<RecallBase>,
    ) -> Recalled {
        if !started.turn.memory.recalls() {
            return Recalled::default();
        }
        let began = tokio::time::Instant::now();
        let options = &started.turn.options.recall;
        let request = RecallRequest {
            query: asked(&started.message.content),
            scopes: options.scopes.clone(),
            top_k: options
                .top_k
                .map_or(TopK::Auto, |k| TopK::Fixed(k as usize)),
            profile: options.profile,
            min_score: options.min_score,
            archived: options.archived,
            token_budget: budget.recall,
            session_messages: started.session.message_count,
            in_window: window.messages.iter().map(|m| m.id).collect(),
            ..RecallRequest::default()
        };
        let profile_budget = (budget.recall as f64 * PROFILE_SHARE) as usize;
        let asked = self
            .recall
            .for_turn(started.key.owner, request, profile_budget, base);
        let mut recalled = Recalled::default();
        match tokio::time::timeout(self.recall.settings().timeout, asked).await {
            Ok(Ok(found)) => {
                match found.preferences {
                    Ok(preferences) => recalled.preferences = preferences,
                    Err(error) => recalled.without("profile", &error),
                }
                match found.relevant {
                    Ok(relevant) => recalled.relevant = Some(relevant),
                    Err(error) => recalled.without("lexical", &error),
                }
            }
            Ok(Err(error)) => {
                recalled.without("profile", &error);
                recalled.without("lexical", &error);
            }
            Err(elapsed) => {
                recalled.without("profile", &elapsed);
                recalled.without("lexical", &elapsed);
            }
        }
        recalled.took_ms = began.elapsed().as_millis() as u64;
        recalled
    }

    /// Profile first, then relevance without what the profile says already.
    fn choose(&self, recalled: &Recalled, budget: &Budget) -> (Vec<RecalledMemory>, bool) {
        let mut left = budget.recall;
        let mut memories = Vec::new();
        let mut take = |memory: &Memory, score: f64, via: Via| {
            let cost = rules::cost(memory, self.counter);
            let fits = cost <= left;
            if fits {
                left -= cost;
                memories.push(RecalledMemory::of(memory, score, via));
            } else {
                log_drop(memory, DropReason::OverBudget);
            }
            fits
        };
        for preference in &recalled.preferences {
            take(preference, 1.0, Via::Profile);
        }
        let Some(relevant) = &recalled.relevant else {
            return (memories, recalled.degraded.is_empty());
        };
        let mut told = false;
        for item in &relevant.ranking.items {
            let in_profile = rules::settled_by(&item.memory, &recalled.preferences);
            if in_profile {
                log_drop(&item.memory, DropReason::InProfile);
            } else {
                told |= take(&item.memory, item.score.min(1.0), Via::Relevance);
            }
        }
        for (id, reason) in &relevant.ranking.dropped {
            tracing::debug!(memory = %id, reason = reason.as_str(), "not recalled");
        }
        (memories, !told)
    }

    fn messages(
        &self,
        window: &Window,
        memories: &[RecalledMemory],
        language: Language,
    ) -> Vec<PromptMessage> {
        let mut system = self.prompts.system(language);
        if let Some(block) = prompt::recall_block(memories, language) {
            system.push_str("\n\n");
            system.push_str(&block);
        }
        let mut messages = vec![prompt_message(Role::System, system)];
        for (i, message) in window.messages.iter().enumerate() {
            if message.role == Role::System {
                messages[0].content.push_str("\n\n");
                messages[0].content.push_str(&message.content);
                continue;
            }
            messages.push(PromptMessage {
                role: message.role,
                content: spoken(message),
                name: None,
                tool_calls: message.tool_calls.clone(),
                tool_call_id: message.tool_call_id.clone(),
            });
            // Many models' templates refuse two user messages in a row; a turn that ended without an answer leaves such.
            let next = window.messages.get(i + 1);
            let unanswered = message.role != Role::Assistant
                && next.is_some_and(|m| m.role == Role::User)
                && message.turn_id.is_some();
            if unanswered {
                messages.push(prompt_message(
                    Role::Assistant,
                    no_answer(language).to_owned(),
                ));
            }
        }
        messages
    }
}

/// What is said, with the speaker's name where there is one: models' own `name` field takes few characters and few models read it.
fn spoken(message: &Message) -> String {
    match &message.name {
        Some(name) if message.role == Role::User => format!("{name}: {}", message.content),
        _ => message.content.clone(),
    }
}

fn prompt_message(role: Role, content: String) -> PromptMessage {
    PromptMessage {
        role,
        content,
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn no_answer(language: Language) -> &'static str {
    match language {
        Language::English => "(no answer was given)",
        Language::Chinese => "（未作回答）",
    }
}

/// What a long message asks stands mostly at its beginning or its end; ranking a whole document against all memories tells nothing.
fn asked(message: &str) -> String {
    let length = message.chars().count();
    if length <= 2 * QUERY_END {
        return message.to_owned();
    }
    let head: String = message.chars().take(QUERY_END).collect();
    let tail: String = message.chars().skip(length - QUERY_END).collect();
    format!("{head}\n{tail}")
}

/// "In the store but not in the context" must be visible (B17).
fn log_drop(memory: &Memory, reason: DropReason) {
    tracing::debug!(memory = %memory.id, reason = reason.as_str(), "recalled, not shown");
}

fn log_window(window: &Window) {
    for dropped in &window.dropped {
        tracing::debug!(
            from = dropped.from_seq,
            to = dropped.to_seq,
            reason = dropped.reason.as_str(),
            "messages left out of the window"
        );
    }
    for seq in &window.cut {
        tracing::debug!(seq, "message shortened for the window");
    }
}
