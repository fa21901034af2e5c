//! The types of values: how each is read from a file and from the environment, what is allowed, and how it is shown.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use figment::value::Value;
use reqwest::Url;
use tidemark_application::settings::Intro;
use tidemark_domain::ids::TenantName;
use tidemark_domain::memory::prompt::Language;
use tidemark_domain::memory::scoring::Profile;

/// A type of value.
pub trait Setting: Sized {
    /// What is allowed, for people.
    const ALLOWED: &'static str;
    /// Its value is never shown.
    const SECRET: bool = false;

    /// Reads a value of the file, which has a type of its own.
    fn read(value: &Value) -> Option<Self>;

    /// Reads a text of the environment, which has not.
    fn parse(text: &str) -> Option<Self>;

    /// The value as TOML; none where it is unset.
    fn show(&self) -> Option<String>;

    /// A text that was refused, as it may be repeated.
    fn repeatable(text: &str) -> String {
        text.to_owned()
    }
}

fn quoted(text: &str) -> String {
    if text.contains('\n') {
        // On one line, which can be commented out: JSON's escapes are TOML's too, and DEL, which JSON needs none for, has one there.
        return serde_json::Value::from(text)
            .to_string()
            .replace('\u{7f}', "\\u007f");
    }
    toml::Value::String(text.to_owned()).to_string()
}

macro_rules! whole_numbers {
    ($($type:ty),+) => { $(
        impl Setting for $type {
            const ALLOWED: &'static str = "a whole number";

            fn read(value: &Value) -> Option<Self> {
                let signed = value.to_i128();
                let number = signed.or_else(|| value.to_u128().and_then(|n| n.try_into().ok()))?;
                number.try_into().ok()
            }

            fn parse(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+ };
}

whole_numbers!(i64, u32, u64, usize);

impl Setting for bool {
    const ALLOWED: &'static str = "true or false";

    fn read(value: &Value) -> Option<Self> {
        value.to_bool()
    }

    fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// Types that are written as a text.
macro_rules! texts {
    ($($(#[$meta:meta])* $type:ty: $allowed:literal, $parse:expr, $show:expr;)+) => { $(
        impl Setting for $type {
            const ALLOWED: &'static str = $allowed;

            fn read(value: &Value) -> Option<Self> {
                Self::parse(value.as_str()?)
            }

            fn parse(text: &str) -> Option<Self> {
                $parse(text)
            }

            fn show(&self) -> Option<String> {
                let text: String = $show(self);
                Some(quoted(&text))
            }
        }
    )+ };
}

texts! {
    String: "a text that is not empty", |t: &str| (!t.trim().is_empty()).then(|| t.to_owned()), |s: &String| s.clone();
    PathBuf: "a path", |t: &str| (!t.is_empty()).then(|| PathBuf::from(t)), |p: &PathBuf| p.display().to_string();
    SocketAddr: "an IP address and a port, such as 127.0.0.1:8080", |t: &str| t.trim().parse().ok(), ToString::to_string;
    Profile: "hybrid, decay or recency", Profile::parse, |p: &Profile| p.as_str().to_owned();
    AuthMode: "none, keys or jwt", AuthMode::of, |m: &AuthMode| m.as_str().to_owned();
    LogFilter: "error, warn, info, debug, trace or off, or such for parts of the program, as in info,tidemark_interface=debug", LogFilter::of, |f: &LogFilter| f.0.clone();
    TenantName: "the name of a tenant: 1 to 64 of the characters A-Z a-z 0-9 . _ -", |t: &str| t.trim().parse().ok(), |n: &TenantName| n.as_str().to_owned();
    EmbedderKind: "none, openai or local", EmbedderKind::of, |k: &EmbedderKind| k.as_str().to_owned();
    LogFormat: "text or json", LogFormat::of, |f: &LogFormat| f.as_str().to_owned();
}

/// How requests are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Not at all; only on a loopback address.
    None,
    /// By API keys.
    Keys,
    /// By API keys, and by tokens of an identity provider.
    Jwt,
}

impl AuthMode {
    fn of(text: &str) -> Option<Self> {
        [Self::None, Self::Keys, Self::Jwt]
            .into_iter()
            .find(|mode| mode.as_str() == text)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Keys => "keys",
            Self::Jwt => "jwt",
        }
    }
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl LogFilter {
    /// What has no level is the name of a part for the filter's own parser: a misspelt level would silence all but a part of that name.
    fn of(text: &str) -> Option<Self> {
        const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
        let has_level = |directive: &str| {
            let level = directive.rsplit('=').next().unwrap_or_default().trim();
            LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level))
        };
        text.split(',')
            .all(has_level)
            .then(|| Self(text.trim().to_owned()))
    }
}

/// What embeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedderKind {
    /// Nothing.
    None,
    /// A server with OpenAI's protocol.
    OpenAi,
    /// A model that is computed here.
    Local,
}

impl EmbedderKind {
    fn of(text: &str) -> Option<Self> {
        [Self::None, Self::OpenAi, Self::Local]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OpenAi => "openai",
            Self::Local => "local",
        }
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

impl LogFormat {
    fn of(text: &str) -> Option<Self> {
        match text {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Shown instead of a password.
const HIDDEN: &str = "***";

/// An address with the login hidden as a whole: a password that is not encoded may hold anything, slashes too.
pub fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return HIDDEN.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}"),
        None => url.to_owned(),
    }
}

/// An address with its password hidden.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let Some((user, host)) = authority.rsplit_once('@') else {
        return url.to_owned();
    };
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}:{HIDDEN}@{host}{path}")
}

