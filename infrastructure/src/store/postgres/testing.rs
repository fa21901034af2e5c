//! A database for each test, on the server of `TIDEMARK_TEST_POSTGRES_URL`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use chrono::{DateTime, SubsecRound};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark_application::ports::keys::{KeyRepository, StoredKey};
use tidemark_application::ports::owners::OwnerRepository;
use tidemark_domain::identity::{ApiKey, KeyHash, PassSecret, Scopes};
use tidemark_domain::ids::{KeyId, Owner, TenantId, TenantName, Timestamp, UserName};
use uuid::Uuid;

use super::{PostgresOptions, PostgresStore};

/// A database that is dropped with this.
pub(super) struct TestDatabase {
    server: String,
    name: String,
}

impl TestDatabase {
    /// An empty one.
    pub(super) async fn create() -> Self {
        let server = std::env::var("TIDEMARK_TEST_POSTGRES_URL")
            .expect("TIDEMARK_TEST_POSTGRES_URL names the PostgreSQL of the tests");
        let name = format!("tidemark_unit_{}", new_id().simple());
        run(&server, format!("CREATE DATABASE {name}")).await;
        Self { server, name }
    }

    /// Its address, for the role of the server's address.
    pub(super) fn url(&self) -> String {
        let (base, _) = self.server.rsplit_once('/').unwrap();
        format!("{base}/{}", self.name)
    }

    /// The same for another role.
    pub(super) fn url_as(&self, role: &str) -> String {
        let mut url = self.url();
        let start = url.find("://").unwrap() + 3;
        let end = url.find('@').unwrap();
        url.replace_range(start..end, role);
        url
    }

    pub(super) fn options(&self) -> PostgresOptions {
        PostgresOptions {
            url: self.url(),
            migrate: true,
            max_connections: 4,
        }
    }

    /// A store on it.
    pub(super) async fn store(&self) -> PostgresStore {
        PostgresStore::connect(self.options())
            .await
            .expect("the store opens")
    }

    /// A connection of the role that owns everything and sees everything.
    pub(super) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Runs a statement as that role.
    pub(super) async fn execute(&self, sql: impl Into<String>) {
        run(&self.url(), sql.into()).await;
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        // The runtime of the test cannot be waited on from inside.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run(&server, statement));
        });
        drop(dropping.join());
    }
}

async fn run(url: &str, statement: String) {
    let mut connection = PgConnection::connect(url)
        .await
        .expect("PostgreSQL of the tests answers");
    sqlx::raw_sql(AssertSqlSafe(statement.clone()))
        .execute(&mut connection)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    connection.close().await.unwrap();
}

/// A role of the cluster that is dropped with this; its name is unique.
pub(super) struct TestRole {
    server: String,
    pub(super) name: String,
}

impl TestRole {
    pub(super) async fn create(database: &TestDatabase, attributes: &str) -> Self {
        let name = format!("tidemark_unit_{}", new_id().simple());
        run(&database.server, format!("CREATE ROLE {name} {attributes}")).await;
        Self {
            server: database.url(),
            name,
        }
    }
}

impl Drop for TestRole {
    fn drop(&mut self) {
        let statement = format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name);
        let server = self.server.clone();
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(run(&server, statement));
        });
        drop(dropping.join());
    }
}

/// An id that nothing has.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no ids port in this crate's tests"
)]
pub(super) fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// A time that both sides keep unchanged.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no clock port in this crate's tests"
)]
pub(super) fn now() -> Timestamp {
    DateTime::<chrono::Utc>::from(std::time::SystemTime::now()).trunc_subsecs(6)
}

/// A new user of a tenant.
pub(super) async fn owner(store: &PostgresStore, tenant: TenantId) -> Owner {
    let name: UserName = new_id().to_string().parse().unwrap();
    store.resolve_owner(tenant, &name).await.unwrap()
}

/// Gives a tenant a name, a key, and what passes are signed with. The default one has its name.
pub(super) async fn give_key(store: &PostgresStore, tenant: TenantId) {
    let name = match tenant {
        TenantId::DEFAULT => TenantName::default_tenant(),
        other => other.to_string().parse().unwrap(),
    };
    let made = store.make_tenant(&name, tenant, now()).await.unwrap();
    let key = ApiKey {
        id: KeyId(new_id()),
        tenant: made.id,
        name: Some("a note".to_owned()),
        scopes: Scopes::all(),
        user: None,
        created_at: now(),
        expires_at: None,
        revoked_at: None,
        successor: None,
    };
    let hash = KeyHash([7; 32]);
    store.add_key(StoredKey { key, hash }).await.unwrap();
    let secret = PassSecret([8; 32]);
    let made = store.make_pass_secret(made.id, secret, now()).await;
    made.unwrap();
}
