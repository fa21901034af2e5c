//! The settings as a documented TOML file: what `tidemark config` prints and `tidemark.example.toml` holds.

use std::fmt::Write as _;

use super::Settings;
use super::load::variable;

/// A section as it is documented.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name; empty at the top.
    pub name: &'static str,
    /// Lines of documentation.
    pub documentation: &'static [&'static str],
    /// Its settings.
    pub fields: Vec<Field>,
}

/// A setting as it is documented.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Lines of documentation.
    pub documentation: &'static [&'static str],
    /// What is allowed.
    pub allowed: String,
    /// Its value is never shown.
    pub secret: bool,
    /// Its value as TOML; none where it is unset.
    pub value: Option<String>,
}

impl Section {
    /// The path of a field.
    pub fn path_of(&self, field: &str) -> String {
        if self.name.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.name)
        }
    }
}

/// The settings that hold, with their documentation; secrets are hidden.
pub fn effective(settings: &Settings) -> String {
    render(
        "# The effective settings.\n",
        settings,
        |field| match &field.value {
            Some(_) if field.secret => format!("# {} is set, and hidden\n", field.name),
            Some(value) => format!("{} = {value}\n", field.name),
            None => format!("# {} is unset\n", field.name),
        },
    )
}

/// The defaults as a file to begin with: everything documented, nothing set.
pub fn example() -> String {
    let header = "# Tidemark's settings, all at their defaults. Copy this to tidemark.toml and uncomment what is to change.\n\
                  # Each can be set in the environment too, which wins: the variable is named beside it.\n\
                  # Generated from the program by `tidemark config --example`.\n";
    render(header, &Settings::default(), |field| match &field.value {
        Some(value) => format!("#{} = {value}\n", field.name),
        None => format!("#{} =\n", field.name),
    })
}

fn render(header: &str, settings: &Settings, line: impl Fn(&Field) -> String) -> String {
    let mut text = header.to_owned();
    for section in settings.sections() {
        text.push('\n');
        if !section.name.is_empty() {
            comment(&mut text, section.documentation);
            let _ = writeln!(text, "[{}]", section.name);
        }
        for (i, field) in section.fields.iter().enumerate() {
            if i > 0 {
                text.push('\n');
            }
            comment(&mut text, field.documentation);
            let _ = writeln!(
                text,
                "# {}: {}",
                variable(&section.path_of(field.name)),
                field.allowed
            );
            text.push_str(&line(field));
        }
    }
    text
}

fn comment(text: &mut String, lines: &[&str]) {
    for line in lines {
        let _ = writeln!(text, "#{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_example_in_the_repository_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tidemark.example.toml");
        if std::env::var_os("TIDEMARK_UPDATE").is_some() {
            std::fs::write(path, example()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap(),
            example(),
            "run with TIDEMARK_UPDATE=1"
        );
    }

    #[test]
    fn what_is_printed_can_be_read_again_and_means_the_same() {
        let printed = effective(&Settings::default());
        let read = super::super::load::load(Some((Path::new("t.toml"), &printed)), []).unwrap();
        assert_eq!(read.settings, Settings::default());
    }

    #[test]
    fn the_example_can_be_used_as_it_is_and_with_any_one_line_uncommented() {
        let example = example();
        let read = |text: &str| super::super::load::load(Some((Path::new("t.toml"), text)), []);
        assert_eq!(read(&example).unwrap().settings, Settings::default());
        for line in example.lines() {
            let Some(setting) = line.strip_prefix('#').filter(|s| !s.starts_with(' ')) else {
                continue;
            };
            if setting.ends_with('=') {
                continue;
            }
            let changed = example.replacen(line, setting, 1);
            read(&changed).unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        }
    }

    #[test]
    fn every_line_of_the_example_can_be_uncommented() {
        let example = example();
        let lines: Vec<&str> = example
            .lines()
            .filter(|line| !line.starts_with("# ") && !line.ends_with('='))
            .map(|line| line.strip_prefix('#').unwrap_or(line))
            .collect();
        let lines = lines.join("\n");
        let read = super::super::load::load(Some((Path::new("t.toml"), &lines)), []).unwrap();
        assert_eq!(read.settings, Settings::default());
    }

    #[test]
    fn secrets_are_not_printed() {
        let environment = [
            ("TIDEMARK_MODEL__API_KEY".into(), "sk-secret".into()),
            (
                "TIDEMARK_STORE__URL".into(),
                "postgres://me:pw-secret@db/x".into(),
            ),
        ];
        let settings = super::super::load::load(None, environment)
            .unwrap()
            .settings;
        let printed = effective(&settings);
        assert!(
            !printed.contains("secret@") && !printed.contains("sk-secret"),
            "{printed}"
        );
        assert!(
            printed.contains("api_key is set") && printed.contains("postgres://me:***@db/x"),
            "{printed}"
        );
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
