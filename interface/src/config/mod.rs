//! The settings: one documented tree, from which reading, checking, `tidemark config` and `tidemark.example.toml` all come.
//!
//! Defaults lie below the file, the file below the environment. To add a setting: a line in [`sections`]; a new type of value
//! implements [`Setting`](setting::Setting).

pub mod describe;
mod layers;
mod load;
pub mod sections;
pub mod setting;

use std::path::{Path, PathBuf};

pub use self::sections::Settings;

/// The file that is read when none is named and it is there.
pub const DEFAULT_FILE: &str = "tidemark.toml";

/// Settings that were read.
#[derive(Debug)]
pub struct Loaded {
    /// What holds.
    pub settings: Settings,
    /// What was ignored, for the log.
    pub warnings: Vec<String>,
}

/// The settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML. The line is named, not shown: it may hold a secret.
    #[error("the configuration file {} is not valid TOML: {message} (line {line})", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
        /// Where.
        line: usize,
    },
    /// Values that are not allowed and keys that do not exist, each with its name, what was given and what is allowed.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
}

/// Reads the settings from `file`, or from [`DEFAULT_FILE`] where it exists, and from this process's environment.
///
/// # Errors
/// When they cannot be used.
pub fn load(file: Option<&Path>) -> Result<Loaded, ConfigError> {
    let default = Path::new(DEFAULT_FILE);
    let file = file.or_else(|| default.exists().then_some(default));
    let text = file
        .map(|path| {
            std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            })
        })
        .transpose()?;
    let file = file.zip(text.as_deref());
    load::load(file, std::env::vars_os())
}
