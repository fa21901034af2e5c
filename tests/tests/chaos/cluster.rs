//! Three replicas, and what they share: each has ways of its own to `PostgreSQL` and Redis, and a clock of its own.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use tidemark_tests::client::Client;
use tidemark_tests::clock::Clock;
use tidemark_tests::database::Store;
use tidemark_tests::model::Model;
use tidemark_tests::postgres::{Postgres, url_at};
use tidemark_tests::proxy::Proxy;
use tidemark_tests::redis::Redis;
use tidemark_tests::server::{Log, Server, Setup};
use tokio::sync::Mutex;

use super::{LEASE, THRESHOLD};

/// How many replicas there are.
pub(crate) const REPLICAS: usize = 3;

/// How long a replica is started again and again while what it needs is away.
const START_PATIENCE: Duration = Duration::from_mins(4);

/// A server and its ways. Whoever does something to it holds it.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) server: Mutex<Server>,
    pub(crate) to_postgres: Mutex<Proxy>,
    pub(crate) to_redis: Mutex<Proxy>,
    pub(crate) clock: Mutex<Clock>,
    log: Log,
    client: RwLock<Client>,
}

impl Replica {
    async fn start(postgres: &Postgres, redis: &Redis, model: &Model) -> Self {
        let to_postgres = Proxy::to(postgres.port()).await;
        let to_redis = Proxy::to(redis.port()).await;
        let clock = Clock::new();
        let mut setup = Setup::on(Store::Postgres)
            .model(model)
            .with(
                "TIDEMARK_EVENTS__REDIS_URL",
                &format!("redis://127.0.0.1:{}", to_redis.port()),
            )
            .with("TIDEMARK_TURN__LEASE_SECONDS", &LEASE.as_secs().to_string())
            .with("TIDEMARK_LEARNING__LEASE_SECONDS", "3")
            // By default work is left to a person once eight tries were broken, and here any of them may be.
            .with("TIDEMARK_LEARNING__MAX_ATTEMPTS", "100")
            .with("TIDEMARK_LEARNING__THRESHOLD", &THRESHOLD.to_string())
            .with("TIDEMARK_LIMITS__QUEUE_PER_SESSION", "4")
            .with("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "1");
        for (name, value) in clock.settings() {
            setup = setup.with(name, &value);
        }
        let server = setup.start_at(&url_at(to_postgres.port())).await;
        Self {
            client: RwLock::new(server.client()),
            log: server.log().clone(),
            server: Mutex::new(server),
            to_postgres: Mutex::new(to_postgres),
            to_redis: Mutex::new(to_redis),
            clock: Mutex::new(clock),
        }
    }

    /// A client of the process that listens now, or did so last.
    pub(crate) fn client(&self) -> Client {
        self.client.read().unwrap().clone()
    }

    /// Starts the ended server again, as whoever supervises it would: until it stays.
    pub(crate) async fn start_again(&self, server: &mut Server) {
        let begun = std::time::Instant::now();
        while let Err(failure) = server.try_start_again().await {
            assert!(begun.elapsed() < START_PATIENCE, "{failure}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        *self.client.write().unwrap() = server.client();
    }

    /// What it wrote, over all its starts.
    pub(crate) fn log(&self) -> String {
        self.log.text()
    }
}

/// Everything that may be broken.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: Vec<Replica>,
    pub(crate) postgres: Mutex<Postgres>,
    pub(crate) redis: Mutex<Redis>,
    pub(crate) model: Model,
    /// Where `PostgreSQL` is, without asking whoever holds it.
    pub(crate) store_url: String,
}

impl Cluster {
    pub(crate) async fn start() -> Arc<Self> {
        let (postgres, redis) = tokio::join!(Postgres::start(), Redis::start());
        let model = Model::start().await;
        let mut replicas = Vec::new();
        // One after the other, for the first makes the tables.
        while replicas.len() < REPLICAS {
            replicas.push(Replica::start(&postgres, &redis, &model).await);
        }
        Arc::new(Self {
            replicas,
            store_url: postgres.url(),
            postgres: Mutex::new(postgres),
            redis: Mutex::new(redis),
            model,
        })
    }

    /// A client of one of the replicas, as a user.
    pub(crate) fn client(&self, at: usize, user: &str) -> Client {
        self.replicas[at].client().as_user(user)
    }
}
