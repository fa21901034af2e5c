//! Several servers on one `PostgreSQL` and one Redis: whoever follows, resumes or cancels a turn does not see which of them runs it, and when
//! Redis is away chat goes on.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod away;
mod bounds;
mod cancel;
mod drain;
mod erase;
mod follow;
mod proxy;
mod queued;
mod refusing;

use std::time::Duration;

use tidemark_tests::client::Client;
use tidemark_tests::database::Store;
use tidemark_tests::events::Reading;
use tidemark_tests::model::Model;
use tidemark_tests::paths::{events_of, is_event};
use tidemark_tests::redis::Redis;
use tidemark_tests::server::{Server, Setup};
use tidemark_tests::sse::EventStream;
use tidemark_tests::wait;

/// How long anything may take here.
const LIMIT: Duration = Duration::from_secs(30);

/// What a follower at another replica may wait for more than one at the replica that runs the turn; far below the two seconds after which a
/// quiet follower reads the stored turn.
const SOON: Duration = Duration::from_secs(1);

/// Some servers with what they share.
struct Replicas {
    servers: Vec<Server>,
    redis: Redis,
    _model: Model,
}

impl Replicas {
    async fn start(number: usize) -> Self {
        Self::with(number, |setup| setup).await
    }

    async fn with(number: usize, shape: impl Fn(Setup) -> Setup) -> Self {
        let (model, redis) = (Model::start().await, Redis::start().await);
        let setup = Setup::on(Store::Postgres)
            .model(&model)
            .with("TIDEMARK_EVENTS__REDIS_URL", &redis.url())
            .with("TIDEMARK_STREAM__HEARTBEAT_SECONDS", "1");
        let first = shape(setup).start().await;
        let mut servers = vec![first];
        while servers.len() < number {
            let another = servers[0].start_another().await;
            servers.push(another);
        }
        for server in &servers {
            until_events_are(&server.client(), "ok").await;
        }
        Self {
            servers,
            redis,
            _model: model,
        }
    }

    fn client(&self, at: usize) -> Client {
        self.servers[at].client()
    }
}

/// Waits until `/readyz` says so; it is ready all the while.
async fn until_events_are(client: &Client, state: &str) {
    wait::until(&format!("events to be {state}"), LIMIT, || async {
        let ready = client.get("/readyz").await.expect(200);
        (ready["events"] == state).then_some(())
    })
    .await;
}

/// A running turn, and a stream of it at `other` that has told so many pieces of the answer.
async fn followed(one: &Client, other: &Client, message: &str) -> (String, EventStream, Reading) {
    let turn = one.post_turn(&one.create_session().await, message).await;
    let mut stream = other.open(&events_of(&turn)).await;
    let frames = stream
        .collect_until(LIMIT, |frame| is_event(frame, "message"))
        .await;
    (turn, stream, Reading::of(&frames))
}

/// The rest of a stream, to its end.
async fn rest(mut stream: EventStream) -> Reading {
    let frames = stream.collect_until(LIMIT, |_| false).await;
    assert_eq!(stream.ended, Some(Ok(())), "the stream was cut");
    Reading::of(&frames)
}
