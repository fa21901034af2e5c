//! Three replicas under load while everything around them breaks: replicas are killed, drained and paused beyond their leases, `PostgreSQL` and
//! Redis crash and restart, connections are cut, held up and carry one way only, clocks jump. What the clients saw and what is stored at the
//! end must keep the promises ([`checker`]).
//!
//! `TIDEMARK_TEST_CHAOS_SECONDS` is for how long (36), `TIDEMARK_TEST_SEED` repeats the faults and the wishes of a run; how they meet is the
//! machine's.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod checker;
mod clients;
mod clocks;
mod cluster;
mod evidence;
mod faults;
mod follower;
mod history;
mod load;
mod stored;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tidemark_tests::random::Random;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use clients::Clients;
use cluster::Cluster;
use evidence::Evidence;
use history::History;
use load::Room;

/// How long a turn's runner may be silent.
const LEASE: Duration = Duration::from_secs(2);

/// New messages that make a session due for consolidation.
const THRESHOLD: i64 = 8;

/// What every user prefers from the begin, and every turn is shown.
const PREFERENCE: &str = "I prefer answers of one sentence.";

/// Long enough for one fault of each kind.
const SHORT: Duration = Duration::from_secs(36);

/// How long the clients may take to see the end of what they have begun when all is whole again.
const LAST_TURNS: Duration = Duration::from_mins(5);

/// How long open turns and derived work may take after that. Work that has failed often waits for up to 256 seconds.
const DRAIN: Duration = Duration::from_mins(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_keep_their_promises_whatever_breaks() {
    let (seed, length) = (Random::seed_of_this_run(), length_wanted());
    println!(
        "TIDEMARK_TEST_SEED={seed} TIDEMARK_TEST_CHAOS_SECONDS={}",
        length.as_secs()
    );
    let cluster = Cluster::start().await;
    let history = Arc::new(History::begin());
    let evidence = Evidence::of(seed, &cluster, &history);
    let watching = Arc::clone(&history);
    let watching = tokio::spawn(async move { watching.watch().await });
    let (stop, stopped) = watch::channel(false);
    let clients = Clients {
        cluster: Arc::clone(&cluster),
        history: Arc::clone(&history),
        stopped,
    };
    give_preferences(&cluster).await;
    let at_work = set_to_work(&clients, &mut Random::from_seed(seed));
    let faults = faults::plan(seed, length);
    let begun = Instant::now();
    faults::inject(Arc::clone(&cluster), Arc::clone(&history), faults).await;
    let rest = length.saturating_sub(begun.elapsed());
    tokio::time::sleep(rest).await;
    history.fault("all is whole".to_owned());
    stop.send_replace(true);
    let ending = futures::future::join_all(at_work);
    let ended = tidemark_tests::wait::within("the clients to end", LAST_TURNS, ending).await;
    for client in ended {
        client.expect("a client that found nothing out of form");
    }
    until_quiet(&cluster, &history).await;
    watching.abort();
    let stored = stored::read(&cluster).await;
    cluster.model.assert_every_transcript_was_valid();
    evidence.judge(&stored);
}

fn length_wanted() -> Duration {
    std::env::var("TIDEMARK_TEST_CHAOS_SECONDS").map_or(SHORT, |given| {
        Duration::from_secs(given.parse().expect("a number of seconds"))
    })
}

async fn give_preferences(cluster: &Cluster) {
    for number in 0..USERS {
        let preference =
            json!({"content": PREFERENCE, "scope": "user_profile", "kind": "preference"});
        let client = cluster.client(0, &user(number));
        client.post("/v1/memories", &preference).await.expect(201);
    }
}

/// How many users there are; each has two rooms, one of them shared by two who talk.
const USERS: usize = 3;

fn user(number: usize) -> String {
    format!("user-{number}")
}

fn set_to_work(clients: &Clients, random: &mut Random) -> Vec<JoinHandle<()>> {
    let mut at_work = Vec::new();
    for number in 0..USERS {
        let user = user(number);
        let (own, shared) = (Room::of(&user), Room::of(&user));
        for (at, room) in [own, Arc::clone(&shared), shared].into_iter().enumerate() {
            let name = format!("u{number}t{at}");
            let random = Random::from_seed(random.bits());
            at_work.push(tokio::spawn(load::talk(
                clients.clone(),
                room,
                name,
                random,
            )));
        }
        let (name, random) = (format!("u{number}m"), Random::from_seed(random.bits()));
        at_work.push(tokio::spawn(load::remember(
            clients.clone(),
            user,
            name,
            random,
        )));
    }
    at_work
}

/// Waits until no turn and no work is open and every replica is whole; if that does not come, the checker tells what is left.
async fn until_quiet(cluster: &Cluster, history: &History) {
    let begun = Instant::now();
    let mut left = (-1, -1);
    while begun.elapsed() < DRAIN {
        left = stored::open(&cluster.store_url).await;
        let mut whole = true;
        for at in 0..cluster.replicas.len() {
            let client = cluster.client(at, "nobody");
            let ready = client
                .try_send(client.request(reqwest::Method::GET, "/readyz"))
                .await;
            whole &= ready.is_some_and(|ready| ready.body["events"] == "ok");
        }
        if left == (0, 0) && whole {
            history.fault(format!("quiet after {:?}", begun.elapsed()));
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    history.fault(format!(
        "not quiet: {} turns and {} jobs are open",
        left.0, left.1
    ));
}
