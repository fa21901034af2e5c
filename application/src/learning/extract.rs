//! Asking a model for facts: one bounded call for a batch of messages, and a second one to mend what does not hold (B4, B6).
//!
//! Nothing of ours is held meanwhile: no lock, no connection. What the answer is worth is decided in the domain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use metrics::{counter, histogram};
use tidemark_domain::ids::{Owner, Timestamp};
use tidemark_domain::memory::extraction::answer::{Answer, read};
use tidemark_domain::memory::extraction::batch::{Batch, fitting};
use tidemark_domain::memory::extraction::{Fact, SCHEMA_NAME, schema};
use tidemark_domain::memory::injection;
use tidemark_domain::memory::prompt::Language;
use tidemark_domain::session::{Message, Role};
use tidemark_domain::turn::Usage;
use tidemark_domain::window::{OVERHEAD, cut_middle};
use tokio::time::timeout;
use tracing::Instrument;

use crate::ports::model::{
    AnswerFormat, ChatModel, ModelError, ModelEvent, ModelRequest, PromptMessage,
};
use crate::ports::store::{Store, StoreResult};
use crate::settings::ExtractionSettings;

/// The longest answer that is read, in bytes; ours. A model that writes more has lost its way.
const LONGEST_ANSWER: usize = 256 * 1024;
/// What is kept free of the input for the second call, which repeats the answer and says what is wrong with it. Ours.
const REPAIR_TOKENS: usize = 1_024;
/// With less room for messages than this a model is not asked at all. Ours.
const LEAST_ROOM: usize = 512;
/// The most keys that the model is shown, the newest, in tokens; ours.
const KEY_TOKENS: usize = 512;
/// How many memories are looked through for keys; ours.
const KEY_MEMORIES: u32 = 100;

/// Why a model has not answered for a batch. Holds nothing that anybody said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractionError {
    /// It did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It took too long.
    #[error("the model took longer than {0:?}")]
    TimedOut(Duration),
    /// Its answer is too long.
    #[error("the model's answer is longer than {LONGEST_ANSWER} bytes")]
    TooLong,
    /// Its answer breaks the form, and so does the one that was to mend it.
    #[error(
        "the model's answer breaks the form of facts, also after it was shown why ({0} faults)"
    )]
    Form(usize),
}

/// What came of asking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// What holds.
    pub facts: Vec<Fact>,
    /// The model has not answered for the whole batch.
    pub failure: Option<ExtractionError>,
}

/// Asks a model for facts.
pub struct Extractor {
    model: Arc<dyn ChatModel>,
    settings: ExtractionSettings,
    /// How many tokens of messages one call has room for.
    room: usize,
}

impl std::fmt::Debug for Extractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extractor")
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

impl Extractor {
    /// By this model; none if what it says may not become memory, or the settings leave too little room for messages.
    pub fn by(model: Arc<dyn ChatModel>, settings: ExtractionSettings) -> Option<Self> {
        let counter = model.counter();
        let prompt = counter
            .count(&settings.prompt_en)
            .max(counter.count(&settings.prompt_zh));
        let others = prompt + KEY_TOKENS + REPAIR_TOKENS + 4 * OVERHEAD;
        let room = settings.max_input_tokens.saturating_sub(others);
        if !model.teaches() {
            return None;
        }
        if room < LEAST_ROOM {
            tracing::warn!(
                room,
                least = LEAST_ROOM,
                "the model's window is too small to extract facts; rules alone do"
            );
            return None;
        }
        Some(Self {
            model,
            settings,
            room,
        })
    }

    /// Up to which of the messages behind the boundary one call reaches, if it is not to go beyond `to_seq`.
    pub fn reach(&self, messages: &[Message], to_seq: i64) -> i64 {
        fitting(messages, to_seq, self.room, self.model.counter())
    }

    /// What the model reads out of the messages; it is not asked where nothing can be found. `keys` are those that the owner's memories have, the
    /// newest first.
    pub async fn extract(
        &self,
        messages: &[Message],
        keys: &[String],
        now: Timestamp,
    ) -> Extraction {
        let batch = Batch::of(messages, self.room, self.model.counter());
        if !batch.is_worth_reading() {
            return Extraction::default();
        }
        let span = tracing::info_span!(
            "extraction",
            model = self.model.name(),
            messages = batch.messages().len()
        );
        self.ask_and_mend(&batch, keys, now).instrument(span).await
    }

    async fn ask_and_mend(&self, batch: &Batch, keys: &[String], now: Timestamp) -> Extraction {
        let spoken: String = batch
            .messages()
            .iter()
            .filter(|m| m.role == Role::User)
            .map(|m| m.content.as_str())
            .collect();
        let language = Language::detect(&spoken);
        let mut prompt = vec![
            said(Role::System, self.settings.prompt(language).to_owned()),
            said(Role::User, self.question(batch, keys)),
        ];
        let first = match self.ask(prompt.clone(), language).await {
            Ok(text) => text,
            Err(error) => {
                return outcome(
                    "failed",
                    Extraction {
                        failure: Some(error),
                        ..Extraction::default()
                    },
                );
            }
        };
        let answer = read(&first, batch, now);
        if answer.faults.is_empty() {
            count_facts(&answer);
            return outcome(
                "whole",
                Extraction {
                    facts: answer.facts,
                    failure: None,
                },
            );
        }
        prompt.extend(self.objection(&prompt, &first, &answer, language));
        let (mended, error) = match self.ask(prompt, language).await {
            Ok(text) => (read(&text, batch, now), None),
            Err(error) => (Answer::default(), Some(error)),
        };
        let failure = match error {
            Some(error) => answer.breaks_the_form().then_some(error),
            None => mended
                .breaks_the_form()
                .then_some(ExtractionError::Form(mended.faults.len())),
        };
        let name = match (&failure, mended.faults.is_empty()) {
            (Some(_), _) => "pending",
            (None, true) => "mended",
            (None, false) => "refused",
        };
        // What held the first time holds whatever became of it the second time.
        let mut all = mended;
        let again: Vec<Fact> = answer
            .facts
            .into_iter()
            .filter(|fact| !all.facts.iter().any(|other| other.content == fact.content))
            .collect();
        all.facts.extend(again);
        count_facts(&all);
        outcome(
            name,
            Extraction {
                facts: all.facts,
                failure,
            },
        )
    }

