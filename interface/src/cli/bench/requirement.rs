//! What a benchmark has to reach: `recall@10=0.70`, `multi-hop/all@10=0.45`, `negatives<=0.2`.

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use crate::cli::tell;

/// Measured figures by name.
pub(super) trait Figures {
    /// The figure of that name, of a category where one is named.
    fn figure(&self, category: Option<&str>, name: &str) -> Option<f64>;
}

/// Tells whether each requirement holds; the command succeeds when all do.
///
/// # Errors
/// When one names a figure that was not measured: a requirement that nothing can miss proves nothing.
pub(super) fn judged(
    requirements: &[Requirement],
    figures: &impl Figures,
) -> Result<ExitCode, Box<dyn Error>> {
    let mut met = true;
    for requirement in requirements {
        let (holds, line) = requirement.judge(figures)?;
        met &= holds;
        tell(&line);
    }
    Ok(if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A bound of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    category: Option<String>,
    name: String,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("`{text}` is not NAME=VALUE or NAME<=VALUE");
        let (name, value) = text.split_once('=').ok_or_else(malformed)?;
        let value: f64 = value.parse().map_err(|_| malformed())?;
        let (name, bound) = match name.strip_suffix('<') {
            Some(name) => (name, Bound::AtMost(value)),
            None => (name, Bound::AtLeast(value)),
        };
        let (category, name) = match name.rsplit_once('/') {
            Some((category, name)) => (Some(category.to_owned()), name),
            None => (None, name),
        };
        Ok(Self {
            category,
            name: name.to_owned(),
            bound,
        })
    }
}

impl Requirement {
    /// Whether it holds, and a line that says so.
    fn judge(&self, figures: &impl Figures) -> Result<(bool, String), String> {
        let name = match &self.category {
            Some(category) => format!("{category}/{}", self.name),
            None => self.name.clone(),
        };
        let value = figures
            .figure(self.category.as_deref(), &self.name)
            .ok_or_else(|| format!("--require names {name}, which was not measured"))?;
        let (holds, wanted) = match self.bound {
            Bound::AtLeast(bound) => (value >= bound, format!("at least {bound}")),
            Bound::AtMost(bound) => (value <= bound, format!("at most {bound}")),
        };
        let verdict = if holds { "ok  " } else { "FAIL" };
        Ok((
            holds,
            format!("{verdict} {name} is {value:.4}, required {wanted}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_bound_is_read_with_its_direction_and_its_category() {
        let read = |text: &str| text.parse::<Requirement>();
        let plain = read("recall@10=0.70").unwrap();
        assert_eq!((plain.category, plain.bound), (None, Bound::AtLeast(0.7)));
        let of_category = read("multi-hop/all@10=0.45").unwrap();
        assert_eq!(of_category.category.as_deref(), Some("multi-hop"));
        assert_eq!(of_category.name, "all@10");
        let most = read("negatives<=0.2").unwrap();
        assert_eq!(
            (most.name.as_str(), most.bound),
            ("negatives", Bound::AtMost(0.2))
        );
        for wrong in ["recall@10", "recall@10=high", "recall@10>0.2"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
