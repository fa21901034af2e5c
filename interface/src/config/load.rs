//! Reading: layers are merged, each setting is taken from them, typed and checked; what is wrong is gathered and told at once.

use std::ffi::OsString;
use std::path::Path;

use figment::Figment;
use figment::value::Value;

use super::layers::{self, ENVIRONMENT, Layer};
use super::sections::Settings;
use super::setting::Setting;
use super::{ConfigError, Loaded};

/// Every variable of ours begins so.
const PREFIX: &str = "TIDEMARK_";

/// The variable of a setting.
pub(super) fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").to_ascii_uppercase())
}

/// Which values of a type a setting allows.
pub(super) struct Limit<T> {
    pub(super) allowed: String,
    pub(super) holds: Box<dyn Fn(&T) -> bool>,
}

impl<T: Setting> Limit<T> {
    /// All of its type.
    pub(super) fn none() -> Self {
        Self {
            allowed: T::ALLOWED.to_owned(),
            holds: Box::new(|_| true),
        }
    }
}

impl<T: Setting + PartialOrd + std::fmt::Display + 'static> Limit<T> {
    /// Those of a range.
    pub(super) fn range(range: std::ops::RangeInclusive<T>) -> Self {
        Self {
            allowed: format!("{}, {} to {}", T::ALLOWED, range.start(), range.end()),
            holds: Box::new(move |value| range.contains(value)),
        }
    }
}

/// What the settings are taken from.
pub(super) struct Source {
    figment: Figment,
    wrong: Vec<String>,
}

impl Source {
    /// The value at `path`, else the default. What cannot be read or is not allowed is noted.
    pub(super) fn take<T: Setting>(&mut self, path: &str, default: T, limit: &Limit<T>) -> T {
        let Ok(value) = self.figment.find_value(path) else {
            return default;
        };
        let origin = self
            .figment
            .get_metadata(value.tag())
            .map_or_else(String::new, |m| m.name.to_string());
        let text = value.as_str().filter(|_| origin == ENVIRONMENT);
        let taken = match text {
            Some(text) => T::parse(text),
            None => T::read(&value),
        };
        if let Some(taken) = taken.filter(|t| (limit.holds)(t)) {
            return taken;
        }
        let place = if text.is_some() {
            variable(path)
        } else {
            origin
        };
        let given = if T::SECRET {
            "***".to_owned()
        } else {
            given::<T>(&value)
        };
        self.wrong.push(format!(
            "{path} is {given} in {place}; allowed: {}",
            limit.allowed
        ));
        default
    }
}

/// What was given, as it may be repeated.
fn given<T: Setting>(value: &Value) -> String {
    match value {
        Value::String(_, text) => format!("{:?}", T::repeatable(text)),
        Value::Num(_, n) => n
            .to_i128()
            .map(|n| n.to_string())
            .or_else(|| n.to_f64().map(|n| n.to_string()))
            .unwrap_or_default(),
        Value::Bool(_, b) => b.to_string(),
        other => format!("a value of another type ({})", other.to_actual()),
    }
}

pub(super) fn load(
    file: Option<(&Path, &str)>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Loaded, ConfigError> {
    let known: Vec<String> = Settings::default()
        .sections()
        .iter()
        .flat_map(|section| {
            section
                .fields
                .iter()
                .map(|field| section.path_of(field.name))
        })
        .collect();
    let mut wrong = Vec::new();
    let mut figment = Figment::new();
    if let Some((path, text)) = file {
        let layer = layers::of_file(path, text)?;
        wrong.extend(
            layer
                .paths()
                .iter()
                .filter(|name| !known.contains(name))
                .map(|name| unknown(name, path, &known)),
        );
        figment = figment.merge(layer);
    }
    let mut layer = Layer::of_environment();
    let mut warnings = Vec::new();
    for (name, value) in environment {
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) {
            continue;
        }
        let Some(path) = known.iter().find(|path| variable(path) == *name) else {
            warnings.push(format!(
                "the environment variable {name} is ignored: there is no such setting"
            ));
            continue;
        };
        match value.into_string() {
            Ok(text) => layer.insert(path, text),
            Err(_) => wrong.push(format!(
                "{path} is not valid UTF-8 in {name}; allowed: text"
            )),
        }
    }
    warnings.sort();
    let mut source = Source {
        figment: figment.merge(layer),
        wrong,
    };
    let settings = Settings::take(&mut source);
    source.wrong.extend(settings.contradictions());
    if source.wrong.is_empty() {
        Ok(Loaded { settings, warnings })
    } else {
        Err(ConfigError::Refused(source.wrong))
    }
}

