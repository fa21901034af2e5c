//! Where values come from: the file and the environment, as layers for figment.

use std::path::Path;

use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::ConfigError;

/// One source of values.
#[derive(Debug)]
pub(super) struct Layer {
    name: String,
    values: Dict,
}

/// The name of the layer of the environment.
pub(super) const ENVIRONMENT: &str = "environment";

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// The values of a file.
pub(super) fn of_file(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let values = toml::from_str(text).map_err(|error| ConfigError::Malformed {
        path: path.to_owned(),
        message: error.message().to_owned(),
        line: error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].lines().count().max(1)
        }),
    })?;
    Ok(Layer {
        name: path.display().to_string(),
        values,
    })
}

impl Layer {
    /// Of the environment; empty.
    pub(super) fn of_environment() -> Self {
        Self {
            name: ENVIRONMENT.to_owned(),
            values: Dict::new(),
        }
    }

    /// Adds a text at a path such as `store.url`.
    pub(super) fn insert(&mut self, path: &str, text: String) {
        let mut values = &mut self.values;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                values.insert(name.to_owned(), Value::from(text));
                return;
            }
            let section = values.entry(name.to_owned());
            match section.or_insert_with(|| Value::from(Dict::new())) {
                Value::Dict(_, fields) => values = fields,
                _ => return,
            }
        }
    }

    /// The paths of all values, for the search of unknown ones. Sections are opened, and sections within them. A section without values says
    /// nothing: the example has only such until a line is uncommented.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        gather(&self.values, "", &mut paths);
        paths
    }
}

fn gather(values: &Dict, within: &str, paths: &mut Vec<String>) {
    for (name, value) in values {
        let path = format!("{within}{name}");
        match value {
            Value::Dict(_, fields) => gather(fields, &format!("{path}."), paths),
            _ => paths.push(path),
        }
    }
}