    fn question(&self, batch: &Batch, keys: &[String]) -> String {
        let counter = self.model.counter();
        let mut known = BTreeSet::new();
        let mut used = 0;
        for key in keys {
            used += counter.count(key) + 1;
            if used > KEY_TOKENS - OVERHEAD * 2 {
                break;
            }
            known.insert(key.as_str());
        }
        let known: Vec<&str> = known.into_iter().collect();
        format!(
            "known keys: {}\nmessages:\n{}",
            known.join(", "),
            batch.lines()
        )
    }

    /// The answer and what is wrong with it, as far as the input has room for them.
    fn objection(
        &self,
        prompt: &[PromptMessage],
        text: &str,
        answer: &Answer,
        language: Language,
    ) -> [PromptMessage; 2] {
        let counter = self.model.counter();
        let used: usize = prompt
            .iter()
            .map(|m| counter.count(&m.content) + OVERHEAD)
            .sum();
        let left = self
            .settings
            .max_input_tokens
            .saturating_sub(used)
            .max(REPAIR_TOKENS);
        let faults: Vec<String> = answer
            .faults
            .iter()
            .map(|fault| format!("- {fault}"))
            .collect();
        let faults = cut_middle(&faults.join("\n"), REPAIR_TOKENS / 2, counter);
        let objection = self.settings.repair(language, &faults);
        let left = left.saturating_sub(counter.count(&objection) + 2 * OVERHEAD);
        [
            said(Role::Assistant, cut_middle(text, left, counter)),
            said(Role::User, objection),
        ]
    }

    async fn ask(
        &self,
        messages: Vec<PromptMessage>,
        language: Language,
    ) -> Result<String, ExtractionError> {
        let request = ModelRequest {
            messages,
            tools: Vec::new(),
            max_output_tokens: self.settings.max_output_tokens,
            max_input_tokens: self.settings.max_input_tokens,
            recalled: Vec::new(),
            language,
            format: Some(AnswerFormat {
                name: SCHEMA_NAME,
                schema: schema(),
            }),
            temperature: Some(self.settings.temperature),
        };
        let asked = request.tokens(self.model.counter());
        let began = Instant::now();
        let answered = timeout(self.settings.timeout, self.collect(request)).await;
        histogram!("tidemark_extraction_seconds").record(began.elapsed().as_secs_f64());
        let (text, usage) =
            answered.map_err(|_| ExtractionError::TimedOut(self.settings.timeout))??;
        let usage = usage.unwrap_or_else(|| Usage {
            prompt_tokens: asked as u64,
            completion_tokens: self.model.counter().count(&text) as u64,
            estimated: true,
        });
        for (direction, tokens) in [
            ("prompt", usage.prompt_tokens),
            ("completion", usage.completion_tokens),
        ] {
            let model = self.model.name().to_owned();
            counter!("tidemark_extraction_tokens_total", "model" => model, "direction" => direction).increment(tokens);
        }
        Ok(text)
    }

    /// The text of an answer. A call of a tool, which none was offered for, is nothing.
    async fn collect(
        &self,
        request: ModelRequest,
    ) -> Result<(String, Option<Usage>), ExtractionError> {
        let mut stream = self.model.answer(request).await?;
        let mut text = String::new();
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::Text(piece) => text.push_str(&piece),
                ModelEvent::Finished { usage, .. } => return Ok((text, usage)),
                ModelEvent::Reasoning(_) | ModelEvent::ToolCall(_) => {}
            }
            if text.len() > LONGEST_ANSWER {
                return Err(ExtractionError::TooLong);
            }
        }
        Err(ModelError::Truncated.into())
    }
}

/// The keys of the owner's newest semantic memories, each once, so that the model calls the same thing by the same name. A caller may name a
/// key as it likes: what is more than a name is not shown.
///
/// # Errors
/// When the store fails.
pub async fn known_keys(store: &dyn Store, owner: Owner) -> StoreResult<Vec<String>> {
    let mut keys = store.keys_in_use(owner, KEY_MEMORIES).await?;
    let mut seen = BTreeSet::new();
    keys.retain(|key| is_name(key) && seen.insert(key.clone()));
    Ok(keys)
}

fn is_name(key: &str) -> bool {
    let of_names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ' ');
    key.chars().all(of_names) && injection::sign(key).is_none()
}

fn said(role: Role, content: String) -> PromptMessage {
    PromptMessage {
        role,
        content,
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

fn count_facts(answer: &Answer) {
    for (outcome, number) in [
        ("kept", answer.facts.len()),
        ("passed_over", answer.passed_over),
        ("refused", answer.faults.len()),
    ] {
        counter!("tidemark_extracted_facts_total", "outcome" => outcome).increment(number as u64);
    }
}

fn outcome(name: &'static str, extraction: Extraction) -> Extraction {
    counter!("tidemark_extractions_total", "outcome" => name).increment(1);
    if let Some(error) = &extraction.failure {
        tracing::warn!(%error, "facts could not be extracted; they are asked for again later");
    } else {
        tracing::debug!(
            outcome = name,
            facts = extraction.facts.len(),
            "facts were extracted"
        );
    }
    extraction
}

#[cfg(test)]
mod tests;
