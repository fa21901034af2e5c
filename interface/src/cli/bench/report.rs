//! What was measured, as a table and as JSON.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::data::{Data, Question};
use super::measures::{self, Measures, NAMES};
use super::requirement::Figures;
use super::run::{Answer, Asked};

/// The group of all questions.
const OVERALL: &str = "overall";

/// What was measured.
#[derive(Debug)]
pub(super) struct Report {
    /// Overall first, then the categories by name: how many questions, and their means.
    groups: Vec<(String, usize, Measures)>,
    abstention: Abstention,
    latency: Latency,
    degraded: BTreeMap<String, usize>,
}

/// How recall keeps silent.
#[derive(Debug, Serialize)]
struct Abstention {
    answerable: Option<Share>,
    negatives: Option<Share>,
    unanswerable: Option<Share>,
    /// How well sureness tells the answerable from the negatives.
    auroc: Option<f64>,
    /// How well it tells them from the unanswerable questions of the data.
    auroc_unanswerable: Option<f64>,
}

/// How many questions recalled anything at the server's own threshold.
#[derive(Clone, Copy, Debug, Serialize)]
struct Share {
    n: usize,
    recalled: f64,
}

/// Of recall over HTTP, one question after the other, in milliseconds.
#[derive(Debug, Default, Serialize)]
struct Latency {
    p50: f64,
    p95: f64,
}

impl Report {
    /// Scores the answers; with `sessions` by the sessions that the turns lie in.
    pub(super) fn of(data: &Data, asked: &Asked, sessions: bool) -> Self {
        let answers: HashMap<&str, &Answer> = asked
            .questions
            .iter()
            .map(|(id, answer)| (id.as_str(), answer))
            .collect();
        let mut all = Vec::new();
        let mut by_category: BTreeMap<&str, Vec<Measures>> = BTreeMap::new();
        for question in data.questions.iter().filter(|q| !q.abstain) {
            let evidence = evidence(question, sessions);
            if evidence.is_empty() {
                continue;
            }
            let ranked = answers
                .get(question.id.as_str())
                .map_or_else(Vec::new, |answer| ranked(answer, sessions));
            let measures = Measures::of(&ranked, &evidence);
            all.push(measures);
            by_category
                .entry(&question.category)
                .or_default()
                .push(measures);
        }
        let group = |name: &str, of: &[Measures]| {
            Measures::means(of).map(|means| (name.to_owned(), of.len(), means))
        };
        let groups = group(OVERALL, &all)
            .into_iter()
            .chain(by_category.iter().filter_map(|(name, of)| group(name, of)))
            .collect();
        let latencies: Vec<f64> = asked
            .questions
            .iter()
            .map(|(_, a)| a.latency.as_secs_f64() * 1_000.0)
            .collect();
        let latency = |share| measures::percentile(&latencies, share).unwrap_or_default();
        Self {
            groups,
            abstention: Abstention::of(data, asked, &answers),
            latency: Latency {
                p50: latency(0.5),
                p95: latency(0.95),
            },
            degraded: asked.degraded.clone(),
        }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let groups: Map<String, Value> = self
            .groups
            .iter()
            .map(|(name, n, means)| {
                let mut group = json!(means.map());
                group["n"] = json!(n);
                (name.clone(), group)
            })
            .collect();
        json!({
            "retrieval": groups,
            "abstention": self.abstention,
            "latency_ms": self.latency,
            "degraded": self.degraded,
        })
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let mut out = format!("{:<24}{:>6}", "", "n");
        for name in NAMES {
            let _ = write!(out, "{name:>10}");
        }
        out.push('\n');
        for (name, n, means) in &self.groups {
            let _ = write!(out, "{name:<24}{n:>6}");
            for (_, value) in means.named() {
                let _ = write!(out, "{value:>10.4}");
            }
            out.push('\n');
        }
        let abstention = &self.abstention;
        let _ = writeln!(
            out,
            "\n{:<24}{:>6}{:>10}",
            "at the threshold", "n", "recalled"
        );
        for (name, share) in [
            ("answerable", abstention.answerable),
            ("negatives", abstention.negatives),
            ("unanswerable", abstention.unanswerable),
        ] {
            if let Some(share) = share {
                let _ = writeln!(out, "{name:<24}{:>6}{:>10.4}", share.n, share.recalled);
            }
        }
        for (name, value) in [
            ("AUROC against negatives", abstention.auroc),
            ("AUROC against unanswerable", abstention.auroc_unanswerable),
        ] {
            if let Some(value) = value {
                let _ = writeln!(out, "{name:<30}{value:>10.4}");
            }
        }
        let _ = writeln!(
            out,
            "\nrecall over HTTP, one at a time: p50 {:.1} ms, p95 {:.1} ms",
            self.latency.p50, self.latency.p95
        );
        for (arm, count) in &self.degraded {
            let _ = writeln!(out, "WARNING: the arm {arm} failed in {count} recalls");
        }
        out
    }
}

impl Figures for Report {
    fn figure(&self, category: Option<&str>, name: &str) -> Option<f64> {
        let group = category.unwrap_or(OVERALL);
        let (_, _, means) = self.groups.iter().find(|(g, ..)| g == group)?;
        let measure = means.named().find(|(n, _)| *n == name);
        if let Some((_, value)) = measure {
            return Some(value);
        }
        if category.is_some() {
            return None;
        }
        let abstention = &self.abstention;
        match name {
            "answerable" => abstention.answerable.map(|s| s.recalled),
            "negatives" => abstention.negatives.map(|s| s.recalled),
            "unanswerable" => abstention.unanswerable.map(|s| s.recalled),
            "auroc" => abstention.auroc,
            "auroc_unanswerable" => abstention.auroc_unanswerable,
            "p50" => Some(self.latency.p50),
            "p95" => Some(self.latency.p95),
            _ => None,
        }
    }
}

