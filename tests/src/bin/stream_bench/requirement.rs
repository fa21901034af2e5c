//! What a measurement has to reach: `postgres-1000/cpu_ratio<=3`, `postgres/turns_per_second=300`.

use std::str::FromStr;

use crate::report::Report;

/// A bound of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Requirement {
    row: String,
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
        let malformed = || format!("`{text}` is not ROW/NAME=VALUE or ROW/NAME<=VALUE");
        let (name, value) = text.split_once('=').ok_or_else(malformed)?;
        let value: f64 = value.parse().map_err(|_| malformed())?;
        let (name, bound) = match name.strip_suffix('<') {
            Some(name) => (name, Bound::AtMost(value)),
            None => (name, Bound::AtLeast(value)),
        };
        let (row, name) = name.split_once('/').ok_or_else(malformed)?;
        Ok(Self {
            row: row.to_owned(),
            name: name.to_owned(),
            bound,
        })
    }
}

impl Requirement {
    /// Whether it holds, and a line that says so. What was not measured does not hold.
    pub(crate) fn judge(&self, report: &Report) -> (bool, String) {
        let Self { row, name, bound } = self;
        let Some(value) = report.figure(row, name) else {
            return (false, format!("FAIL {row}/{name} was not measured"));
        };
        let (holds, wanted) = match bound {
            Bound::AtLeast(bound) => (value >= *bound, format!("at least {bound}")),
            Bound::AtMost(bound) => (value <= *bound, format!("at most {bound}")),
        };
        let verdict = if holds { "ok  " } else { "FAIL" };
        let line = format!("{verdict} {row}/{name} is {value:.2}, required {wanted}");
        (holds, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_judged_in_its_direction_and_what_was_not_measured_fails() {
        let mut report = Report::default();
        report.add("sqlite-10", "cpu_ratio", 2.5);
        let judged = |text: &str| text.parse::<Requirement>().unwrap().judge(&report).0;
        assert!(judged("sqlite-10/cpu_ratio<=3"));
        assert!(!judged("sqlite-10/cpu_ratio=3"));
        assert!(!judged("sqlite-100/cpu_ratio<=3"));
        for wrong in ["cpu_ratio<=3", "sqlite-10/cpu_ratio", "sqlite-10/x=high"] {
            assert!(wrong.parse::<Requirement>().is_err(), "{wrong}");
        }
    }
}
