//! The one writer: it takes steps of many turns into one transaction and acknowledges each after the COMMIT.
//!
//! A commit costs a sync of the disk, whatever it holds. What arrives during one goes into the next, so that the rate of steps does not
//! hang on the disk's latency. Each step has a savepoint of its own: one that fails, or decides on a conflict, takes nothing with it.

use std::error::Error;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tidemark_application::ports::store::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::errors::{commit_was_refused, corrupt, store_error};

/// Steps that wait for the next transaction.
const WAITING: usize = 1_024;
/// Steps of one transaction: enough to share a sync, few enough that the first does not wait long for the last.
const TOGETHER: usize = 128;
/// How long a step waits for a place in the queue before the store counts as overloaded.
const PATIENCE: Duration = Duration::from_secs(10);

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const SAVEPOINT: &str = "SAVEPOINT step";
const RELEASE: &str = "RELEASE step";
const UNDO: &str = "ROLLBACK TO step";
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
const REWRITE: &str = "VACUUM";

/// How often the log is tried to be cut; each try waits for readers as long as the connection is patient.
const CUTS: usize = 12;

/// The way to the writer.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    commands: mpsc::Sender<Command>,
}

enum Command {
    Step(Box<dyn Step>),
    Rewrite(oneshot::Sender<Result<(), StoreError>>),
    Close(oneshot::Sender<()>),
}

/// A piece of work between its savepoint and its acknowledgement.
trait Step: Send {
    /// Does it; whether what it wrote is to be kept.
    fn run<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, bool>;

    /// Tells the caller, who may be gone: the outcome, or why the transaction around it failed.
    fn acknowledge(self: Box<Self>, failure: Option<StoreError>);
}

struct Work<F, T, E> {
    /// Taken when it is begun.
    todo: Option<F>,
    outcome: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Step for Work<F, T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run<'c>(&'c mut self, connection: &'c mut SqliteConnection) -> BoxFuture<'c, bool> {
        Box::pin(async move {
            let outcome = match self.todo.take() {
                Some(work) => AssertUnwindSafe(work(connection)).catch_unwind().await,
                None => return false,
            };
            let outcome =
                outcome.unwrap_or_else(|_| Err(E::from(corrupt("a step of the writer panicked"))));
            self.outcome.insert(outcome).is_ok()
        })
    }

    fn acknowledge(self: Box<Self>, failure: Option<StoreError>) {
        let outcome = match (failure, self.outcome) {
            (Some(failure), _) => Err(E::from(failure)),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(E::from(corrupt("a step of the writer has no outcome"))),
        };
        // The caller may have gone: what was done is done.
        let _ = self.caller.send(outcome);
    }
}

/// Why a whole transaction failed; shared by all of its steps.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the transaction failed at {at}")]
struct TransactionFailed {
    at: &'static str,
    #[source]
    source: Arc<sqlx::Error>,
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the store is closed")]
    Closed,
    #[error("the log could not be cut: it is being read all the time")]
    Read,
    #[error("the store has had more writes than it can do for {} seconds", PATIENCE.as_secs())]
    Overloaded,
}

fn unavailable(error: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

impl Writer {
    /// Starts the writer on its connection. `lock`, of the process that serves the file, is held until the connection is closed.
    pub(super) fn start(
        options: SqliteConnectOptions,
        connection: SqliteConnection,
        lock: Option<File>,
    ) -> Self {
        let (commands, queue) = mpsc::channel(WAITING);
        let writer = Loop {
            options,
            connection: Some(connection),
            queue,
            _lock: lock,
        };
        tokio::spawn(writer.run());
        Self { commands }
    }

    /// Does `work` in a transaction and returns once that is committed. An error undoes what the work wrote. A caller that goes away
    /// meanwhile changes nothing: the work is done.
    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (caller, outcome) = oneshot::channel();
        let step = Command::Step(Box::new(Work {
            todo: Some(work),
            outcome: None,
            caller,
        }));
        self.commands
            .send_timeout(step, PATIENCE)
            .await
            .map_err(|e| match e {
                mpsc::error::SendTimeoutError::Timeout(_) => unavailable(Refused::Overloaded),
                mpsc::error::SendTimeoutError::Closed(_) => unavailable(Refused::Closed),
            })?;
        outcome
            .await
            .unwrap_or_else(|e| Err(E::from(StoreError::OutcomeUnknown(Box::new(e)))))
    }

    /// Rewrites the whole file and cuts the log, so that neither holds anything that is in no row. Takes as long as copying the file;
    /// other writes wait.
    pub(super) async fn rewrite(&self) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let closed = |_| unavailable(Refused::Closed);
        self.commands
            .send(Command::Rewrite(done))
            .await
            .map_err(|_| unavailable(Refused::Closed))?;
        outcome.await.map_err(closed)?
    }

    /// Does what is waiting, then writes the log back into the database and closes it. Later writes are refused.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Close(done)).await.is_ok() {
            // An error means that the writer has ended already.
            let _ = closed.await;
        }
    }
}