fn unknown(name: &str, file: &Path, known: &[String]) -> String {
    let section = name
        .rsplit_once('.')
        .map(|(section, _)| format!("{section}."));
    let beside: Vec<&str> = known
        .iter()
        .filter(|path| match &section {
            Some(section) => path.starts_with(section.as_str()),
            None => !path.contains('.'),
        })
        .map(String::as_str)
        .collect();
    let sections: Vec<&str> = Settings::default()
        .sections()
        .iter()
        .map(|s| s.name)
        .filter(|n| !n.is_empty())
        .collect();
    if beside.is_empty() {
        format!(
            "{name} in {} is unknown; the sections are: {}",
            file.display(),
            sections.join(", ")
        )
    } else {
        format!(
            "{name} in {} is unknown; allowed: {}",
            file.display(),
            beside.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::setting::Temperature;

    fn read(file: &str, environment: &[(&str, &str)]) -> Result<Loaded, String> {
        let environment = environment
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load(Some((Path::new("t.toml"), file)), environment).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_lies_above_the_defaults_and_the_environment_above_the_file() {
        let file =
            "listen = \"127.0.0.1:1\"\n[stream]\nheartbeat_seconds = 3\nretention_seconds = 4\n";
        let loaded = read(file, &[("TIDEMARK_STREAM__RETENTION_SECONDS", "5")]).unwrap();
        assert_eq!(loaded.settings.server.listen.port(), 1);
        assert_eq!(loaded.settings.stream.heartbeat_seconds, 3);
        assert_eq!(loaded.settings.stream.retention_seconds, 5);
        assert_eq!(loaded.settings.learning.threshold, 20);
    }

    #[test]
    fn a_value_of_the_environment_has_the_type_of_its_setting() {
        let loaded = read(
            "",
            &[
                ("TIDEMARK_MODEL__API_KEY", "123456"),
                ("TIDEMARK_PROMPT__AGENT", "true"),
                ("TIDEMARK_STORE__MIGRATE", "false"),
                ("TIDEMARK_MODEL__TEMPERATURE", "0"),
                ("TIDEMARK_MODEL__BASE_URL", ""),
            ],
        );
        let settings = loaded.unwrap().settings;
        let model = settings.model;
        assert_eq!(model.api_key.unwrap().expose(), "123456");
        assert_eq!(settings.prompt.agent, "true");
        assert_eq!(model.base_url, None);
        assert_eq!(model.temperature, Some(Temperature(0.0)));
    }

    #[test]
    fn a_bad_value_is_told_with_its_name_what_was_given_and_what_is_allowed() {
        for (file, environment, told) in [
            (
                "[stream]\nheartbeat_seconds = 0",
                None,
                "stream.heartbeat_seconds is 0 in t.toml; allowed: a whole number, 1 to",
            ),
            (
                "[stream]\nheartbeat_seconds = \"3\"",
                None,
                "stream.heartbeat_seconds is \"3\" in t.toml",
            ),
            (
                "[turn]\nlease_seconds = 1.5",
                None,
                "turn.lease_seconds is 1.5 in t.toml",
            ),
            (
                "",
                Some(("TIDEMARK_AUTH__MODE", "key")),
                "auth.mode is \"key\" in TIDEMARK_AUTH__MODE; allowed: none, keys or jwt",
            ),
            (
                "",
                Some(("TIDEMARK_LEARNING__THRESHOLD", "-1")),
                "learning.threshold is \"-1\" in TIDEMARK_LEARNING__THRESHOLD",
            ),
            (
                "",
                Some(("TIDEMARK_STORE__URL", "mysql://me:pw@h/x")),
                "store.url is \"mysql://me:***@h/x\"",
            ),
            (
                "[model]\napi_key = 12345",
                None,
                "model.api_key is *** in t.toml; allowed: a text",
            ),
            (
                "log = \"loud\"",
                None,
                "log is \"loud\" in t.toml; allowed: error, warn, info, debug, trace or off",
            ),
            (
                "",
                Some(("TIDEMARK_LOG", "info,tidemark_interface")),
                "log is \"info,tidemark_interface\" in TIDEMARK_LOG; allowed: error",
            ),
            ("store = 3", None, "store in t.toml is unknown"),
        ] {
            let environment: Vec<_> = environment.into_iter().collect();
            let refused = read(file, &environment).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn a_log_filter_names_levels() {
        for filter in [
            "debug",
            "INFO",
            "off",
            "info,tidemark_interface=debug",
            "warn, a::b=trace",
        ] {
            let loaded = read("", &[("TIDEMARK_LOG", filter)]).unwrap();
            assert_eq!(loaded.settings.server.log.0, filter);
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let refused = read(
            "colour = 1\n[stream]\nheartbeat_secons = 3\n[colours]\nkind = \"local\"",
            &[("TIDEMARK_LISTEN", "nowhere")],
        )
        .unwrap_err();
        for told in [
            "colour in t.toml",
            "stream.heartbeat_secons",
            "colours.kind in t.toml is unknown; the sections are",
            "listen is \"nowhere\"",
        ] {
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[test]
    fn an_unknown_variable_is_a_warning() {
        let loaded = read(
            "",
            &[
                ("TIDEMARK_PORT", "tcp://10.0.0.1:80"),
                ("TIDEMARK_COLOURS__KIND", "none"),
                ("HOME", "/"),
            ],
        )
        .unwrap();
        assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
        assert!(loaded.warnings[1].contains("TIDEMARK_PORT"));
    }

    #[test]
    fn a_broken_file_is_told_by_its_line_without_showing_it() {
        let refused = read("[model]\napi_key = sk-secret\n", &[]).unwrap_err();
        assert!(
            refused.contains("t.toml")
                && refused.contains("line 2")
                && !refused.contains("sk-secret"),
            "{refused}"
        );
    }

    #[test]
    fn a_model_needs_both_its_address_and_its_name() {
        let refused =
            read("", &[("TIDEMARK_MODEL__BASE_URL", "http://127.0.0.1:1/v1")]).unwrap_err();
        assert!(refused.contains("model.name"), "{refused}");
        let refused = read("", &[("TIDEMARK_MODEL__NAME", "x")]).unwrap_err();
        assert!(refused.contains("model.base_url"), "{refused}");
    }

    #[test]
    fn an_embedder_needs_what_its_kind_needs() {
        for (file, told) in [
            (
                "[embedder]\nkind = \"openai\"\nname = \"m\"",
                "embedder.base_url is unset while embedder.kind is openai",
            ),
            (
                "[embedder]\nkind = \"openai\"\nbase_url = \"http://a/v1\"",
                "embedder.name is unset while embedder.kind is openai",
            ),
            (
                "[embedder]\nkind = \"local\"",
                "embedder.path is unset while embedder.kind is local",
            ),
            (
                "[embedder]\nkind = \"onnx\"",
                "embedder.kind is \"onnx\" in t.toml; allowed: none, openai or local",
            ),
        ] {
            let refused = read(file, &[]).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
        let prefixed = read("", &[("TIDEMARK_EMBEDDER__QUERY_PREFIX", "query: ")]).unwrap();
        assert_eq!(
            prefixed.settings.embedder.query_prefix.as_deref(),
            Some("query: ")
        );
    }

    #[test]
    fn a_reranker_needs_its_address_and_answers_before_recall_is_given_up() {
        for (file, told) in [
            (
                "[reranker]\nmodel = \"m\"",
                "reranker.url is unset while reranker.model is set",
            ),
            (
                "[reranker]\napi_key = \"s3cret\"",
                "reranker.url is unset while reranker.api_key is set",
            ),
            (
                "[reranker]\nurl = \"there\"",
                "reranker.url is \"there\" in t.toml; allowed: an address",
            ),
            (
                "[reranker]\nurl = \"http://a\"\ntimeout_ms = 2000",
                "reranker.timeout_ms is 2000; allowed: less than recall.timeout_seconds, which is 2",
            ),
            (
                "[reranker]\nurl = \"http://a\"\ncandidates = 1",
                "reranker.candidates is 1 in t.toml; allowed: a whole number, 2 to 100",
            ),
        ] {
            let refused = read(file, &[]).unwrap_err();
            assert!(refused.contains(told), "{refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
        let set = read("", &[("TIDEMARK_RERANKER__URL", "http://127.0.0.1:1")]).unwrap();
        assert_eq!(set.settings.reranker.candidates, 30);
    }

    #[test]
    fn an_identity_provider_needs_its_address_its_issuer_and_its_audience() {
        let whole = "[auth]\nmode = \"jwt\"\n[auth.jwt]\njwks_url = \"https://id/keys\"\nissuer = \"i\"\naudience = \"a\"";
        let set = read(whole, &[("TIDEMARK_AUTH__JWT__TENANT", "acme")]).unwrap();
        let jwt = set.settings.jwt;
        assert_eq!(jwt.issuer.as_deref(), Some("i"));
        assert_eq!(jwt.tenant.unwrap().as_str(), "acme");
        assert_eq!(jwt.user_claim, "sub");
        for (from, to, told) in [
            (
                "jwks_url",
                "# ",
                "auth.jwt.jwks_url is unset while auth.mode is jwt",
            ),
            (
                "issuer",
                "# ",
                "auth.jwt.issuer is unset while auth.mode is jwt",
            ),
            (
                "audience",
                "# ",
                "auth.jwt.audience is unset while auth.mode is jwt",
            ),
            (
                "\"jwt\"",
                "\"keys\"",
                "auth.mode is keys while auth.jwt.jwks_url is set; allowed: jwt",
            ),
            (
                "audience",
                "audiense",
                "auth.jwt.audiense in t.toml is unknown; allowed:",
            ),
        ] {
            let refused = read(&whole.replacen(from, to, 1), &[]).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
        let refused = read(whole, &[("TIDEMARK_AUTH__JWT__TENANT", "a b")]).unwrap_err();
        assert!(refused.contains("auth.jwt.tenant is \"a b\""), "{refused}");
    }

    #[test]
    fn the_room_for_an_answer_is_less_than_the_window() {
        let refused = read("[model]\ncontext_tokens = 1024", &[]).unwrap_err();
        assert!(
            refused.contains("model.max_output_tokens is 1024"),
            "{refused}"
        );
    }
}
