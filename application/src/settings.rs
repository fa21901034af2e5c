//! What an operator may set of the use cases. Values are checked where they are read; these types are plain.

use std::time::Duration;

use tidemark_domain::memory::prompt::Language;
use tidemark_domain::memory::scoring::Profile;

use crate::ports::turns::{SharedLimits, TokenLimits};

/// How turns run.
#[derive(Clone, Debug)]
pub struct TurnSettings {
    /// How long a runner may be silent before its turn is taken from it.
    pub lease: Duration,
    /// How many turns of a session may wait.
    pub max_queued: i64,
    /// How many turns of an owner may be open.
    pub max_open_per_owner: i64,
    /// How many turns of a tenant and of a key may be open.
    pub max_open_shared: SharedLimits,
    /// How many tokens the turns of a tenant, of a key and of a user may use in a day.
    pub max_tokens: TokenLimits,
    /// How many sessions of this process may have an open turn.
    pub max_open: usize,
    /// How many turns of this process may run at once.
    pub max_running: usize,
    /// How many rounds of tool calls a turn may have; the round after them is asked without tools.
    pub max_rounds: u32,
    /// How long a turn may run.
    pub max_duration: Duration,
    /// How long text may be held to be sent together.
    pub coalesce: Duration,
    /// How many event numbers are reserved at a time.
    pub event_block: i64,
    /// The longest answer, in bytes; more is a failure of the model.
    pub max_answer_bytes: usize,
    /// How many tool calls of a turn ask for a review of the memory (A17; the number is ours).
    pub review_after_tool_calls: u32,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            max_queued: 8,
            max_open_per_owner: 64,
            max_open_shared: SharedLimits::default(),
            max_tokens: TokenLimits::default(),
            max_open: 8_192,
            max_running: 8_192,
            max_rounds: 8,
            max_duration: Duration::from_mins(10),
            coalesce: Duration::from_millis(25),
            event_block: 256,
            max_answer_bytes: 1 << 20,
            review_after_tool_calls: 10,
        }
    }
}

/// A text that the product says before the first answer of a session (A6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intro {
    /// Only in this channel.
    pub channel: Option<String>,
    /// Only in this language.
    pub language: Option<Language>,
    /// The text; `{agent}` stands for the agent's name.
    pub text: String,
}

/// What the model is told.
#[derive(Clone, Debug)]
pub struct PromptSettings {
    /// How the assistant is called.
    pub agent: String,
    /// The system prompt in English; `{agent}` stands for the agent's name.
    pub system_en: String,
    /// The system prompt in Chinese.
    pub system_zh: String,
    /// Introductions; the first that fits is taken.
    pub intros: Vec<Intro>,
    /// The model's window, in tokens.
    pub context_tokens: usize,
    /// The most it may write, in tokens.
    pub max_output_tokens: u32,
}

impl PromptSettings {
    /// The system prompt in that language.
    pub fn system(&self, language: Language) -> String {
        let text = match language {
            Language::English => &self.system_en,
            Language::Chinese => &self.system_zh,
        };
        text.replace("{agent}", &self.agent)
    }

    /// The introduction for a session's first answer (A6).
    pub fn intro(&self, channel: &str, language: Language) -> Option<String> {
        self.intros
            .iter()
            .find(|i| {
                i.channel.as_deref().is_none_or(|c| c == channel)
                    && i.language.is_none_or(|l| l == language)
            })
            .map(|i| i.text.replace("{agent}", &self.agent))
    }
}

impl Default for PromptSettings {
    fn default() -> Self {
        Self {
            agent: "Tidemark".to_owned(),
            system_en: "You are {agent}, a helpful assistant that remembers earlier conversations with this person. \
                        Answer in the language of the question unless the person prefers another."
                .to_owned(),
            system_zh: "你是{agent}，一个记得以往对话的助手。除非用户另有偏好，请用提问所用的语言回答。".to_owned(),
            intros: Vec::new(),
            context_tokens: 8_000,
            max_output_tokens: 1_024,
        }
    }
}