macro_rules! urls {
    ($($(#[$doc:meta])+ $type:ident: $allowed:literal, $schemes:expr, $hidden:expr;)+) => { $(
        $(#[$doc])+
        #[derive(Clone, PartialEq, Eq)]
        pub struct $type(pub String);

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$hidden(&self.0))
            }
        }

        impl Setting for $type {
            const ALLOWED: &'static str = $allowed;

            fn read(value: &Value) -> Option<Self> {
                Self::parse(value.as_str()?)
            }

            fn parse(text: &str) -> Option<Self> {
                let text = text.trim();
                let begins = |scheme: &&str| text.strip_prefix(*scheme).is_some_and(|rest| !rest.is_empty());
                $schemes.iter().any(begins).then(|| Self(text.to_owned()))
            }

            fn show(&self) -> Option<String> {
                Some(quoted(&$hidden(&self.0)))
            }

            fn repeatable(text: &str) -> String {
                $hidden(text)
            }
        }
    )+ };
}

urls! {
    /// Where the store is.
    StoreUrl: "sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE", ["sqlite://", "postgres://", "postgresql://"], without_password;
    /// Where a server is.
    HttpUrl: "an address that begins with http:// or https://", ["http://", "https://"], without_password;
    /// Where Redis is.
    RedisUrl: "redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS", ["redis://", "rediss://"], without_login;
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Setting for Secret {
    const ALLOWED: &'static str = "a text in quotes";
    const SECRET: bool = true;

    fn read(value: &Value) -> Option<Self> {
        Self::parse(value.as_str()?)
    }

    fn parse(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self(text.trim().to_owned()))
    }

    fn show(&self) -> Option<String> {
        Some(quoted(HIDDEN))
    }

    fn repeatable(_: &str) -> String {
        HIDDEN.to_owned()
    }
}

/// How freely a model writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(pub f64);

impl Setting for Temperature {
    const ALLOWED: &'static str = "a number, 0 to 2";

    fn read(value: &Value) -> Option<Self> {
        let whole = value
            .to_i128()
            .and_then(|n| i32::try_from(n).ok())
            .map(f64::from);
        let number = value.to_f64().or(whole)?;
        (0.0..=2.0).contains(&number).then_some(Self(number))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = text.trim().parse().ok()?;
        (0.0..=2.0).contains(&number).then_some(Self(number))
    }

    fn show(&self) -> Option<String> {
        Some(toml::Value::Float(self.0).to_string())
    }
}

/// A value that may be unset. An empty text of the environment counts as unset: orchestrators pass such.
impl<T: Setting> Setting for Option<T> {
    const ALLOWED: &'static str = T::ALLOWED;
    const SECRET: bool = T::SECRET;

    fn read(value: &Value) -> Option<Self> {
        T::read(value).map(Some)
    }

    fn parse(text: &str) -> Option<Self> {
        if text.trim().is_empty() {
            Some(None)
        } else {
            T::parse(text).map(Some)
        }
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(Setting::show)
    }

    fn repeatable(text: &str) -> String {
        T::repeatable(text)
    }
}

/// Origins of pages, each as browsers write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginList(pub Vec<String>);

impl Setting for OriginList {
    const ALLOWED: &'static str = "a list of origins such as https://app.example.org, without a path and without a port that goes without saying";

    fn read(value: &Value) -> Option<Self> {
        let origins = value.as_array()?.iter();
        origins
            .map(|value| origin(value.as_str()?))
            .collect::<Option<_>>()
            .map(Self)
    }

    fn parse(text: &str) -> Option<Self> {
        let origins = text.split(',').map(str::trim).filter(|o| !o.is_empty());
        origins.map(origin).collect::<Option<_>>().map(Self)
    }

    fn show(&self) -> Option<String> {
        let shown: Vec<_> = self.0.iter().map(|origin| quoted(origin)).collect();
        Some(format!("[{}]", shown.join(", ")))
    }
}

/// A text that a browser may send as an Origin: what is written in another way would never be met.
fn origin(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.chars().all(plain);
    let is_host = |c: char| plain(c) || "_:[]".contains(c);
    if !is_scheme || host.is_empty() || !host.chars().all(is_host) {
        return None;
    }
    // Those of apps and extensions have schemes that nothing is known of.
    let known = !matches!(scheme, "http" | "https")
        || Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == text);
    known.then(|| text.to_owned())
}

