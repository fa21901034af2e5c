//! Whether what the clients saw and what is stored keep the promises. Pure: the same history and the same rows give the same complaints.

mod acceptance;
mod memories;
mod streams;
mod transcripts;
mod work;

use super::history::Entry;
use super::stored::Stored;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Whom it concerns: an id or a key, which the history's lines about it hold.
    pub subject: String,
    /// What is wrong.
    pub text: String,
}

impl Complaint {
    fn of(subject: &str, text: impl Into<String>) -> Self {
        Self {
            subject: subject.to_owned(),
            text: text.into(),
        }
    }
}

/// Everything that is wrong.
pub(crate) fn complaints(history: &[Entry], stored: &Stored) -> Vec<Complaint> {
    let mut all = acceptance::complaints(history, stored);
    all.extend(streams::complaints(history, stored));
    all.extend(transcripts::complaints(history, stored));
    all.extend(work::complaints(stored));
    all.extend(memories::complaints(history, stored));
    all
}

/// Fails the test unless one complaint says so.
#[cfg(test)]
#[track_caller]
fn assert_complains(complaints: &[Complaint], part: &str) {
    assert!(
        complaints
            .iter()
            .any(|complaint| complaint.text.contains(part)),
        "nothing says {part:?}: {complaints:?}"
    );
}
