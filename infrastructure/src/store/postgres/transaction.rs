//! One operation is one transaction in one task.
//!
//! A future that is dropped while it begins a transaction leaves the pooled connection inside it. So every operation runs in a task of its
//! own, which a caller that goes away does not end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};
use tidemark_application::ports::store::StoreError;
use tidemark_domain::ids::TenantId;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// How often an operation is tried that PostgreSQL ends for the sake of another one (deadlock, serialization).
const ATTEMPTS: u32 = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Of so many connections one at most waits for what others of its tenant hold. Ours.
const OF_A_TENANT: u32 = 4;

/// Why an operation rolls back.
#[derive(Debug)]
pub(super) enum Abort<E> {
    /// It was decided so.
    Decided(E),
    /// A statement failed, or a row could not be read.
    Failed(sqlx::Error),
}

impl<E> From<sqlx::Error> for Abort<E> {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error)
    }
}

/// What an operation does within its transaction.
pub(super) type Work<'c, T, E> = BoxFuture<'c, Result<T, Abort<E>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    /// As these, of many at once.
    ReadMany,
    WriteMany,
}

impl Mode {
    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::WriteMany)
    }
}

/// The pool, and the tasks that use it.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pool: PgPool,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Those of a tenant who may wait for each other with a connection in hand, so that the other tenants have the rest.
    of_a_tenant: Arc<Semaphore>,
}

impl Database {
    pub(super) fn new(pool: PgPool) -> Self {
        let of_a_tenant = (pool.options().get_max_connections() / OF_A_TENANT).max(1);
        Self {
            of_a_tenant: Arc::new(Semaphore::new(of_a_tenant as usize)),
            pool,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.pool.close().await;
    }

    /// Waits, without a connection, until not too many others do what may wait for a lock of a whole tenant.
    pub(super) async fn of_a_tenant(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.of_a_tenant).acquire_owned().await.ok()
    }

    /// Ends when the database is about to be closed.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send {
        self.closing.clone().cancelled_owned()
    }

    /// Changes rows of one tenant.
    pub(super) async fn write<I, T, E, F>(
        &self,
        tenant: TenantId,
        input: I,
        work: F,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, E> + Send + Sync + 'static,
    {
        self.run(Mode::Write, Some(tenant), input, work).await
    }

    /// Reads rows of one tenant, all as of one moment.
    pub(super) async fn read<I, T, F>(
        &self,
        tenant: TenantId,
        input: I,
        work: F,
    ) -> Result<T, StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, StoreError>
            + Send
            + Sync
            + 'static,
    {
        self.run(Mode::Read, Some(tenant), input, work).await
    }

    /// As [`Self::write`], for many at once.
    pub(super) async fn write_many<I, T, E, F>(
        &self,
        tenant: TenantId,
        input: I,
        work: F,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, E> + Send + Sync + 'static,
    {
        self.run(Mode::WriteMany, Some(tenant), input, work).await
    }

    /// As [`Self::read`], for many at once.
    pub(super) async fn read_many<I, T, F>(
        &self,
        tenant: TenantId,
        input: I,
        work: F,
    ) -> Result<T, StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, StoreError>
            + Send
            + Sync
            + 'static,
    {
        self.run(Mode::ReadMany, Some(tenant), input, work).await
    }

    /// Calls functions that work before a tenant is known. Tables show nothing.
    pub(super) async fn before_tenant<I, T, F>(&self, input: I, work: F) -> Result<T, StoreError>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, StoreError>
            + Send
            + Sync
            + 'static,
    {
        self.run(Mode::Write, None, input, work).await
    }

    async fn run<I, T, E, F>(
        &self,
        mode: Mode,
        tenant: Option<TenantId>,
        input: I,
        work: F,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, E> + Send + Sync + 'static,
    {
        let pool = self.pool.clone();
        let task = async move {
            let mut attempt = 1;
            loop {
                let error = match once(&pool, mode, tenant, &input, &work).await {
                    Ok(value) => return Ok(value),
                    Err(Ended::Decided(decision)) => return Err(decision),
                    Err(Ended::Failed(error)) => error,
                    Err(Ended::Unknown(error)) => {
                        return Err(StoreError::OutcomeUnknown(Box::new(error)).into());
                    }
                };
                if attempt >= ATTEMPTS || !is_for_the_sake_of_another(&error) {
                    return Err(store_error(error).into());
                }
                tokio::time::sleep(RETRY_PAUSE * attempt * attempt).await;
                attempt += 1;
            }
        };
        match self.tasks.spawn(task.in_current_span()).await {
            Ok(result) => result,
            Err(error) if error.is_cancelled() => {
                Err(StoreError::Unavailable(Box::new(error)).into())
            }
            Err(error) => Err(StoreError::Corrupt {
                what: "an operation panicked".to_owned(),
                source: Some(Box::new(error)),
            }
            .into()),
        }
    }
}

/// How one try of an operation ended, if not well.
enum Ended<E> {
    Decided(E),
    Failed(sqlx::Error),
    Unknown(sqlx::Error),
}

async fn once<I, T, E, F>(
    pool: &PgPool,
    mode: Mode,
    tenant: Option<TenantId>,
    input: &I,
    work: &F,
) -> Result<T, Ended<E>>
where
    F: for<'c> Fn(&'c mut PgConnection, &'c I) -> Work<'c, T, E>,
{
    let mut transaction = begin(pool, mode, tenant).await.map_err(Ended::Failed)?;
    let outcome = work(&mut transaction, input).await;
    match outcome {
        Ok(value) => match transaction.commit().await {
            Ok(()) => Ok(value),
            Err(error) if mode.writes() && is_connection_lost(&error) => Err(Ended::Unknown(error)),
            Err(error) => Err(Ended::Failed(error)),
        },
        Err(abort) => {
            // If this fails the connection is of no use any more, and the server ends what it began.
            if let Err(error) = transaction.rollback().await {
                tracing::debug!(%error, "a transaction could not be rolled back");
            }
            Err(match abort {
                Abort::Decided(decision) => Ended::Decided(decision),
                Abort::Failed(error) => Ended::Failed(error),
            })
        }
    }
}

/// Begins and names the tenant in one round trip. Pooled connections that have died meanwhile are passed over.
async fn begin(
    pool: &PgPool,
    mode: Mode,
    tenant: Option<TenantId>,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let begin = if mode.writes() {
        "BEGIN"
    } else {
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    };
    let plans = match mode {
        Mode::Read | Mode::Write => "",
        // The plans of statements over many rows hang on nothing that is bound to them, and take PostgreSQL as long as the statements: they
        // are made once a connection. They are those that the test of plans reads.
        Mode::ReadMany | Mode::WriteMany => "; SET LOCAL plan_cache_mode = force_generic_plan",
    };
    // The text of a UUID needs no quoting.
    let statement = tenant.map_or_else(
        || begin.to_owned(),
        |tenant| format!("{begin}; SET LOCAL tidemark.tenant = '{tenant}'{plans}"),
    );
    let mut dead = 0;
    loop {
        match pool.begin_with(AssertSqlSafe(statement.clone())).await {
            Err(error)
                if dead < pool.options().get_max_connections() && is_connection_lost(&error) =>
            {
                dead += 1;
            }
            result => return result,
        }
    }
}

fn is_for_the_sake_of_another(error: &sqlx::Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01"))
}

/// The connection is gone; what it was doing may have happened.
fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        _ => code(error).is_some_and(|code| code.starts_with("08") || code.starts_with("57P")),
    }
}

