//! Benchmark data: conversations and questions, an object of JSON a line.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cli::api::PastMessage;

/// The data cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DataError {
    /// A file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line has another form.
    #[error("{path}, line {line}")]
    Malformed {
        /// Which file.
        path: String,
        /// Which line.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A question is about a conversation that is not there.
    #[error("question {question} is about {conversation}, which is in no file of conversations")]
    NoConversation {
        /// Which question.
        question: String,
        /// Which conversation.
        conversation: String,
    },
    /// Nothing is left to ask.
    #[error("no question is left of split {0:?}")]
    NoQuestions(String),
}

/// A conversation: one user's memory.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Conversation {
    pub(super) id: String,
    #[serde(default)]
    pub(super) lang: String,
    #[serde(default)]
    pub(super) speakers: Vec<String>,
    pub(super) sessions: Vec<Session>,
}

/// A sitting.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) start: DateTime<Utc>,
    pub(super) turns: Vec<Turn>,
}

/// What one of them said.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) speaker: String,
    pub(super) text: String,
    /// What an image that was shown holds.
    pub(super) caption: Option<String>,
}

/// A question about a conversation.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) conversation_id: String,
    #[serde(default)]
    pub(super) split: String,
    #[serde(rename = "question")]
    pub(super) text: String,
    /// The turns that hold the answer.
    #[serde(default)]
    pub(super) evidence: Vec<String>,
    /// The sessions that do, where turns are not named.
    #[serde(default)]
    pub(super) evidence_sessions: Vec<String>,
    pub(super) category: String,
    /// The conversation does not hold the answer.
    #[serde(default)]
    pub(super) abstain: bool,
    pub(super) asked_at: Option<DateTime<Utc>>,
}

/// Questions with the conversations they are about.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) conversations: Vec<Conversation>,
    pub(super) questions: Vec<Question>,
}

impl Data {
    /// Reads it; with `split`, the questions of that part alone. Conversations that nobody asks about are left out.
    pub(super) fn read<P: AsRef<Path>>(
        conversations: &[P],
        questions: &Path,
        split: Option<&str>,
    ) -> Result<Self, DataError> {
        let mut all = Vec::new();
        for path in conversations {
            all.extend(lines::<Conversation>(path.as_ref())?);
        }
        let mut questions = lines::<Question>(questions)?;
        if let Some(split) = split {
            questions.retain(|q| q.split == split);
        }
        if questions.is_empty() {
            return Err(DataError::NoQuestions(split.unwrap_or("all").to_owned()));
        }
        let there: HashSet<&str> = all.iter().map(|c| c.id.as_str()).collect();
        if let Some(q) = questions
            .iter()
            .find(|q| !there.contains(q.conversation_id.as_str()))
        {
            return Err(DataError::NoConversation {
                question: q.id.clone(),
                conversation: q.conversation_id.clone(),
            });
        }
        let asked: HashSet<&str> = questions
            .iter()
            .map(|q| q.conversation_id.as_str())
            .collect();
        all.retain(|c| asked.contains(c.id.as_str()));
        Ok(Self {
            conversations: all,
            questions,
        })
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DataError> {
    let name = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| DataError::Unreadable {
        path: name(),
        source,
    })?;
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|source| DataError::Malformed {
                path: name(),
                line: number,
                source,
            })
        })
        .collect()
}

impl Conversation {
    /// When its last turn was said: questions without a time of their own are asked then.
    pub(super) fn end(&self) -> Option<DateTime<Utc>> {
        self.sessions
            .iter()
            .filter_map(|s| Some(said_at(s, s.turns.len().checked_sub(1)?)))
            .max()
    }
}

impl Session {
    /// Its turns as they are imported. All speakers are people who tell something, so all are imported as users, told apart by their names;
    /// with `first`, only that one is, and the others are the assistant.
    pub(super) fn messages(&self, first: Option<&str>) -> Vec<PastMessage> {
        self.turns
            .iter()
            .enumerate()
            .map(|(at, turn)| PastMessage {
                role: match first {
                    Some(first) if first != turn.speaker => "assistant",
                    _ => "user",
                },
                content: match &turn.caption {
                    Some(caption) => format!("{} {caption}", turn.text),
                    None => turn.text.clone(),
                },
                name: Some(turn.speaker.clone()),
                created_at: said_at(self, at),
            })
            .collect()
    }
}

/// The data has a time for each session alone; turns follow each other by a second, which keeps their order.
fn said_at(session: &Session, turn: usize) -> DateTime<Utc> {
    session.start + TimeDelta::seconds(turn as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Write;
    use tempfile::NamedTempFile;

    const CONVERSATIONS: &str = r#"
{"id": "t/a", "lang": "en", "speakers": ["Ann", "Bo"], "sessions": [{"id": "D1", "start": "2026-03-01T10:00:00Z", "turns": [
 {"id": "D1:1", "speaker": "Ann", "text": "My boat is blue."}, {"id": "D1:2", "speaker": "Bo", "text": "Look!", "caption": "a red kite"}]}]}
{"id": "t/b", "sessions": []}
"#;

    fn file(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn question(id: &str, conversation: &str, split: &str) -> String {
        format!(
            r#"{{"id": "{id}", "conversation_id": "{conversation}", "split": "{split}", "question": "q?", "category": "x"}}"#
        )
    }

    fn read(questions: &str, split: Option<&str>) -> Result<Data, DataError> {
        let text = CONVERSATIONS.replace(",\n ", ", ").replace("[\n ", "[ ");
        Data::read(&[file(&text)], file(questions).path(), split)
    }

    #[test]
    fn a_split_leaves_out_other_questions_and_the_conversations_of_theirs() {
        let questions = [
            question("1", "t/a", "dev"),
            question("2", "t/b", "held-out"),
        ]
        .join("\n\n");
        let data = read(&questions, Some("dev")).unwrap();
        assert_eq!((data.questions.len(), data.conversations.len()), (1, 1));
        let all = read(&questions, None).unwrap();
        assert_eq!((all.questions.len(), all.conversations.len()), (2, 2));
        assert!(matches!(
            read(&questions, Some("tset")),
            Err(DataError::NoQuestions(_))
        ));
    }

    #[test]
    fn a_turn_is_a_message_with_its_speaker_its_caption_and_a_time_that_keeps_the_order() {
        let data = read(&question("1", "t/a", "dev"), None).unwrap();
        let conversation = &data.conversations[0];
        let messages = conversation.sessions[0].messages(None);
        assert_eq!(messages[1].content, "Look! a red kite");
        assert_eq!(messages[1].name.as_deref(), Some("Bo"));
        assert!(messages.iter().all(|m| m.role == "user"));
        assert!(messages[0].created_at < messages[1].created_at);
        assert_eq!(conversation.end(), Some(messages[1].created_at));
        let roles: Vec<_> = conversation.sessions[0]
            .messages(Some("Ann"))
            .iter()
            .map(|m| m.role)
            .collect();
        assert_eq!(roles, ["user", "assistant"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let unknown = read(&question("7", "t/c", "dev"), None).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "question 7 is about t/c, which is in no file of conversations"
        );
        let text = format!("{}\n{{\"id\": 3}}", question("1", "t/a", "dev"));
        let malformed = read(&text, None).unwrap_err();
        assert!(malformed.to_string().ends_with("line 2"), "{malformed}");
    }
}
