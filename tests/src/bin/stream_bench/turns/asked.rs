//! Turns, one after the other, and between them commits of a single row.

use std::time::Duration;

use super::commits::Commits;
use crate::bench::Asked;
use crate::client;
use crate::load::Spread;
use crate::model::AT_ONCE;
use crate::process::family_time;

/// How long what one turn left behind may take.
const SETTLE_LIMIT: Duration = Duration::from_mins(2);

/// A turn to ask for.
#[derive(Clone, Debug)]
pub(super) struct Question {
    user: String,
    path: String,
}

impl Question {
    /// In a session of its own.
    pub(super) fn new(user: &str, text: &str) -> Self {
        let query = tidemark_tests::paths::encoded(&format!("{text}? {AT_ONCE}"));
        let id = uuid::Uuid::now_v7();
        Self {
            user: user.to_owned(),
            path: format!("/v1/chat/stream?query={query}&request_id={id}"),
        }
    }

    pub(super) fn in_session(mut self, session: &str) -> Self {
        self.path += "&session_id=";
        self.path += session;
        self
    }
}

/// What turns took.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) failed: usize,
    /// Delay of the first token beyond the model's own.
    pub(super) first: Spread,
    /// Of a single-row commit.
    pub(super) commit: Spread,
    /// Memories that were recalled for a turn by relevance, on average.
    pub(super) recalled: f64,
    /// Turns for which a way of recalling did not answer.
    pub(super) degraded: usize,
    /// Milliseconds of processor time a turn, from the question to the end of the stream.
    pub(super) server_cpu: f64,
    /// The same of the database.
    pub(super) database_cpu: Option<f64>,
}

/// Asks for turns.
pub(super) struct Turns {
    tokens: usize,
    commits: Commits,
    database: Option<u32>,
}

impl Turns {
    pub(super) async fn new(tokens: u16, mut commits: Commits) -> Self {
        Self {
            tokens: tokens.into(),
            database: commits.process().await,
            commits,
        }
    }

    pub(super) async fn end(self) -> Result<(), sqlx::Error> {
        self.commits.end().await
    }

    /// Asks one question after the other, each when the work that the one before left behind is done.
    pub(super) async fn ask(
        &mut self,
        asked: &Asked,
        questions: Vec<Question>,
    ) -> Result<Measured, String> {
        let turns = questions.len().max(1) as f64;
        let (mut firsts, mut commits) = (Vec::new(), Vec::new());
        let mut measured = Measured::default();
        let (mut server, mut database) = (Duration::ZERO, Duration::ZERO);
        for question in questions {
            let Question { user, path } = &question;
            let (own, of_database) = (asked.server.precise_time(), self.database_time());
            let turn = client::turn(&asked.server.address, path, user, self.tokens).await;
            server += asked.server.precise_time().saturating_sub(own);
            database += self.database_time().saturating_sub(of_database);
            match turn {
                Ok(seen) => {
                    firsts.push(seen.first);
                    measured.recalled += seen.recalled as f64 / turns;
                    measured.degraded += usize::from(seen.degraded);
                }
                Err(failure) => {
                    measured.failed += 1;
                    println!("{path}: {failure}");
                }
            }
            asked.settle_within(SETTLE_LIMIT).await?;
            let commit = self.commits.one().await;
            commits.push(commit.map_err(|error| format!("a commit: {error}"))?);
        }
        let each = |used: Duration| used.as_secs_f64() * 1e3 / turns;
        measured.server_cpu = each(server);
        measured.database_cpu = self.database.map(|_| each(database));
        measured.first = Spread::of(firsts);
        measured.commit = Spread::of(commits);
        Ok(measured)
    }

    fn database_time(&self) -> Duration {
        self.database.map_or(Duration::ZERO, family_time)
    }
}