/// How recall works.
#[derive(Clone, Debug)]
pub struct RecallSettings {
    /// The scoring profile of those who name none.
    pub profile: Profile,
    /// How long recall may take within a turn; then the turn goes on without it.
    pub timeout: Duration,
    /// The most preferences in the profile block.
    pub max_preferences: usize,
    /// The most memories that are scored in full.
    pub candidates: usize,
    /// The most messages, committed but not yet indexed, that recall looks through.
    pub unindexed: u32,
    /// The memory that the indexes of all owners together may take, in bytes.
    pub index_bytes: usize,
}

impl Default for RecallSettings {
    fn default() -> Self {
        Self {
            profile: Profile::Hybrid,
            timeout: Duration::from_secs(2),
            max_preferences: 12,
            candidates: 100,
            unindexed: 200,
            index_bytes: 256 << 20,
        }
    }
}

/// How derived work runs.
#[derive(Clone, Debug)]
pub struct LearningSettings {
    /// How many new messages make a session due for consolidation (A12).
    pub threshold: i64,
    /// How old a message makes a session due with fewer (B6).
    pub interval: Duration,
    /// How long after an answer that was bad or did not come a model is asked again; doubled with each further one, up to an hour.
    pub extraction_retry: Duration,
    /// How many workers of work that needs the store alone this process runs.
    pub workers: usize,
    /// How many workers of work that may wait for a model it runs besides.
    pub model_workers: usize,
    /// How long a worker may be silent before its job is taken from it.
    pub lease: Duration,
    /// How often an idle worker looks for jobs whose time has come.
    pub poll: Duration,
    /// How often a job is tried before it is failed.
    pub max_attempts: i32,
    /// The most messages that one job takes; the rest is a job of its own.
    pub batch: u32,
    /// How often what has faded is archived (B12); never, when absent.
    pub fade_every: Option<Duration>,
}

impl Default for LearningSettings {
    fn default() -> Self {
        Self {
            threshold: tidemark_domain::boundary::DEFAULT_THRESHOLD,
            interval: Duration::from_mins(5),
            extraction_retry: Duration::from_secs(15),
            workers: 2,
            model_workers: 2,
            lease: Duration::from_mins(1),
            poll: Duration::from_secs(1),
            max_attempts: 8,
            batch: 200,
            fade_every: Some(Duration::from_hours(24)),
        }
    }
}

/// How a model extracts facts (B4, B6).
#[derive(Clone, Debug)]
pub struct ExtractionSettings {
    /// What the model is told to do with a conversation in English.
    pub prompt_en: String,
    /// The same in Chinese.
    pub prompt_zh: String,
    /// What it is told when its answer does not hold; `{faults}` stands for what is wrong.
    pub repair_en: String,
    /// The same in Chinese.
    pub repair_zh: String,
    /// How freely it writes.
    pub temperature: f64,
    /// The most tokens of one call, prompt and messages together.
    pub max_input_tokens: usize,
    /// The most tokens of an answer.
    pub max_output_tokens: u32,
    /// How long one call may take.
    pub timeout: Duration,
}

impl ExtractionSettings {
    /// The prompt in that language.
    pub fn prompt(&self, language: Language) -> &str {
        match language {
            Language::English => &self.prompt_en,
            Language::Chinese => &self.prompt_zh,
        }
    }

    /// The request to mend an answer with these faults, in that language.
    pub fn repair(&self, language: Language, faults: &str) -> String {
        let text = match language {
            Language::English => &self.repair_en,
            Language::Chinese => &self.repair_zh,
        };
        text.replace("{faults}", faults)
    }
}

impl Default for ExtractionSettings {
    fn default() -> Self {
        Self {
            prompt_en: include_str!("settings/extraction_en.txt").trim_end().to_owned(),
            prompt_zh: include_str!("settings/extraction_zh.txt").trim_end().to_owned(),
            repair_en: "Your answer does not hold:\n{faults}\nAnswer again with the whole JSON object, corrected, and nothing else. Leave out what \
                        the messages do not say."
                .to_owned(),
            repair_zh: "你的回答有以下问题：\n{faults}\n请重新给出改正后的完整 JSON 对象，不要输出其他内容。消息中没有说过的内容请删去。".to_owned(),
            temperature: 0.0,
            max_input_tokens: 12_000,
            max_output_tokens: 2_048,
            timeout: Duration::from_mins(1),
        }
    }
}