struct Loop {
    options: SqliteConnectOptions,
    /// None after a failure that leaves its state in doubt; the next transaction makes a new one.
    connection: Option<SqliteConnection>,
    queue: mpsc::Receiver<Command>,
    _lock: Option<File>,
}

impl Loop {
    async fn run(mut self) {
        let mut commands = Vec::with_capacity(TOGETHER);
        let mut closers = Vec::new();
        let mut rewriters = Vec::new();
        while self.queue.recv_many(&mut commands, TOGETHER).await > 0 {
            let mut steps = Vec::with_capacity(commands.len());
            for command in commands.drain(..) {
                match command {
                    Command::Step(step) => steps.push(step),
                    Command::Rewrite(done) => rewriters.push(done),
                    Command::Close(done) => {
                        self.queue.close();
                        closers.push(done);
                    }
                }
            }
            if !steps.is_empty() {
                self.transaction(steps).await;
            }
            for done in rewriters.drain(..) {
                // The caller may have gone.
                let _ = done.send(self.rewrite().await);
            }
        }
        if let Some(mut connection) = self.connection.take() {
            let checkpointed = execute(&mut connection, CHECKPOINT).await;
            if let Err(error) = checkpointed.and(connection.close().await) {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "the database was not closed cleanly; its log is read at the next start"
                );
            }
        }
        drop(self);
        for done in closers {
            let _ = done.send(());
        }
    }

    async fn rewrite(&mut self) -> Result<(), StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.options.connect().await.map_err(store_error)?),
        };
        rewrite(connection).await.map_err(store_error)
    }

    async fn transaction(&mut self, mut steps: Vec<Box<dyn Step>>) {
        let failure = match self.attempt(&mut steps).await {
            Ok(()) => None,
            Err(failure) => {
                tracing::error!(error = &failure as &dyn Error, "a transaction failed");
                let refused = failure.at != COMMIT || commit_was_refused(&failure.source);
                if let Some(mut connection) = self.connection.take()
                    && let Err(error) = execute(&mut connection, ROLLBACK).await
                {
                    tracing::debug!(error = &error as &dyn Error, "nothing to roll back");
                }
                Some((failure, refused))
            }
        };
        for step in steps {
            step.acknowledge(failure.as_ref().map(|(failure, refused)| {
                let source = Box::new(failure.clone());
                if *refused {
                    StoreError::Unavailable(source)
                } else {
                    StoreError::OutcomeUnknown(source)
                }
            }));
        }
    }

    async fn attempt(&mut self, steps: &mut [Box<dyn Step>]) -> Result<(), TransactionFailed> {
        let at = |at: &'static str| {
            move |e: sqlx::Error| TransactionFailed {
                at,
                source: Arc::new(e),
            }
        };
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.options.connect().await.map_err(at("connecting"))?),
        };
        execute(connection, BEGIN).await.map_err(at(BEGIN))?;
        for step in steps {
            execute(connection, SAVEPOINT)
                .await
                .map_err(at(SAVEPOINT))?;
            if !step.run(connection).await {
                execute(connection, UNDO).await.map_err(at(UNDO))?;
            }
            execute(connection, RELEASE).await.map_err(at(RELEASE))?;
        }
        execute(connection, COMMIT).await.map_err(at(COMMIT))
    }
}

/// Rewrites the file, outside of transactions, and cuts the log.
pub(super) async fn rewrite(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    execute(connection, REWRITE).await?;
    for _ in 0..CUTS {
        let (busy, _, _): (i64, i64, i64) = sqlx::query_as(CHECKPOINT)
            .fetch_one(&mut *connection)
            .await?;
        if busy == 0 {
            return Ok(());
        }
    }
    Err(sqlx::Error::Io(std::io::Error::other(Refused::Read)))
}

async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(sql).execute(connection).await.map(|_| ())
}
