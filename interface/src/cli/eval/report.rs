//! How scenarios went, as a table and as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::scenario::{Class, Scenario};

/// How a scenario went.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    name: String,
    class: Class,
    language: String,
    about: String,
    passed: bool,
    failures: Vec<Failure>,
    milliseconds: u128,
}

/// What was not as expected.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Failure {
    pub(super) step: usize,
    pub(super) action: String,
    pub(super) reason: String,
}

impl Outcome {
    /// Of a scenario that was played.
    pub(super) fn new(scenario: &Scenario, failures: Vec<Failure>, took: Duration) -> Self {
        Self {
            name: scenario.name.clone(),
            class: scenario.class,
            language: scenario.language.clone(),
            about: scenario.about.clone(),
            passed: failures.is_empty(),
            failures,
            milliseconds: took.as_millis(),
        }
    }

    /// Whether everything was as expected.
    pub(super) fn passed(&self) -> bool {
        self.passed
    }
}

/// The head of the table.
pub(super) fn heading() -> String {
    format!(
        "{:<44}{:<14}{:<6}{:<8}{:>8}\n",
        "scenario", "class", "lang", "result", "ms"
    )
}

/// A line of the table, with a line for each thing that was not as expected.
pub(super) fn row(outcome: &Outcome) -> String {
    let result = if outcome.passed { "ok" } else { "FAILED" };
    let mut out = format!(
        "{:<44}{:<14}{:<6}{:<8}{:>8}\n",
        outcome.name, outcome.class, outcome.language, result, outcome.milliseconds
    );
    if !outcome.passed {
        let _ = writeln!(out, "    promised: {}", outcome.about);
    }
    for failure in &outcome.failures {
        let _ = writeln!(
            out,
            "    step {}, {}: {}",
            failure.step, failure.action, failure.reason
        );
    }
    out
}

/// The end of the table.
pub(super) fn summary(outcomes: &[Outcome]) -> String {
    let mut out = String::from("\n");
    for class in [Class::Preference, Class::ChangedFact, Class::Cleanliness] {
        let of_class = || outcomes.iter().filter(|o| o.class == class);
        if of_class().next().is_some() {
            let passed = of_class().filter(|o| o.passed).count();
            let _ = writeln!(out, "{class:<14}{passed:>3} of {}", of_class().count());
        }
    }
    let passed = outcomes.iter().filter(|o| o.passed).count();
    let _ = writeln!(out, "{:<14}{passed:>3} of {}", "all", outcomes.len());
    out
}

/// For programs.
pub(super) fn json(outcomes: &[Outcome]) -> Value {
    json!({
        "passed": outcomes.iter().filter(|o| o.passed).count(),
        "failed": outcomes.iter().filter(|o| !o.passed).count(),
        "scenarios": outcomes,
    })
}

/// What the scenarios promise.
pub(super) fn list(scenarios: &[Scenario]) -> String {
    scenarios.iter().fold(String::new(), |mut out, s| {
        let _ = writeln!(
            out,
            "{:<44}{:<14}{:<6}{}",
            s.name, s.class, s.language, s.about
        );
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, class: Class, reasons: &[&str]) -> Outcome {
        let scenario = Scenario {
            name: name.to_owned(),
            class,
            language: "en".to_owned(),
            about: "a promise".to_owned(),
            steps: Vec::new(),
        };
        let failure = |reason: &&str| Failure {
            step: 2,
            action: "say \"x\"".to_owned(),
            reason: (*reason).to_owned(),
        };
        let failures = reasons.iter().map(failure).collect();
        Outcome::new(&scenario, failures, Duration::from_millis(7))
    }

    #[test]
    fn a_failed_scenario_tells_its_promise_and_every_reason_with_its_step() {
        let told = row(&outcome("a", Class::Preference, &["one", "two"]));
        for part in [
            "FAILED",
            "promised: a promise",
            "step 2, say \"x\": one",
            "step 2, say \"x\": two",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(
            row(&outcome("a", Class::Preference, &[])).lines().count(),
            1
        );
    }

    #[test]
    fn what_passed_is_counted_by_class_and_in_all() {
        let outcomes = [
            outcome("a", Class::Preference, &[]),
            outcome("b", Class::Cleanliness, &["one"]),
            outcome("c", Class::Cleanliness, &[]),
        ];
        let told = summary(&outcomes);
        assert!(
            told.contains("cleanliness     1 of 2") && told.contains("all             2 of 3"),
            "{told}"
        );
        assert!(!told.contains("changed_fact"), "{told}");
        assert_eq!(
            (
                json(&outcomes)["passed"].as_u64(),
                json(&outcomes)["failed"].as_u64()
            ),
            (Some(2), Some(1))
        );
    }
}
