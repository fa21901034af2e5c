//! What can be set. The comments here are the documentation that `tidemark config` and `tidemark.example.toml` show.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tidemark_application::settings as defaults;
use tidemark_application::settings::Intro;
use tidemark_domain::ids::TenantName;
use tidemark_domain::memory::embedding::MAX_DIMENSION;
use tidemark_domain::memory::scoring::Profile;

use super::describe::{Field, Section};
use super::load::{Limit, Source};
use super::setting::{
    AuthMode, EmbedderKind, HttpUrl, LogFilter, LogFormat, OriginList, RedisUrl, Secret, Setting,
    StoreUrl, Temperature,
};

macro_rules! limit {
    ($type:ty) => {
        Limit::<$type>::none()
    };
    ($type:ty, $range:expr) => {
        Limit::<$type>::range($range)
    };
}

macro_rules! section {
    ($(#[doc = $doc:literal])+ $section:ident {
        $($(#[doc = $fdoc:literal])+ $field:ident: $type:ty = $default:expr $(, $range:expr)?;)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $section { $($(#[doc = $fdoc])+ pub $field: $type),+ }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }

        impl $section {
            fn take(source: &mut Source, name: &str) -> Self {
                let path = |field: &str| if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") };
                Self { $($field: source.take(&path(stringify!($field)), $default, &limit!($type $(, $range)?))),+ }
            }

            fn describe(&self, name: &'static str, documentation: &'static [&'static str]) -> Section {
                Section {
                    name,
                    documentation,
                    fields: vec![$(Field {
                        name: stringify!($field),
                        documentation: &[$($fdoc),+],
                        allowed: limit!($type $(, $range)?).allowed,
                        secret: <$type as Setting>::SECRET,
                        value: self.$field.show(),
                    }),+],
                }
            }
        }
    };
}

macro_rules! tree {
    ($($(#[doc = $doc:literal])+ $field:ident: $section:ident $name:literal;)+) => {
        /// Everything that can be set.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings { $($(#[doc = $doc])+ pub $field: $section),+ }

        impl Settings {
            pub(super) fn take(source: &mut Source) -> Self {
                Self { $($field: $section::take(source, $name)),+ }
            }

            /// Every section with its fields, in their order.
            pub fn sections(&self) -> Vec<Section> {
                vec![$(self.$field.describe($name, &[$($doc),+])),+]
            }
        }
    };
}

tree! {
    /// The server itself.
    server: Server "";
    /// TLS. Without it the server speaks HTTP in the clear, and a proxy before it may add TLS.
    tls: TlsFiles "tls";
    /// Where data is kept.
    store: Store "store";
    /// Who may use the server.
    auth: Auth "auth";
    /// The identity provider whose JWTs are accepted beside API keys, for `auth.mode = "jwt"`: signed with RSA, ECDSA or Ed25519 by a key of its JWKS that `kid`
    /// names, with `exp`.
    jwt: Jwt "auth.jwt";
    /// Pages of other origins (CORS).
    cors: Cors "cors";
    /// The language model: any server that speaks OpenAI's chat-completions protocol. While `base_url` and `name` are unset, the built-in
    /// offline model answers from memory.
    model: Model "model";
    /// Embeddings, by which recall finds what is said in other words. Without an embedder recall works by words and times alone. Vectors are stored
    /// for each model; after a change of model all memories are embedded anew in the background.
    embedder: Embedder "embedder";
    /// The embedder that was used before, while memories are embedded anew: questions are embedded by it too, so that what only it has embedded is
    /// found meanwhile. `GET /v1/jobs` shows how far it is; then this section can go.
    previous_embedder: Embedder "previous_embedder";
    /// A second opinion on the order of what recall found, from a cross-encoder over HTTP: any server with `/rerank` in the form of Jina, Cohere, vLLM,
    /// Infinity and llama.cpp, or of text-embeddings-inference. It is sent the question and the memories that may be told. Whether anything is told
    /// is not its to say. Without one, or while it does not answer, recall keeps its own order.
    reranker: Reranker "reranker";
    /// What the model is told. `{agent}` stands for the agent's name in all texts.
    prompt: Prompt "prompt";
    /// How memories are found.
    recall: Recall "recall";
    /// How conversations become memories.
    learning: Learning "learning";
    /// How a model extracts facts from what is consolidated, beside the rules. Without a model the rules are alone.
    extraction: Extraction "extraction";
    /// Forgetting over time. A memory that was neither shown in an answer nor said again for long is archived: kept, searchable on request, and
    /// told again once it is shown or said again. What a person has stated or wishes, and what is pinned, is never archived so.
    forgetting: Forgetting "forgetting";
    /// How turns run.
    turn: Turn "turn";
    /// Streams of events.
    stream: Stream "stream";
    /// Live events between replicas. Without a Redis each replica tells the turns that it runs, and followers at others read the stored turns.
    events: Events "events";
    /// How much is taken on. What is beyond is refused for a moment, with Retry-After.
    limits: Limits "limits";
    /// Going down.
    shutdown: Shutdown "shutdown";
    /// Traces.
    telemetry: Telemetry "telemetry";
}

impl Embedder {
    /// The settings that its kind needs and that are unset.
    fn lacks(&self) -> impl Iterator<Item = &'static str> {
        let (server, here) = (
            self.kind == EmbedderKind::OpenAi,
            self.kind == EmbedderKind::Local,
        );
        [
            ("base_url", server && self.base_url.is_none()),
            ("name", server && self.name.is_none()),
            ("path", here && self.path.is_none()),
        ]
        .into_iter()
        .filter_map(|(field, lacks)| lacks.then_some(field))
    }
}

impl Jwt {
    /// The settings that a provider needs and that are unset.
    fn lacks(&self) -> impl Iterator<Item = &'static str> {
        [
            ("jwks_url", self.jwks_url.is_none()),
            ("issuer", self.issuer.is_none()),
            ("audience", self.audience.is_none()),
        ]
        .into_iter()
        .filter_map(|(field, lacks)| lacks.then_some(field))
    }

    /// What cannot be meant so.
    fn contradictions(&self, mode: AuthMode) -> Vec<String> {
        if mode == AuthMode::Jwt {
            let lacks = self.lacks();
            return lacks
                .map(|field| {
                    format!("auth.jwt.{field} is unset while auth.mode is jwt; allowed: a value")
                })
                .collect();
        }
        // Whoever names a provider believes that it is asked.
        let idle = self.jwks_url.is_some().then(|| {
            let mode = mode.as_str();
            format!("auth.mode is {mode} while auth.jwt.jwks_url is set; allowed: jwt")
        });
        idle.into_iter().collect()
    }
}

impl Reranker {
    /// What cannot be meant so.
    fn contradiction(&self, recall: &Recall) -> Option<String> {
        let idle = [
            ("model", self.model.is_some()),
            ("api_key", self.api_key.is_some()),
        ];
        if self.url.is_none() {
            let (field, _) = idle.into_iter().find(|(_, set)| *set)?;
            return Some(format!(
                "reranker.url is unset while reranker.{field} is set; allowed: the server's address"
            ));
        }
        // A turn would lose all that is recalled, and not the order alone.
        let late = self.timeout_ms >= recall.timeout_seconds * 1_000;
        late.then(|| {
            format!(
                "reranker.timeout_ms is {}; allowed: less than recall.timeout_seconds, which is {}",
                self.timeout_ms, recall.timeout_seconds
            )
        })
    }
}

/// A day, the most that most durations may be.
const DAY: u64 = 86_400;

/// The most tokens a day that a limit may name; without a limit there may be more.
const MOST_TOKENS: i64 = 1_000_000_000_000;

/// The most requests a minute that a limit may name; without a limit there may be more.
const MOST_REQUESTS: u32 = 10_000_000;

section! {
    /// The server itself.
    Server {
        /// Where to listen. Port 0 picks a free one. Without authentication only a loopback address is allowed.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        /// What is logged: a level (error, warn, info, debug, trace), or a filter such as `info,tidemark_interface=debug`.
        log: LogFilter = LogFilter("info".to_owned());
        /// How the log is written: "text" for people, "json" for an object a line.
        log_format: LogFormat = LogFormat::Text;
    }
}

section! {
    /// TLS.
    TlsFiles {
        /// The server's certificate and those that lead from it to a root, in PEM form. Renewed files are used for the next connection.
        cert: Option<PathBuf> = None;
        /// The private key of the certificate, not encrypted, in PEM form.
        key: Option<PathBuf> = None;
    }
}

section! {
    /// Where data is kept.
    Store {
        /// A file, as `sqlite://tidemark.db`, or a PostgreSQL database, as `postgres://user:password@host:5432/database`.
        url: StoreUrl = StoreUrl("sqlite://tidemark.db".to_owned());
        /// Bring the schema to this version at start. Without it, that is for `tidemark migrate` to do before.
        migrate: bool = true;
        /// The most connections to PostgreSQL. A file is read over at most 8.
        max_connections: u32 = 16, 1..=1_000;
    }
}

section! {
    /// Who may use the server.
    Auth {
        /// "none": whoever can reach it. Allowed on a loopback address alone. "keys": whoever has an API key, as `tidemark keys create` makes them.
        /// "jwt": these, and whoever has a JWT of the identity provider of `auth.jwt`.
        mode: AuthMode = AuthMode::None;
        /// How long a page stays signed in; then it is asked for its key again.
        session_hours: u64 = 24, 1..=8_760;
    }
}

section! {
    /// The identity provider.
    Jwt {
        /// Where its public keys are (JWKS): an address that begins with https://, or with http:// on a loopback address.
        jwks_url: Option<HttpUrl> = None;
        /// What `iss` must be, to the letter.
        issuer: Option<String> = None;
        /// What `aud` must be, or be among.
        audience: Option<String> = None;
        /// The claim that names the tenant, which must be there: `tidemark keys create --tenant` makes it with its first key.
        tenant_claim: String = "tenant".to_owned();
        /// The tenant of tokens without that claim. While unset they are refused.
        tenant: Option<TenantName> = None;
        /// The claim that names the user, with 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -
        user_claim: String = "sub".to_owned();
        /// The claim with the scopes: chat, memory:read, memory:write, tasks, admin; a text with a space between two, or a list. Other words are passed over.
        /// Whoever has `admin` may name any user of the tenant in `X-Tidemark-User`; all others are the user that the token names.
        scope_claim: String = "scope".to_owned();
        /// How often its keys are read. A token that names a key that is not among them has them read at once, every 10 seconds at most.
        refresh_seconds: u64 = 300, 10..=DAY;
        /// How long what was read holds while the keys cannot be read again. One that the provider took back is good for so long, should nobody be able
        /// to read that.
        stale_hours: u64 = 24, 1..=8_760;
    }
}

section! {
    /// Pages of other origins.
    Cors {
        /// The origins whose pages may use the API with a key or a token of theirs, or without one where `auth.mode` is none: a list of such as
        /// `https://app.example.org`; in the environment with a comma between two. The cookie of the own page is never theirs.
        origins: OriginList = OriginList::default();
    }
}

section! {
    /// The language model.
    Model {
        /// Where the server is, ending in /v1.
        base_url: Option<HttpUrl> = None;
        /// The model's name there.
        name: Option<String> = None;
        /// The name there of a smaller model that extracts facts; the model itself while unset.
        small_name: Option<String> = None;
        /// Sent as a bearer token.
        api_key: Option<Secret> = None;
        /// The model's window. The prompt shares what the answer leaves of it: 70 % history, 20 % system and tools, 10 % recall.
        context_tokens: usize = 8_000, 512..=10_000_000;
        /// The most tokens an answer may have.
        max_output_tokens: u32 = 1_024, 16..=1_000_000;
        /// How freely the model writes; its server's own default while unset.
        temperature: Option<Temperature> = None;
        /// How long a connection to the server may take to be made.
        connect_timeout_seconds: u64 = 10, 1..=DAY;
        /// How long the first piece of an answer may take.
        first_timeout_seconds: u64 = 120, 1..=DAY;
        /// How long each further piece may take.
        idle_timeout_seconds: u64 = 60, 1..=DAY;
        /// How long a whole answer may take.
        total_timeout_seconds: u64 = 900, 1..=DAY;
        /// How often a request is repeated while nothing of its answer has come.
        max_retries: u32 = 2, 0..=10;
        /// How many answers may come at once; further requests wait, as long as their turns may run.
        max_concurrent: usize = 8_192, 1..=100_000;
    }
}

section! {
    /// The embedder.
    Embedder {
        /// "none"; "openai": any server with OpenAI's `/embeddings`; "local": a model of BERT's family, computed in this process.
        kind: EmbedderKind = EmbedderKind::None;
        /// For "openai": where the server is, ending in /v1.
        base_url: Option<HttpUrl> = None;
        /// For "openai": the model's name there. For "local": what its vectors are stored under; while unset, the directory's name and a
        /// fingerprint of the model.
        name: Option<String> = None;
        /// For "openai": sent as a bearer token.
        api_key: Option<Secret> = None;
        /// For "local": a directory with `config.json`, `tokenizer.json` and `model.safetensors`, as sentence-transformers lays it out.
        path: Option<PathBuf> = None;
        /// Precedes each question, for models that are trained so: e5 wants "query: ".
        query_prefix: Option<String> = None;
        /// Precedes each memory: e5 wants "passage: ".
        passage_prefix: Option<String> = None;
        /// For "openai": how many numbers a vector is to have, for models that can shorten theirs; 0 leaves it to the model.
        dimensions: usize = 0, 0..=MAX_DIMENSION;
        /// The most memories that are embedded in one request.
        batch: usize = 32, 1..=256;
        /// How long such a request may take, with its retries.
        timeout_ms: u64 = 30_000, 100..=600_000;
        /// For "local": how many threads compute.
        threads: usize = 2, 1..=64;
    }
}

section! {
    /// The reranker.
    Reranker {
        /// Where the server is, up to `/rerank`.
        url: Option<HttpUrl> = None;
        /// The model's name there. A server that has one alone needs none; text-embeddings-inference is to get none.
        model: Option<String> = None;
        /// Sent as a bearer token.
        api_key: Option<Secret> = None;
        /// The most memories that are judged for a question, the best by recall's own order.
        candidates: usize = 30, 2..=100;
        /// How long that may take; then recall goes on without.
        timeout_ms: u64 = 300, 10..=10_000;
    }
}

section! {
    /// What the model is told.
    Prompt {
        /// How the assistant is called.
        agent: String = defaults::PromptSettings::default().agent;
        /// The system prompt of conversations in English.
        system_en: String = defaults::PromptSettings::default().system_en;
        /// The system prompt of conversations in Chinese.
        system_zh: String = defaults::PromptSettings::default().system_zh;
        /// Texts that precede the first answer of a session; the first that fits the session's channel and the question's language is taken:
        /// [{ text = "Hello, I am {agent}.", channel = "web", language = "en" }]
        intros: Vec<Intro> = Vec::new();
    }
}

section! {
    /// How memories are found.
    Recall {
        /// How relevance and time become a score: "hybrid" (relevance alone), "decay" (fades with disuse, grows with use), "recency" (slightly
        /// prefers what is new).
        profile: Profile = Profile::Hybrid;
        /// How long recall may take within a turn; then the turn goes on without it.
        timeout_seconds: u64 = 2, 1..=60;
        /// How long a question may take to be embedded; then recall goes on by words and times.
        embed_timeout_ms: u64 = 300, 10..=10_000;
        /// The most standing preferences that reach every prompt.
        max_preferences: usize = 12, 0..=100;
        /// The most memories that are scored in full for a question.
        candidates: usize = 100, 10..=10_000;
        /// The memory that the indexes of the users recalled lately may take together, in bytes; some 800 bytes a memory. Whose index is not
        /// held waits for it to be read at the next recall.
        index_bytes: usize = 268_435_456, 1_048_576..=1_099_511_627_776;
    }
}

section! {
    /// How conversations become memories.
    Learning {
        /// How many new messages make a session due for consolidation.
        threshold: i64 = 20, 1..=100_000;
        /// How old a message makes its session due with fewer.
        interval_seconds: u64 = 300, 1..=DAY;
        /// How many workers run here for work that needs the store alone.
        workers: usize = 2, 1..=64;
        /// How many workers run here besides for consolidation, which may wait for a model.
        model_workers: usize = 2, 1..=64;
        /// How long a worker may be silent before its work is taken from it.
        lease_seconds: u64 = 60, 2..=3_600;
        /// How often work is tried before it is failed and waits for a person.
        max_attempts: u32 = 8, 1..=100;
    }
}

section! {
    /// Forgetting over time.
    Forgetting {
        /// Whether anything is archived by itself.
        enabled: bool = true;
        /// How often is looked for what has faded. It takes months to fade, so there is no hurry; the first look is within a minute after the start.
        interval_seconds: u64 = DAY, 1..=DAY;
    }
}

section! {
    /// How a model extracts facts from what is consolidated, beside the rules. Without a model the rules are alone.
    Extraction {
        /// Whether a model is asked at all.
        enabled: bool = true;
        /// The most tokens of one call, prompt and messages together; never more than the model's window has beside the answer.
        max_input_tokens: usize = defaults::ExtractionSettings::default().max_input_tokens, 512..=12_000;
        /// The most tokens of an answer; never more than a quarter of the model's window.
        max_output_tokens: u32 = defaults::ExtractionSettings::default().max_output_tokens, 64..=100_000;
        /// How long a call may take. A bad answer gets a second call.
        timeout_seconds: u64 = 60, 1..=DAY;
        /// How long after an answer that was bad or did not come the model is asked again; doubled with each further one, up to an hour.
        retry_seconds: u64 = 15, 1..=DAY;
        /// How freely the model writes.
        temperature: Temperature = Temperature(defaults::ExtractionSettings::default().temperature);
        /// What the model is told to do with a conversation in English. What it must answer is checked, whatever it is told.
        prompt_en: String = defaults::ExtractionSettings::default().prompt_en;
        /// The same for a conversation in Chinese.
        prompt_zh: String = defaults::ExtractionSettings::default().prompt_zh;
        /// What it is told when its answer does not hold; `{faults}` stands for what is wrong.
        repair_en: String = defaults::ExtractionSettings::default().repair_en;
        /// The same in Chinese.
        repair_zh: String = defaults::ExtractionSettings::default().repair_zh;
    }
}

section! {
    /// How turns run.
    Turn {
        /// How long a turn's runner may be silent before the turn is taken from it and closed as interrupted.
        lease_seconds: u64 = 30, 2..=3_600;
        /// How long a turn may run.
        max_seconds: u64 = 600, 1..=DAY;
        /// How many rounds of tool calls a turn may have; then the model has to answer without tools.
        max_tool_rounds: u32 = 8, 0..=100;
    }
}

section! {
    /// Streams of events.
    Stream {
        /// How often a heartbeat comes, whatever the model does. Keep it below the idle timeout of every proxy in between.
        heartbeat_seconds: u64 = 15, 1..=3_600;
        /// How long a turn's events can be replayed one by one after its end.
        retention_seconds: u64 = 900, 1..=DAY;
        /// A file that gets a line for each event told, without its text; for debugging.
        event_log: Option<PathBuf> = None;
    }
}

section! {
    /// Live events between replicas.
    Events {
        /// The Redis that all replicas of a database share: `redis://user:password@host:6379/0`, or `rediss://` for TLS. It needs no
        /// persistence. While it is away, chat goes on.
        redis_url: Option<RedisUrl> = None;
        /// Precedes the name of each key there. Installations that share a Redis need different ones.
        redis_prefix: String = "tidemark:".to_owned();
    }
}

section! {
    /// How much is taken on.
    Limits {
        /// How many turns of a session may wait.
        queue_per_session: i64 = 8, 0..=1_000;
        /// How many turns of a user may be open.
        turns_per_user: i64 = 64, 1..=100_000;
        /// How many turns of a tenant may be open, at all replicas together; 0 for any number.
        turns_per_tenant: i64 = 0, 0..=1_000_000;
        /// The same for the turns that are asked for with one API key.
        turns_per_key: i64 = 0, 0..=1_000_000;
        /// How many requests a tenant may make in a minute, at each replica; 0 for any number. As many may come at once, and each further one once
        /// its share of the minute is over. What follows or stops a turn that is there is never counted.
        tenant_requests_per_minute: u32 = 0, 0..=MOST_REQUESTS;
        /// The same for each API key.
        key_requests_per_minute: u32 = 0, 0..=MOST_REQUESTS;
        /// The same for each user.
        user_requests_per_minute: u32 = 0, 0..=MOST_REQUESTS;
        /// How many tokens a tenant's turns may use in a day of UTC, prompts and answers together, at all replicas; 0 for any number. What a model's
        /// server does not report is estimated. Once they are used up no turn is accepted before the next day; none that runs is cut.
        tenant_tokens_per_day: i64 = 0, 0..=MOST_TOKENS;
        /// The same for turns that are asked for with one API key.
        key_tokens_per_day: i64 = 0, 0..=MOST_TOKENS;
        /// The same for the turns of each user.
        user_tokens_per_day: i64 = 0, 0..=MOST_TOKENS;
        /// How many sessions of this process may have an open turn.
        open_sessions: usize = 8_192, 1..=1_000_000;
        /// How many turns of this process may run at once; further ones wait.
        running_turns: usize = 8_192, 1..=1_000_000;
        /// How many connections of clients may be open; further ones wait.
        connections: usize = 10_000, 16..=1_000_000;
    }
}

section! {
    /// Going down.
    Shutdown {
        /// How long running turns and requests may take to end after SIGTERM or SIGINT.
        drain_seconds: u64 = 10, 1..=3_600;
    }
}

section! {
    /// Traces.
    Telemetry {
        /// Where traces go: an OTLP collector's HTTP address, such as `http://127.0.0.1:4318`. None are sent while it is unset.
        otlp_endpoint: Option<HttpUrl> = None;
        /// The name of the service in traces.
        service_name: String = "tidemark".to_owned();
    }
}

impl Settings {
    /// Values that are each allowed, but not together.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let model = &self.model;
        let mut wrong = Vec::new();
        match (&self.tls.cert, &self.tls.key) {
            (Some(_), None) => wrong.push(
                "tls.key is unset while tls.cert is set; allowed: both, or neither".to_owned(),
            ),
            (None, Some(_)) => wrong.push(
                "tls.cert is unset while tls.key is set; allowed: both, or neither".to_owned(),
            ),
            _ => {}
        }
        if model.base_url.is_some() && model.name.is_none() {
            wrong.push("model.name is unset while model.base_url is set; allowed: both, or neither for the offline model".to_owned());
        }
        if model.name.is_some() && model.base_url.is_none() {
            wrong.push("model.base_url is unset while model.name is set; allowed: both, or neither for the offline model".to_owned());
        }
        if model.max_output_tokens as usize >= model.context_tokens {
            wrong.push(format!(
                "model.max_output_tokens is {}; allowed: less than model.context_tokens, which is {}",
                model.max_output_tokens, model.context_tokens
            ));
        }
        for (section, embedder) in [
            ("embedder", &self.embedder),
            ("previous_embedder", &self.previous_embedder),
        ] {
            wrong.extend(embedder.lacks().map(|field| {
                let kind = embedder.kind.as_str();
                format!(
                    "{section}.{field} is unset while {section}.kind is {kind}; allowed: a value"
                )
            }));
        }
        if self.previous_embedder.kind != EmbedderKind::None
            && self.embedder.kind == EmbedderKind::None
        {
            wrong.push("embedder.kind is none while previous_embedder.kind is set; allowed: the embedder that takes its place".to_owned());
        }
        wrong.extend(self.reranker.contradiction(&self.recall));
        wrong.extend(self.jwt.contradictions(self.auth.mode));
        wrong
    }
}