impl Abstention {
    fn of(data: &Data, asked: &Asked, answers: &HashMap<&str, &Answer>) -> Self {
        let of = |abstain: bool| -> Vec<&Answer> {
            data.questions
                .iter()
                .filter(|q| q.abstain == abstain)
                .filter(|q| abstain || !q.evidence.is_empty() || !q.evidence_sessions.is_empty())
                .filter_map(|q| answers.get(q.id.as_str()).copied())
                .collect()
        };
        let (answerable, unanswerable) = (of(false), of(true));
        let negatives: Vec<&Answer> = asked.negatives.iter().collect();
        let auroc = |others: &[&Answer]| measures::auroc(&sureness(&answerable), &sureness(others));
        Self {
            auroc: auroc(&negatives),
            auroc_unanswerable: auroc(&unanswerable),
            answerable: Share::of(&answerable),
            negatives: Share::of(&negatives),
            unanswerable: Share::of(&unanswerable),
        }
    }
}

impl Share {
    fn of(answers: &[&Answer]) -> Option<Self> {
        let recalled = answers.iter().filter(|a| a.recalled).count();
        (!answers.is_empty()).then(|| Self {
            n: answers.len(),
            recalled: recalled as f64 / answers.len() as f64,
        })
    }
}

fn sureness(answers: &[&Answer]) -> Vec<f64> {
    answers.iter().map(|a| a.sureness).collect()
}

fn evidence(question: &Question, sessions: bool) -> BTreeSet<&str> {
    if sessions && !question.evidence_sessions.is_empty() {
        return question
            .evidence_sessions
            .iter()
            .map(String::as_str)
            .collect();
    }
    question
        .evidence
        .iter()
        .map(|turn| place(turn, sessions))
        .collect()
}

fn ranked(answer: &Answer, sessions: bool) -> Vec<&str> {
    let mut seen = HashSet::new();
    answer
        .ranked
        .iter()
        .map(|(turn, _)| place(turn, sessions))
        .filter(|place| seen.insert(*place))
        .collect()
}

/// The turn `D3:7`, or the session `D3` that it lies in.
fn place(turn: &str, session: bool) -> &str {
    match turn.split_once(':') {
        Some((id, _)) if session => id,
        _ => turn,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::time::Duration;

    fn question(id: &str, category: &str, evidence: &[&str], abstain: bool) -> Value {
        json!({
            "id": id, "conversation_id": "c", "question": "?", "category": category, "evidence": evidence, "abstain": abstain,
        })
    }

    fn answer(ranked: &[&str], sureness: f64, recalled: bool, ms: u64) -> Answer {
        Answer {
            ranked: ranked.iter().map(|t| ((*t).to_owned(), 1.0)).collect(),
            sureness,
            recalled,
            latency: Duration::from_millis(ms),
        }
    }

    fn measured(sessions: bool) -> Report {
        let questions = json!([
            question("1", "a", &["D1:1", "D2:4"], false),
            question("2", "b", &["D1:2"], false),
            question("3", "b", &[], false),
            question("4", "no", &["D1:1"], true),
        ]);
        let data = Data {
            conversations: Vec::new(),
            questions: serde_json::from_value(questions).unwrap(),
        };
        let asked = Asked {
            questions: vec![
                (
                    "1".to_owned(),
                    answer(&["D1:9", "D1:1", "D2:4"], 0.9, true, 1),
                ),
                ("2".to_owned(), answer(&[], 0.2, false, 2)),
                ("3".to_owned(), answer(&["D1:1"], 5.0, true, 3)),
                ("4".to_owned(), answer(&["D1:1"], 0.5, true, 4)),
            ],
            negatives: vec![answer(&["D1:1"], 0.1, false, 9)],
            degraded: BTreeMap::new(),
        };
        Report::of(&data, &asked, sessions)
    }

    #[test]
    fn figures_are_means_over_questions_with_evidence_in_all_and_by_category() {
        let report = measured(false);
        assert_eq!(report.figure(None, "recall@10"), Some(0.5));
        assert_eq!(report.figure(Some("a"), "mrr"), Some(0.5));
        assert_eq!(report.figure(Some("b"), "hit@20"), Some(0.0));
        assert_eq!(report.figure(Some("no"), "mrr"), None);
        assert_eq!(report.json()["retrieval"]["overall"]["n"], 2);
        assert_eq!(report.json()["retrieval"]["b"]["n"], 1);
    }

    #[test]
    fn by_sessions_a_turn_counts_as_the_session_it_lies_in() {
        let report = measured(true);
        assert_eq!(report.figure(Some("a"), "mrr"), Some(1.0));
        assert_eq!(report.figure(Some("a"), "ndcg@10"), Some(1.0));
    }

    #[test]
    fn silence_is_measured_apart() {
        let report = measured(false);
        assert_eq!(report.figure(None, "answerable"), Some(0.5));
        assert_eq!(report.figure(None, "negatives"), Some(0.0));
        assert_eq!(report.figure(None, "unanswerable"), Some(1.0));
        assert_eq!(report.figure(None, "auroc"), Some(1.0));
        assert_eq!(report.figure(None, "auroc_unanswerable"), Some(0.5));
        assert_eq!(report.figure(None, "p50"), Some(2.0));
        assert_eq!(report.figure(None, "p95"), Some(4.0));
    }

    #[test]
    fn the_table_names_every_group_and_measure() {
        let table = measured(false).table();
        for told in NAMES
            .into_iter()
            .chain([OVERALL, "answerable", "AUROC", "p95 4.0 ms"])
        {
            assert!(table.contains(told), "{told}: {table}");
        }
    }
}