/// What a function on a connection says where it finds no owner.
#[derive(Debug, thiserror::Error)]
#[error("the owner is gone")]
struct OwnerGone;

/// The owner was erased before the owner's row was locked.
pub(super) fn owner_gone() -> sqlx::Error {
    sqlx::Error::Decode(Box::new(OwnerGone))
}

/// How the names end that PostgreSQL gives to references to owners, and to nothing else.
pub(super) const OWNER_REFERENCE: &str = "_tenant_id_owner_id_fkey";

/// Only an erasure removes an owner. Whatever else is missing where something refers to it should be there.
fn is_owner_gone(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Decode(source) => source.is::<OwnerGone>(),
        sqlx::Error::Database(database) => {
            let reference = database.constraint().unwrap_or_default();
            database.is_foreign_key_violation() && reference.ends_with(OWNER_REFERENCE)
        }
        _ => false,
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// What a failed operation, which has changed nothing, means to its caller.
fn store_error(error: sqlx::Error) -> StoreError {
    let code = code(&error);
    if is_owner_gone(&error) {
        return StoreError::OwnerGone;
    }
    let unavailable = match &error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        // Out of resources, operator intervention, a lock not to be had, a deadlock or conflict that outlasted the attempts.
        sqlx::Error::Database(_) => code.as_deref().is_some_and(|c| {
            ["53", "57", "55P03", "40", "25P03", "25P04"]
                .iter()
                .any(|p| c.starts_with(p))
        }),
        _ => false,
    };
    if unavailable || is_connection_lost(&error) {
        return StoreError::Unavailable(Box::new(error));
    }
    let what = match &error {
        sqlx::Error::Database(database) => format!(
            "{} at {}",
            code.as_deref().unwrap_or("an error"),
            database
                .constraint()
                .or(database.table())
                .unwrap_or("a statement"),
        ),
        sqlx::Error::ColumnDecode { index, .. } => format!("column {index}"),
        _ => "a statement".to_owned(),
    };
    StoreError::Corrupt {
        what,
        source: Some(Box::new(error)),
    }
}