impl Setting for Vec<Intro> {
    const ALLOWED: &'static str = "a list of { text = \"…\", channel = \"…\", language = \"en\" or \"zh\" }, the last two optional";

    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(intro).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let table: figment::value::Dict = toml::from_str(&format!("intros = {text}")).ok()?;
        Self::read(table.get("intros")?)
    }

    fn show(&self) -> Option<String> {
        let shown = self.iter().map(|intro| {
            let mut fields = vec![format!("text = {}", quoted(&intro.text))];
            if let Some(channel) = &intro.channel {
                fields.push(format!("channel = {}", quoted(channel)));
            }
            if let Some(language) = intro.language {
                let name = LANGUAGES
                    .iter()
                    .find(|(_, l)| *l == language)
                    .map_or("", |(name, _)| name);
                fields.push(format!("language = {}", quoted(name)));
            }
            format!("{{ {} }}", fields.join(", "))
        });
        Some(format!("[{}]", shown.collect::<Vec<_>>().join(", ")))
    }
}

const LANGUAGES: [(&str, Language); 2] = [("en", Language::English), ("zh", Language::Chinese)];

fn intro(value: &Value) -> Option<Intro> {
    let fields = value.as_dict()?;
    let known = ["text", "channel", "language"];
    if fields.keys().any(|name| !known.contains(&name.as_str())) {
        return None;
    }
    let text = |name: &str| fields.get(name).map(|v| v.as_str().map(ToOwned::to_owned));
    let language = match text("language") {
        None => None,
        Some(name) => Some(
            LANGUAGES
                .iter()
                .find(|(n, _)| Some(*n) == name.as_deref())?
                .1,
        ),
    };
    Some(Intro {
        text: text("text")??,
        channel: text("channel").map_or(Some(None), |c| c.map(Some))?,
        language,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden_and_the_rest_of_an_address_shown() {
        assert_eq!(
            without_password("postgres://me:pw@db:5432/x?a=b"),
            "postgres://me:***@db:5432/x?a=b"
        );
        assert_eq!(
            without_password("postgres://me:p@w@db/x"),
            "postgres://me:***@db/x"
        );
        assert_eq!(without_password("sqlite:///a@b.db"), "sqlite:///a@b.db");
        assert_eq!(
            format!("{:?}", StoreUrl("postgres://me:pw@db/x".to_owned())),
            "postgres://me:***@db/x"
        );
    }

    #[test]
    fn a_login_of_redis_is_hidden_whatever_it_holds() {
        for (url, shown) in [
            ("redis://:p/w@cache:6379/1", "redis://***@cache:6379/1"),
            ("rediss://me:p@w@cache", "rediss://***@cache"),
            ("redis://cache:6379", "redis://cache:6379"),
            ("my-password@cache", "***"),
        ] {
            assert_eq!(RedisUrl::repeatable(url), shown);
        }
        let url = RedisUrl::parse("redis://:secret@cache").unwrap();
        let text = format!("{url:?} {}", url.show().unwrap());
        assert!(!text.contains("secret"), "{text}");
        for bad in ["cache:6379", "redis://", "http://cache"] {
            assert!(RedisUrl::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_neither_shown_nor_repeated() {
        let secret = Secret::parse("12345").unwrap();
        assert_eq!(secret.expose(), "12345");
        assert_eq!(
            format!("{secret:?} {}", secret.show().unwrap()),
            "*** \"***\""
        );
        assert_eq!(Option::<Secret>::repeatable("12345"), "***");
    }

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        let text =
            "https://app.example.org, http://localhost:3000,http://[::1]:1,tauri://localhost,";
        let list = OriginList::parse(text).unwrap();
        assert_eq!(list.0.len(), 4);
        assert_eq!(
            list.show().unwrap(),
            "[\"https://app.example.org\", \"http://localhost:3000\", \"http://[::1]:1\", \"tauri://localhost\"]"
        );
        assert_eq!(OriginList::parse(" "), Some(OriginList::default()));
        for bad in [
            "*",
            "null",
            "app.example.org",
            "https://",
            "https://*.example.org",
            "https://App.example.org",
            "https://app.example.org/",
            "https://app.example.org/x",
            "https://app.example.org:443",
            "http://localhost:80",
            "https://me@app.example.org",
            "https://app.example.org:x",
            "HTTPS://app.example.org",
        ] {
            assert_eq!(OriginList::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn introductions_are_read_and_shown_alike() {
        let text = r#"[{ text = "Hello, I am {agent}.", channel = "web", language = "en" }, { text = "你好" }]"#;
        let intros = Vec::<Intro>::parse(text).unwrap();
        assert_eq!(intros[1].language, None);
        assert_eq!(
            Vec::<Intro>::parse(&intros.show().unwrap()).unwrap(),
            intros
        );
        for bad in [
            "{}",
            "[{ text = 1 }]",
            r#"[{ channel = "x" }]"#,
            r#"[{ text = "x", language = "fr" }]"#,
            r#"[{ text = "x", colour = "red" }]"#,
        ] {
            assert!(Vec::<Intro>::parse(bad).is_none(), "{bad}");
        }
    }
}
